//! Documents that show what is typed and what is answered.
//!
//! In a block fenced as `console`, a line `$ …` is a command (a backslash at its end carries it on to the next line), and what
//! follows is its answer. A last line `…` of an answer stands for the rest of it. With INSTA_UPDATE=always answers are written
//! anew, those that end with `…` as long as they were.

use std::{fs, path::Path};

const FENCE: &str = "```";
const REST: &str = "…";
/// Lines of an answer that is cut and had none yet.
const LINES: usize = 24;

/// Holds each answer that a document of the repository shows against what is answered now, and tells how many that were.
/// `answer` gives None for commands that it does not know; `same` compares what is shown with what was answered.
pub(crate) fn check(
    document: &str,
    mut answer: impl FnMut(&str) -> Option<String>,
    same: impl Fn(&str, &str) -> bool,
) -> usize {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(document);
    let text = fs::read_to_string(&path).expect("it is there");
    let (mut written, mut faults, mut count) = (String::new(), Vec::new(), 0);
    let mut lines = text.lines().peekable();
    let mut is_console = false;
    while let Some(line) = lines.next() {
        written += &format!("{line}\n");
        if line.starts_with(FENCE) {
            is_console = line == "```console";
        }
        let Some(command) = line.strip_prefix("$ ").filter(|_| is_console) else { continue };
        let mut command = command.to_owned();
        while command.ends_with('\\') {
            let line = lines.next().expect("the command goes on");
            written += &format!("{line}\n");
            command += &format!("\n{line}");
        }
        let mut shown = String::new();
        while let Some(line) = lines.next_if(|line| !line.starts_with(FENCE) && !line.starts_with("$ ")) {
            shown += &format!("{line}\n");
        }
        let Some(answer) = answer(&command) else {
            written += &shown;
            continue;
        };
        count += 1;
        let answer = cut_as(&shown, &answer);
        if !same(&shown, &answer) {
            faults.push(format!("$ {command}\n{answer}"));
        }
        written += &answer;
    }
    if std::env::var("INSTA_UPDATE").is_ok_and(|update| update == "always") {
        fs::write(&path, written).expect("it can be written");
    } else {
        let faults = faults.join("\n");
        assert!(faults.is_empty(), "{document} should say:\n{faults}\nINSTA_UPDATE=always writes it");
    }
    count
}

/// The answer, cut where what is shown is.
fn cut_as(shown: &str, answer: &str) -> String {
    let shown: Vec<&str> = shown.lines().collect();
    let Some((&REST, before)) = shown.split_last() else { return answer.to_owned() };
    let count = if before.is_empty() { LINES } else { before.len() };
    answer.lines().take(count).map(|line| format!("{line}\n")).collect::<String>() + REST + "\n"
}
