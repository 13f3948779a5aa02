//! The log.

use super::prelude::*;
use crate::config::parse::Form;
use tracing_subscriber::EnvFilter;

section! {
    /// What is logged.
    Log "log";

    /// What is logged to stderr, in the form of RUST_LOG, such as debug or berthd=debug,info.
    filter: String = Setting::new("log", "FILTER", filter()).or("info").live();

    /// How it is logged: text or json.
    format: LogFormat =
        Setting::new("log-format", "FORMAT", parse::choice(&[("text", LogFormat::Text), ("json", LogFormat::Json)]))
            .or("text");
}

/// How a line of the log is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

fn filter() -> Parser<String> {
    Parser::new(Form::Text, |text| match EnvFilter::try_new(text) {
        Ok(_) => Ok(text.to_owned()),
        Err(error) => Err(format!("{error}; expected a level such as info, or berthd=debug,info")),
    })
}
