//! The log: to stderr, as text or as one JSON object a line.

use crate::config::Log;
use std::io::{self, Write};
use tracing_subscriber::{EnvFilter, fmt};

/// Stderr, as far as it takes what is written: a full disk or a log reader that went away ends no daemon.
struct LenientStderr;

impl Write for LenientStderr {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let _ = io::stderr().write_all(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let _ = io::stderr().flush();
        Ok(())
    }
}

/// Starts logging. Later calls change nothing: there is one log per process.
pub fn start(log: &Log) {
    // Operators know the program by its name, not its library's.
    let filter = format!("{},{}", log.filter, log.filter.replace("berthd", "berth_server"));
    let filter = EnvFilter::try_new(filter).unwrap_or_else(|_| EnvFilter::new("info"));
    let lines = fmt().with_env_filter(filter).with_writer(|| LenientStderr).log_internal_errors(false);
    let started = if log.json {
        lines.json().flatten_event(true).try_init()
    } else {
        lines.with_ansi(io::IsTerminal::is_terminal(&io::stderr())).try_init()
    };
    if started.is_ok() {
        std::panic::set_hook(Box::new(|panic| tracing::error!(%panic, "panicked")));
    }
}
