//! The log: to stderr, as text or as one JSON object a line.

use crate::config::Log;
use tracing_subscriber::{EnvFilter, fmt};

/// Starts logging. Later calls change nothing: there is one log per process.
pub fn start(log: &Log) {
    // Operators know the program by its name, not its library's.
    let filter = format!("{},{}", log.filter, log.filter.replace("berthd", "berth_server"));
    let filter = EnvFilter::try_new(filter).unwrap_or_else(|_| EnvFilter::new("info"));
    let lines = fmt().with_env_filter(filter).with_writer(std::io::stderr);
    let started = if log.json {
        lines.json().flatten_event(true).try_init()
    } else {
        lines.with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr())).try_init()
    };
    if started.is_ok() {
        std::panic::set_hook(Box::new(|panic| tracing::error!(%panic, "panicked")));
    }
}
