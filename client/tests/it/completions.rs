//! Completion scripts need no server.

use std::process::Command;

use crate::berth::berth;

#[test]
fn every_shell_has_a_script() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = berth(["completions", shell]).answer();
        assert!(script.contains("host-synthetic"), "{shell}: {script}");
    }
}

#[test]
fn a_shell_that_is_not_known_is_a_usage_error() {
    let said = berth(["completions", "csh"]).refusal(2);
    assert!(said.contains("[possible values: bash, elvish, fish, powershell, zsh]"), "{said}");
}

/// By the shells themselves, those that are here.
#[test]
fn shells_take_their_scripts() {
    for shell in ["bash", "zsh", "fish"] {
        let script = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(script.path(), berth(["completions", shell]).answer()).expect("there is room");
        let Ok(output) = Command::new(shell).arg("-n").arg(script.path()).output() else {
            eprintln!("skipped: there is no {shell} here");
            continue;
        };
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && said.is_empty(), "{shell}: {said}");
    }
}
