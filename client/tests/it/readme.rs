//! What the README and the tutorial show is what is printed.

use std::path::Path;

use crate::{berth::berth_with, berthd::Berthd, shown};

#[test]
fn the_readme_shows_what_is_printed() {
    assert!(answers_of("README.md") > 0, "the README shows an answer");
}

#[test]
fn the_tutorial_shows_what_is_printed() {
    assert!(answers_of("docs/tutorial.md") >= 8, "the tutorial shows answers");
}

/// Types the commands of a document; says how many there were.
fn answers_of(document: &str) -> usize {
    let server = Berthd::start();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let in_root = |word: &str| match word.strip_prefix("testdata/") {
        Some(rest) => format!("{}/testdata/{rest}", root.display()),
        None => word.to_owned(),
    };
    let answer = |command: &str| {
        let words = command.strip_prefix("berth ")?.split_whitespace().map(in_root);
        let address = server.address();
        let words: Vec<String> = ["--server".to_owned(), address].into_iter().chain(words).collect();
        Some(
            berth_with(words, |command| _ = command.env("LANG", "C.UTF-8").env_remove("LC_ALL"), "").answer(),
        )
    };
    shown::check(document, answer, |shown, answer| shown == answer)
}
