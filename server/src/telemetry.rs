//! The log: to stderr, as text or as one JSON object a line.

use crate::config::{Log, LogFormat};
use std::{
    io::{self, Write},
    sync::OnceLock,
};
use tracing_subscriber::{
    EnvFilter, Layer as _, Registry, fmt,
    layer::SubscriberExt as _,
    reload::{self, Handle},
    util::SubscriberInitExt as _,
};

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

/// The filter in effect: there is one log per process.
static FILTER: OnceLock<Handle<EnvFilter, Registry>> = OnceLock::new();

/// Starts logging. Later calls change nothing.
pub fn start(log: &Log) {
    let (filter, handle) = reload::Layer::new(of_operator(&log.filter));
    let lines = fmt::layer().with_writer(|| LenientStderr).log_internal_errors(false);
    let lines = match log.format {
        LogFormat::Json => lines.json().flatten_event(true).boxed(),
        LogFormat::Text => lines.with_ansi(io::IsTerminal::is_terminal(&io::stderr())).boxed(),
    };
    if tracing_subscriber::registry().with(filter).with(lines).try_init().is_ok() {
        let _ = FILTER.set(handle);
        std::panic::set_hook(Box::new(|panic| tracing::error!(%panic, "panicked")));
    }
}

/// Changes what is logged from now on. Nothing happens if the log was not started here.
pub(crate) fn set_filter(filter: &str) {
    if let Some(handle) = FILTER.get() {
        // The log lives as long as the process.
        let _ = handle.reload(of_operator(filter));
    }
}

/// Operators know the program by its name, not its library's.
fn of_operator(filter: &str) -> EnvFilter {
    let filter = format!("{filter},{}", filter.replace("berthd", "berth_server"));
    EnvFilter::try_new(filter).unwrap_or_else(|_| EnvFilter::new("info"))
}
