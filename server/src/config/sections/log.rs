//! The log.

use super::prelude::*;
use crate::{config::parse::Form, telemetry};

section! {
    /// What is logged.
    Log "log";

    /// What is logged to stderr, in the form of RUST_LOG, such as debug or berthd=debug,info.
    ///
    /// The lines about holds are told in every case, unless audit=off is part of it.
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
    Parser::new(Form::Text, |text| telemetry::check_filter(text).map(|()| text.to_owned()))
}
