//! What the README shows is what is printed.

use std::path::Path;

use crate::{berthd::Berthd, shown};

#[test]
fn the_readme_shows_what_is_printed() {
    let server = Berthd::start();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let in_root = |word: &str| match word.strip_prefix("testdata/") {
        Some(rest) => format!("{}/testdata/{rest}", root.display()),
        None => word.to_owned(),
    };
    let answer = |command: &str| {
        let words = command.strip_prefix("berth ")?.split_whitespace().map(in_root);
        Some(server.berth(words).answer())
    };
    let count = shown::check("README.md", answer, |shown, answer| shown == answer);
    assert!(count > 0, "the README shows an answer");
}
