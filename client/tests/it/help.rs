//! Help texts are golden files: they are the documentation, and a change of them is seen in review.

use crate::berth::berth;

fn help(command: &[&str]) -> String {
    berth(command.iter().chain(&["--help"])).answer()
}

#[test]
fn berth_explains_itself() {
    insta::assert_snapshot!("berth", help(&[]));
}

#[test]
fn each_command_explains_itself() {
    for command in [
        "topology",
        "load",
        "map",
        "top",
        "predict",
        "advise",
        "explain",
        "run",
        "hold",
        "renew",
        "release",
        "holds",
        "verify",
        "watch",
        "slurm",
        "kube",
        "health",
        "info",
        "profiles",
        "completions",
        "man",
    ] {
        insta::assert_snapshot!(command, help(&[command]));
    }
    for what in ["install", "prolog", "task-prolog", "epilog"] {
        insta::assert_snapshot!(format!("slurm_{what}"), help(&["slurm", what]));
    }
    for what in ["device-plugin", "nri", "status"] {
        insta::assert_snapshot!(format!("kube_{what}"), help(&["kube", what]));
    }
    for what in ["holds", "load", "topology"] {
        insta::assert_snapshot!(format!("watch_{what}"), help(&["watch", what]));
    }
}

#[test]
fn no_command_is_a_question_for_help() {
    let said = berth([""; 0]);
    assert_eq!(said.status, 2);
    assert!(said.stderr.contains("Usage: berth [OPTIONS] <COMMAND>"), "{}", said.stderr);
}

#[test]
fn the_version_is_that_of_the_workspace() {
    assert_eq!(berth(["--version"]).answer(), concat!("berth ", env!("CARGO_PKG_VERSION"), "\n"));
}
