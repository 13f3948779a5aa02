//! The log: to stderr, as text or as one JSON object a line.

use crate::{
    audit,
    config::{Log, LogFormat},
};
use std::{
    io::{self, Write},
    sync::{Mutex, OnceLock, PoisonError},
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

/// The one log of the process.
static LOG: OnceLock<Started> = OnceLock::new();

struct Started {
    handle: Handle<EnvFilter, Registry>,
    /// The filter in effect, as the operator wrote it.
    filter: Mutex<String>,
}

/// Starts logging. Later calls change nothing.
pub fn start(log: &Log) {
    let (filter, handle) = reload::Layer::new(of_operator(&log.filter));
    let lines = fmt::layer().with_writer(|| LenientStderr).log_internal_errors(false);
    let lines = match log.format {
        LogFormat::Json => lines.json().flatten_event(true).boxed(),
        LogFormat::Text => lines.with_ansi(io::IsTerminal::is_terminal(&io::stderr())).boxed(),
    };
    if tracing_subscriber::registry().with(filter).with(lines).try_init().is_ok() {
        let _ = LOG.set(Started { handle, filter: Mutex::new(log.filter.clone()) });
        std::panic::set_hook(Box::new(|panic| tracing::error!(%panic, "panicked")));
    }
}

/// Changes what is logged from now on. Nothing happens if the log was not started here.
pub(crate) fn set_filter(filter: &str) {
    if let Some(log) = LOG.get() {
        // The log lives as long as the process.
        let _ = log.handle.reload(of_operator(filter));
        filter.clone_into(&mut log.filter.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// What is logged, as the operator wrote it. Empty if the log was not started here.
pub(crate) fn filter() -> String {
    LOG.get().map(|log| log.filter.lock().unwrap_or_else(PoisonError::into_inner).clone()).unwrap_or_default()
}

/// Whether it says what is to be logged.
///
/// # Errors
///
/// What would be accepted instead.
pub(crate) fn check_filter(filter: &str) -> Result<(), String> {
    let checked = EnvFilter::try_new(filter).map(drop);
    checked.map_err(|error| format!("{error}; expected a level such as info, or berthd=debug,info"))
}

/// Operators know the program by its name, not its library's. Audit lines are told unless they are turned off by name.
fn of_operator(filter: &str) -> EnvFilter {
    let filter = format!("{}=info,{filter},{}", audit::TARGET, filter.replace("berthd", "berth_server"));
    EnvFilter::try_new(filter).unwrap_or_else(|_| EnvFilter::new("info"))
}
