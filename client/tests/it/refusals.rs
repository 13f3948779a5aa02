//! What cannot be answered is refused with the flag at fault, and the server goes on.

use std::fs;

use crate::{
    berth::{berth, machine},
    berthd::Berthd,
};

#[test]
fn bad_questions_name_the_flag_at_fault() {
    let server = Berthd::start();
    let synthetic = "pack:2 [numa] l3:2 core:4 pu:2";
    let two = ["predict", "-n", "2", "--host-synthetic", synthetic];
    let refused: [(&[&str], &str); 12] = [
        (&["predict", "-n", "0"], "--tasks: "),
        (&["predict", "-n", "1000000"], "--tasks: "),
        (&["--cpus", "500"], "--cpus: "),
        (&["--cpus", "0-99999"], "--cpus: "),
        (&["--cpus", "0x0"], "--cpus: "),
        (&["--cpus", ","], "--cpus: "),
        (&["--cpus", "zero"], "--cpus: "),
        (&["--from", "999"], "--from: "),
        (&["--kernel", "6.x.95"], "--kernel: "),
        (&["--profile", "v99"], "--profile: "),
        (&["--host-load", "900:1"], "--host-load: "),
        (&["--host-offline", "8-15", "--cpus", "8-15"], "--cpus: "),
    ];
    for (args, flag) in refused {
        let whole = if args[0] == "predict" { args.to_vec() } else { [&two[..], args].concat() };
        let said = server.berth(&whole).refusal(1);
        assert!(said.starts_with("berth: "), "{args:?}: {said}");
        assert!(said.contains(&format!("\n  {flag}")), "{args:?}: {said}");
    }
    server.berth(["info"]).answer();
}

#[test]
fn every_fault_is_named_at_once() {
    let server = Berthd::start();
    let said = server.berth(["advise", "-n", "0", "--cpus", "zero", "--kernel", "six"]).refusal(1);
    for flag in ["--tasks: ", "--cpus: ", "--kernel: "] {
        assert!(said.contains(flag), "{said}");
    }
    assert!(said.contains("INVALID_ARGUMENT"), "{said}");
}

#[test]
fn a_host_that_cannot_be_read_is_refused() {
    let server = Berthd::start();
    let folder = tempfile::tempdir().expect("a folder");
    let broken = folder.path().join("broken.xml");
    fs::write(&broken, "<topology>").expect("it is written");
    for xml in [broken, machine("xml-v3-format-nvidia-dgx2.xml")] {
        let said = server.berth(["topology".as_ref(), "--host-xml".as_ref(), xml.as_os_str()]).refusal(1);
        assert!(said.contains("--host-xml: "), "{said}");
    }
    let said = server.berth(["topology", "--host-synthetic", "pack:two"]).refusal(1);
    assert!(said.contains("--host-synthetic: "), "{said}");
    server.berth(["info"]).answer();
}

/// None of these reaches a server.
#[test]
fn what_cannot_be_typed_is_a_usage_error() {
    let folder = tempfile::tempdir().expect("a folder");
    let long = folder.path().join("long.xml");
    fs::write(&long, vec![b' '; (16 << 20) + 1]).expect("it is written");
    let binary = folder.path().join("binary.xml");
    fs::write(&binary, [0xff, 0xfe]).expect("it is written");
    let (long, binary) = (long.to_str().expect("a path"), binary.to_str().expect("a path"));
    let refused: [(&[&str], &str); 13] = [
        (&["predict"], "--tasks <COUNT>"),
        (&["predict", "-n", "-1"], "'-1'"),
        (&["predict", "-n", "many"], "'many'"),
        (&["predict", "-n", "1", "--host-load", "0-3"], "`0-3` has no number of tasks"),
        (&["predict", "-n", "1", "--host-load", "0:1", "--host-idle"], "cannot be used with"),
        (&["predict", "-n", "1", "--host-xml", "a", "--host-synthetic", "b"], "cannot be used with"),
        (
            &["predict", "-n", "1", "--host-xml", "/nowhere.xml"],
            "--host-xml: cannot read /nowhere.xml: No such file",
        ),
        (&["predict", "-n", "1", "--host-xml", long], "is longer than 16777216 bytes"),
        (&["predict", "-n", "1", "--host-xml", binary], "is not text in UTF-8"),
        (&["advise", "-n", "1", "--form", "cage"], "[possible values: mask, split, per-task, none]"),
        (&["predict", "-n", "1", "-o", "list"], "--output list: only `advise`"),
        (&["watch", "load", "-o", "list"], "--output list: only `advise`"),
        (&["info", "--timeout", "soon"], "write a time of up to an hour"),
    ];
    for (args, expected) in refused {
        let said = berth(args).refusal(2);
        assert!(said.contains(expected), "{args:?}: {said}");
    }
}
