//! Completion scripts need no server.

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
