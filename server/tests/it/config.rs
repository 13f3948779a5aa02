//! The configuration: a file, then variables, then flags; all that is wrong is told at once.

use crate::support::PROGRAM;
use berth_server::config::{Config, LogFormat, Stop};
use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
    time::Duration,
};

fn try_config(flags: &[&str]) -> Result<Config, Stop> {
    // Not what this machine's file says.
    Config::try_from_args(["berthd", "--config", "none"].iter().chain(flags))
}

fn problems(flags: &[&str]) -> Vec<String> {
    match try_config(flags) {
        Err(Stop::Invalid(invalid)) => invalid.0,
        other => panic!("{other:?}"),
    }
}

/// The program with this file, and these variables and flags.
fn berthd(file: &str, variables: &[(&str, &str)], flags: &[&str]) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("berthd.toml");
    fs::write(&path, file).unwrap();
    let mut command = Command::new(PROGRAM);
    command.env_clear().envs(variables.iter().copied()).current_dir(folder.path());
    command.args(["--config", "berthd.toml"]).args(flags).output().unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn all_problems_at_once() {
    let problems = problems(&[
        "--tcp",
        "0.0.0.0:7117",
        "--kernel",
        "six",
        "--cpu-family",
        "old",
        "--log-format",
        "xml",
        "--deadline",
        "2h",
        "--sample-interval",
        "1ms",
        "--max-requests",
        "0",
        "--topology-xml",
        "/nonexistent/host.xml",
        "--log",
        "a=b=c",
    ]);
    for flag in [
        "--tcp 0.0.0.0:7117",
        "--kernel six",
        "--cpu-family old",
        "--log-format xml",
        "--deadline 2h",
        "--sample-interval 1ms",
        "--max-requests 0",
        "--topology-xml /nonexistent/host.xml",
        "--log a=b=c",
    ] {
        assert!(problems.iter().any(|problem| problem.starts_with(flag)), "{flag}: {problems:#?}");
    }
    assert_eq!(problems.len(), 9, "{problems:#?}");
    assert!(
        problems.iter().any(|problem| problem.contains("without TLS everyone on the way")),
        "{problems:#?}"
    );
    assert!(problems.iter().any(|problem| problem.ends_with("expected text or json")), "{problems:#?}");
}

/// Each is named as whoever gave it would find it again.
#[test]
fn problems_name_the_file_the_variable_and_the_flag() {
    let file = "[limits]\ndeadline = \"soon\"\nmax_requests = 0\ndedline = 1\n[listen]\ntcp = [\"a\", \"b\"]\n\
        [limit]\nx = 1\n[holds]\nfoo = 1\n[log]\nformat = 1979-05-27\n";
    let output =
        berthd(file, &[("BERTH_CPU_FAMILY", "x")], &["--log", "a=b=c", "--deadline=1ms", "--check-config"]);
    assert_eq!(output.status.code(), Some(64));
    let said = stderr(&output);
    let expected = [
        "berthd.toml: limits.max_requests = \"0\": expected a number from 1 to 100000",
        "berthd.toml: there is no setting limits.dedline; [limits] has: deadline, ",
        "berthd.toml: listen.tcp = [\"a\", \"b\"]: expected one value and not a list",
        "berthd.toml: there is no section [limit]; expected [listen], ",
        "berthd.toml: there is no setting holds.foo",
        "berthd.toml: log.format = 1979-05-27: expected a text",
        "BERTH_CPU_FAMILY=x: expected a number from 1 to 65535",
        "--log a=b=c: ",
    ];
    for line in expected {
        assert!(said.lines().any(|said| said.starts_with(&format!("berthd: {line}"))), "{line}\n{said}");
    }
    assert_eq!(said.lines().count(), expected.len(), "a flag stands before the file's deadline: {said}");
}

#[test]
fn files_that_are_none() {
    for (file, expected) in
        [("[limits", "line 1"), ("[limits]\ndeadline = 1s\n", "line 2"), ("x = 1", "no section [x]")]
    {
        let output = berthd(file, &[], &["--check-config"]);
        assert_eq!(output.status.code(), Some(64));
        assert!(stderr(&output).contains(expected), "{}", stderr(&output));
    }
    for path in ["/nonexistent/berthd.toml", "/", "/dev/zero"] {
        let output = Command::new(PROGRAM).args(["--check-config", "--config", path]).output().unwrap();
        assert_eq!(output.status.code(), Some(64));
        assert!(stderr(&output).starts_with(&format!("berthd: {path}: ")), "{}", stderr(&output));
    }
}

#[test]
fn a_flag_stands_before_a_variable_before_the_file() {
    let file = "[listen]\ntcp = \"127.0.0.1:1\"\nuds = \"/file\"\nready_file = \"/file\"\n[limits]\nmax_requests = 7\n";
    let variables =
        [("BERTH_UDS", "/variable"), ("BERTH_READY_FILE", "/variable"), ("BERTH_LOG_FORMAT", "json")];
    let output = berthd(file, &variables, &["--ready-file", "/flag", "--print-config"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let said = stdout(&output);
    for line in [
        "tcp = \"127.0.0.1:1\" # berthd.toml",
        "uds = \"/variable\" # BERTH_UDS",
        "ready_file = \"/flag\" # --ready-file",
        "max_requests = 7 # berthd.toml",
        "deadline = \"30s\" # default",
        "format = \"json\" # BERTH_LOG_FORMAT",
    ] {
        assert!(said.lines().any(|said| said == line), "{line}\n{said}");
    }
    // What is printed is a file that says the same.
    let again = berthd(&said, &[], &["--print-config"]);
    let values = |text: &str| -> Vec<String> {
        text.lines().map(|line| line.split(" # ").next().unwrap().to_owned()).collect()
    };
    assert_eq!(values(&stdout(&again)), values(&said), "{}", stderr(&again));
}

#[test]
fn what_can_be_off() {
    let tcp_of = |file: &str, variables: &[(&str, &str)], flags: &[&str]| {
        let flags = [flags, &["--print-config"]].concat();
        let output = berthd(file, variables, &flags);
        let said = stdout(&output);
        let line = said.lines().find(|line| line.starts_with("tcp = "));
        line.unwrap_or_else(|| panic!("{}", stderr(&output))).to_owned()
    };
    let on = "[listen]\nuds = \"/x\"\n";
    assert_eq!(tcp_of(on, &[], &["--no-tcp"]), "tcp = \"none\" # --no-tcp");
    assert_eq!(tcp_of(on, &[("BERTH_NO_TCP", "true")], &[]), "tcp = \"none\" # BERTH_NO_TCP");
    assert_eq!(tcp_of(on, &[("BERTH_NO_TCP", "1")], &["--tcp=127.0.0.1:1"]), "tcp = \"127.0.0.1:1\" # --tcp");
    assert_eq!(tcp_of(on, &[], &["--no-tcp", "--tcp=127.0.0.1:1"]), "tcp = \"127.0.0.1:1\" # --tcp");
    assert_eq!(tcp_of(on, &[], &["--tcp=127.0.0.1:1", "--no-tcp"]), "tcp = \"none\" # --no-tcp");
    assert_eq!(tcp_of("[listen]\nuds = \"/x\"\ntcp = \"none\"\n", &[], &[]), "tcp = \"none\" # berthd.toml");
}

#[test]
fn the_time_of_holds_is_within_the_longest() {
    let problems = problems(&["--hold-ttl", "20s", "--max-hold-ttl", "10s"]);
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(problems[0].contains("--hold-ttl") && problems[0].contains("--max-hold-ttl"), "{problems:?}");
    assert!(try_config(&["--hold-ttl", "10s", "--max-hold-ttl", "10s"]).is_ok());
}

#[test]
fn something_has_to_be_listened_on() {
    assert!(problems(&["--no-tcp", "--no-uds"])[0].contains("nothing to listen on"));
    let both = problems(&["--topology-synthetic", "pu:2", "--topology-xml", "/nonexistent"]);
    assert!(both.iter().any(|problem| problem.contains("contradicts")), "{both:?}");
}

#[test]
fn a_check_looks_at_everything_and_opens_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("run/berthd.sock");
    let check = |description: &str| {
        Command::new(PROGRAM)
            .args(["--config", "none", "--check-config", "--topology-synthetic", description, "--uds"])
            .arg(&socket)
            .output()
            .unwrap()
    };
    let right = check("pack:2 core:2 pu:2");
    assert!(right.status.success() && right.stdout.is_empty(), "{}", stderr(&right));
    let wrong = check("pack:2 core:x");
    assert_eq!(wrong.status.code(), Some(64), "{}", stderr(&wrong));
    assert!(!folder.path().join("run").exists());
}

#[test]
fn defaults() {
    let config = try_config(&["--uds", "/tmp/berthd.sock"]).unwrap().sections;
    assert_eq!(config.listen.tcp.unwrap().to_string(), "127.0.0.1:7117");
    assert_eq!((config.load.sample_interval, config.limits.max_requests), (Duration::from_secs(1), 256));
    assert!(config.log.format == LogFormat::Text && config.host.kernel.is_none());
}

/// The example file is written by `BERTH_BLESS=1 cargo test -p berthd example`.
#[test]
fn the_example_has_every_setting_with_its_default() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("berthd.example.toml");
    let now = Config::example();
    if std::env::var_os("BERTH_BLESS").is_some() {
        fs::write(&path, &now).unwrap();
    }
    assert_eq!(fs::read_to_string(&path).unwrap(), now, "see this test's comment");
    assert_eq!(stdout(&berthd("", &[], &["--example-config"])), now);
    // Every setting of it is one, and means what is in effect without it.
    let uncommented: Vec<&str> = now
        .lines()
        .map(|line| line.strip_prefix('#').filter(|rest| !rest.starts_with(' ')).unwrap_or(line))
        .collect();
    let given = stdout(&berthd(&uncommented.join("\n"), &[], &["--print-config"]));
    let default = stdout(&berthd("", &[], &["--print-config"]));
    assert!(given.lines().count() > 20 && !given.contains("# default"), "{given}");
    assert_eq!(given.replace("# berthd.toml", "# default"), default);
}

#[test]
fn the_help_teaches() {
    let help = Config::help();
    for word in ["grpcurl", "127.0.0.1:7117", "/run/berth/berthd.sock", "BERTH_LOG", "Exit status", "HWLOC_"]
    {
        assert!(help.contains(word), "{word} is not in the help:\n{help}");
    }
}

/// A file that is usually there counts, and one that cannot be read is a problem.
#[test]
fn the_named_file_has_to_be_there() {
    let folder = tempfile::tempdir().unwrap();
    let absent: PathBuf = folder.path().join("absent.toml");
    let output = Command::new(PROGRAM).env("BERTH_CONFIG", &absent).arg("--check-config").output().unwrap();
    assert_eq!(output.status.code(), Some(64));
    assert!(stderr(&output).contains("absent.toml: No such file"), "{}", stderr(&output));
}

#[test]
fn tcp_beyond_loopback_needs_tls_or_to_be_forced() {
    let beyond = ["--tcp", "0.0.0.0:7117"];
    let refused = problems(&beyond);
    assert!(refused.len() == 1 && refused[0].contains("--allow-plaintext-beyond-loopback"), "{refused:?}");
    let forced = try_config(&[beyond.as_slice(), &["--allow-plaintext-beyond-loopback"]].concat()).unwrap();
    assert_eq!(forced.sections.listen.tcp.unwrap().to_string(), "0.0.0.0:7117");
    let half = problems(&["--tls-cert", "/dev/null"]);
    assert!(half[0].contains("--tls-key"), "{half:?}");
    let alone = problems(&["--tls-client-ca", "/dev/null"]);
    assert!(alone[0].contains("--tls-cert"), "{alone:?}");
    // Certificates that are none are told at the start, and by the check.
    let none = berthd("", &[], &["--tls-cert", "/dev/null", "--tls-key", "/dev/null", "--check-config"]);
    assert_eq!(none.status.code(), Some(64), "{}", stderr(&none));
    assert!(stderr(&none).contains("TLS certificates"), "{}", stderr(&none));
}

#[test]
fn roles_name_whom_they_mean() {
    let roles = |flags: &[&str]| try_config(flags).unwrap().sections.roles;
    assert_eq!(roles(&["--allow-hold", "none"]).hold, []);
    let named = roles(&["--allow-admin", "uid:7", "--allow-admin", "cert:a.b=7"]).admin;
    assert_eq!(named.iter().map(ToString::to_string).collect::<Vec<_>>(), ["uid:7", "cert:a.b=7"]);
    let ownerless = problems(&["--allow-hold", "unix,cert:a.b"]);
    assert!(ownerless[0].contains("cert:agent.example=1000"), "{ownerless:?}");
    assert!(problems(&["--allow-read", "everyone"])[0].contains("loopback"));
}
