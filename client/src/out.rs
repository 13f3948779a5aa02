//! Standard output, which is for answers, and standard error, which is for everything else.

use std::io::{self, Write as _};

use berth_proto::v1::Warning;

use crate::{Error, Exit, flags::as_typed, text::Tone};

/// Whether anybody reads on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reader {
    /// Somebody may.
    There,
    /// The reader, such as `head`, has seen enough. That is no failure.
    Gone,
}

/// Writes a part of the answer.
///
/// # Errors
///
/// It cannot be written, and not because the reader is gone.
pub(crate) fn write(document: &str) -> io::Result<Reader> {
    let mut out = io::stdout().lock();
    match out.write_all(document.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(Reader::There),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(Reader::Gone),
        Err(error) => Err(error),
    }
}

/// Says a line on standard error. Nobody can be told that it is gone.
pub(crate) fn say(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// Says a warning of the server.
pub(crate) fn warn(warning: &Warning, colour: bool) {
    say(&format!("{}: {}", Tone::Doubtful.paint("warning", colour), as_typed(&warning.message)));
}

/// Says why there is no answer, and what to do.
pub(crate) fn complain(error: &Error, colour: bool) -> Exit {
    say(&format!("{}: {error}", Tone::Bad.paint("berth", colour)));
    error.advice().iter().for_each(|line| say(&format!("  {line}")));
    error.exit()
}
