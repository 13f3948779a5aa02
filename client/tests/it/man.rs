//! The manual pages, made from what `--help` says.

use std::fs;

use crate::berth::berth;

#[test]
fn every_command_has_a_page() {
    let folder = tempfile::tempdir().unwrap();
    let pages = folder.path().join("man1");
    let said = berth(["man", pages.to_str().unwrap()]).answer();
    assert!(said.ends_with(&format!("pages are in {}.\n", pages.display())), "{said}");
    for command in [
        "",
        "-advise",
        "-predict",
        "-run",
        "-verify",
        "-map",
        "-hold",
        "-slurm-prolog",
        "-kube-nri",
        "-watch-load",
    ] {
        let page = fs::read_to_string(pages.join(format!("berth{command}.1"))).unwrap_or_default();
        assert!(page.contains(&format!(".TH berth{command} 1")), "berth{command}: {page}");
        assert!(page.contains(".SH NAME") && page.contains(".SH OPTIONS"), "berth{command}: {page}");
        let is_part = ["-slurm-prolog", "-watch-load"].contains(&command);
        assert!(is_part || page.contains("Examples:"), "berth{command} shows examples: {page}");
    }
    let whole = berth(["man"]).answer();
    assert!(whole.contains(&format!("\"berth {}\"", env!("CARGO_PKG_VERSION"))), "{whole}");
    assert!(berth(["man", "/etc/passwd/x"]).refusal(2).contains("/etc/passwd/x"));
}
