//! Manual pages: one for each command, and one that tools for manual pages take.

use std::{collections::BTreeSet, fs, path::Path, process::Command};

use crate::{berth::berth, berthd, tools::said};

/// What mandoc remarks that changes nothing: line breaks beside blank lines, which clap_mangen writes, and that pages have no
/// date.
const REMARKS: [&str; 2] = ["skipping paragraph macro: br ", "missing date, using"];

/// Every page as `make man` writes them, in a folder of its own.
fn pages() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let told = berth(["man".as_ref(), folder.path().as_os_str()]).answer();
    assert_eq!(told, format!("{} pages are in {}.\n", names(folder.path()).len(), folder.path().display()));
    let daemon = said(Command::new(berthd::program()).arg("--man"));
    fs::write(folder.path().join("berthd.8"), daemon).expect("there is room");
    folder
}

/// The names of the files there.
fn names(folder: &Path) -> BTreeSet<String> {
    let files = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("a file").file_name());
    files.map(|name| name.into_string().expect("it is text")).collect()
}

/// The commands that a help text lists, and those below them.
fn commands(above: &[&str], found: &mut BTreeSet<String>) {
    found.insert([&["berth"], above].concat().join("-") + ".1");
    let help = berth(above.iter().chain(&["-h"])).answer();
    let Some((_, list)) = help.split_once("Commands:\n") else { return };
    let list = list.lines().take_while(|line| !line.is_empty()).filter(|line| !line.starts_with("   "));
    for name in list.filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help") {
        commands(&[above, &[name]].concat(), found);
    }
}

#[test]
fn each_command_has_a_page() {
    let mut wanted = BTreeSet::from(["berthd.8".to_owned()]);
    commands(&[], &mut wanted);
    assert!(wanted.contains("berth-slurm-task-prolog.1") && wanted.contains("berth-advise.1"), "{wanted:?}");
    let folder = pages();
    assert_eq!(names(folder.path()), wanted);
    for name in wanted {
        let page = fs::read_to_string(folder.path().join(&name)).expect("it is there");
        let version = format!("\"berth {}\" Berth", env!("CARGO_PKG_VERSION"));
        let title = page.lines().find(|line| line.starts_with(".TH ")).expect("a title");
        assert!(title.ends_with(&version), "{name}: {title}");
        let what = page.lines().skip_while(|line| *line != ".SH NAME").nth(1).expect("a line");
        assert!(what.contains(" \\- "), "{name}: {what}");
    }
}

#[test]
fn without_a_folder_it_is_the_page_of_the_whole() {
    let folder = pages();
    let page = fs::read_to_string(folder.path().join("berth.1")).expect("it is there");
    assert_eq!(berth(["man"]).answer(), page);
    for section in [".SH EXAMPLES", ".SH \"EXIT STATUS\"", ".SH SUBCOMMANDS"] {
        assert!(page.contains(section), "{section} in {page}");
    }
    let error = berth(["man", "/etc/passwd/x"]).refusal(2);
    assert!(error.contains("cannot write /etc/passwd/x"), "{error}");
}

/// By those that show them, as far as they are here.
#[test]
fn tools_for_manual_pages_take_them() {
    let folder = pages();
    let checks =
        [("mandoc", &["-T", "lint", "-W", "warning"][..]), ("man", &["--warnings", "--pager=cat", "-l"])];
    for (program, flags) in checks {
        if Command::new(program).arg("-w").output().is_err() {
            eprintln!("skipped: there is no {program} here");
            continue;
        }
        for name in names(folder.path()) {
            let mut command = Command::new(program);
            command
                .args(flags)
                .arg(folder.path().join(&name))
                .env("LC_ALL", "C.UTF-8")
                .env("MANWIDTH", "100");
            let output = command.output().expect("it starts");
            let complaints = String::from_utf8_lossy(&output.stderr);
            if program == "man" {
                assert!(output.status.success() && complaints.is_empty(), "{name}: {complaints}");
                continue;
            }
            let out = String::from_utf8_lossy(&output.stdout);
            let faults: Vec<&str> =
                out.lines().filter(|line| !REMARKS.iter().any(|remark| line.contains(remark))).collect();
            assert!(faults.is_empty() && complaints.is_empty(), "{complaints}{faults:#?}");
        }
    }
}
