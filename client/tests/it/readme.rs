//! What the README shows is what is printed.
//!
//! Each block that starts with `$ berth …` is that command's answer; a last line `…` stands for the rest of it. With
//! INSTA_UPDATE=always the blocks are written anew, those that end with `…` as long as they were.

use std::{fs, path::Path};

use crate::berthd::Berthd;

const FENCE: &str = "```";
/// Lines of a block that is cut and had none yet.
const LINES: usize = 24;

#[test]
fn the_readme_shows_what_is_printed() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let text = fs::read_to_string(root.join("README.md")).unwrap();
    let server = Berthd::start();
    let mut written = String::new();
    let mut lines = text.lines();
    let mut blocks = 0;
    while let Some(line) = lines.next() {
        written += &format!("{line}\n");
        let Some(command) = line.strip_prefix("$ berth ") else { continue };
        let shown: Vec<&str> = lines.by_ref().take_while(|line| !line.starts_with(FENCE)).collect();
        written += &answer(&server, &root, command, &shown);
        written += &format!("{FENCE}\n");
        blocks += 1;
    }
    assert!(blocks > 0, "the README shows an answer");
    if std::env::var("INSTA_UPDATE").is_ok_and(|update| update == "always") {
        fs::write(root.join("README.md"), written).unwrap();
    } else {
        assert!(written == text, "the README should say:\n{written}\nINSTA_UPDATE=always writes it");
    }
}

/// The command's answer, cut where what is shown is.
fn answer(server: &Berthd, root: &Path, command: &str, shown: &[&str]) -> String {
    let in_root = |word: &str| match word.strip_prefix("testdata/") {
        Some(rest) => format!("{}/testdata/{rest}", root.display()),
        None => word.to_owned(),
    };
    let answer = server.berth(command.split_whitespace().map(in_root)).answer();
    let Some((&"…", before)) = shown.split_last() else { return answer };
    let count = if before.is_empty() { LINES } else { before.len() };
    answer.lines().take(count).map(|line| format!("{line}\n")).collect::<String>() + "…\n"
}
