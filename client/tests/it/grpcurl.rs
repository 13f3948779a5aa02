//! What `docs/grpcurl.md` shows is what a real berthd answers the real grpcurl and buf.

use std::process::Command;

use serde_json::Value;

use crate::{berthd::Berthd, shown, tools};

/// The host that the document's answers are about.
const HOST: [&str; 4] = ["--topology-synthetic", "pack:2 [numa] l3:2 core:4 pu:2", "--kernel", "6.12.95"];
/// Where the document has the server listen.
const TCP: &str = "127.0.0.1:7117";
const SOCKET: &str = "/run/berth/berthd.sock";

#[test]
fn the_document_shows_what_is_answered() {
    if ["grpcurl", "buf"].iter().any(|name| tools::tool(name).is_none()) {
        return;
    }
    let server = Berthd::start_with(["--tcp", "127.0.0.1:0"].iter().chain(&HOST));
    let (tcp, socket) = (server.tcp(), server.socket().display().to_string());
    let path = format!("{}:{}", tools::folder().display(), std::env::var("PATH").unwrap_or_default());
    let answer = |command: &str| {
        let command = command.replace(TCP, &tcp).replace(SOCKET, &socket);
        let output =
            Command::new("bash").args(["-c", &command]).env("PATH", &path).output().expect("it runs");
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8(said).expect("it is text").replace(&tcp, TCP).replace(&socket, SOCKET);
        Some(said)
    };
    let count = shown::check("docs/grpcurl.md", answer, is_alike);
    assert!(count > 20, "{count}");
}

/// The same words, whatever the numbers; of JSON documents the same fields, which may have become more.
fn is_alike(shown: &str, answer: &str) -> bool {
    match (documents(shown), documents(answer)) {
        (Some(shown), Some(answers)) => {
            shown.len() == answers.len()
                && shown.iter().zip(&answers).all(|(shown, answer)| holds(answer, shown))
        }
        _ => without_numbers(shown) == without_numbers(answer),
    }
}

/// The JSON documents that a text consists of.
fn documents(text: &str) -> Option<Vec<Value>> {
    let found: Result<Vec<Value>, _> = serde_json::Deserializer::from_str(text).into_iter().collect();
    found.ok().filter(|documents| !documents.is_empty())
}

/// Whether what is shown is part of what is answered: every field with a value of its kind, every word in capitals as it is.
fn holds(answer: &Value, shown: &Value) -> bool {
    match (answer, shown) {
        (Value::Object(answer), Value::Object(shown)) => {
            shown.iter().all(|(name, shown)| answer.get(name).is_some_and(|answer| holds(answer, shown)))
        }
        (Value::Array(answer), Value::Array(shown)) => {
            shown.iter().all(|shown| answer.iter().any(|answer| holds(answer, shown)))
        }
        (Value::String(answer), Value::String(shown)) => !is_word(shown) || answer == shown,
        (Value::Number(_), Value::Number(_)) => true,
        _ => answer == shown,
    }
}

/// A value of an enumeration, or a reason.
fn is_word(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_')
}

/// Each number and each id becomes 0, and blanks count as one.
fn without_numbers(text: &str) -> Vec<String> {
    text.trim().lines().map(|line| line.split_whitespace().map(plain).collect::<Vec<_>>().join(" ")).collect()
}

fn plain(word: &str) -> String {
    // The words within, such as an id in quotes; ids are long, and of hexadecimal digits and dashes.
    let is_part = |c: char| c.is_ascii_hexdigit() || c == '-';
    let is_id = |part: &str| part.len() >= 16 && part.contains(|c: char| c.is_ascii_digit());
    let mut plain = word.to_owned();
    for id in word.split(|c| !is_part(c)).filter(|part| is_id(part)) {
        plain = plain.replace(id, "0");
    }
    let mut short = String::new();
    for c in plain.chars() {
        match c.is_ascii_digit() {
            true if short.ends_with('0') => {}
            true => short.push('0'),
            false => short.push(c),
        }
    }
    short
}

#[test]
fn what_is_alike_is_told_from_what_is_not() {
    assert!(is_alike("{\"a\": 1, \"b\": \"SAFE\"}", "{\"b\": \"SAFE\", \"a\": 12, \"c\": 0}"));
    assert!(is_alike("{\"list\": [{\"cpus\": \"0-3\"}]}", "{\"list\": [{\"x\": 1}, {\"cpus\": \"4\"}]}"));
    for other in
        ["{\"a\": 1}", "{\"a\": 1, \"b\": \"UNSAFE\"}", "{\"a\": \"1\", \"b\": \"SAFE\"}", "no JSON", ""]
    {
        assert!(!is_alike("{\"a\": 1, \"b\": \"SAFE\"}", other), "{other}");
    }
    assert!(is_alike("a 17 b\n", "a  9 b"));
    assert!(is_alike(
        "\"31a63abc-0f26-41d0-9566-4a63d0d42aa0\",",
        "\"bee63abc-ff26-41d0-9566-4a63d0d42aab\","
    ));
    assert!(!is_alike("a 17 b", "a b"));
}
