//! Why a kernel cannot be told.

use std::fmt;

/// What is wrong with what was said of a kernel. Every message names the field, its value and what would be
/// accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The text is no kernel release.
    #[error(
        "{field} `{value}` is not a kernel release: {problem}; expected MAJOR.MINOR or MAJOR.MINOR.PATCH, then \
         nothing, -rcN or a vendor's suffix, such as 6.12.95, 6.18-rc3 or 6.1.0-57-cloud-amd64{}",
        field.also_accepts()
    )]
    Malformed {
        /// Where the text was given.
        field: Field,
        /// The text, cut to a readable length.
        value: String,
        /// What cannot be read.
        problem: &'static str,
    },
    /// The text is longer than any kernel prints.
    #[error("{field} `{value}` has {len} bytes; expected what uname prints, at most {most} bytes")]
    TooLong {
        /// Where the text was given.
        field: Field,
        /// Its beginning.
        value: String,
        /// Its length in bytes.
        len: usize,
        /// The longest that is read.
        most: usize,
    },
    /// The kernel places tasks by rules that no profile describes.
    #[error("{field} `{value}` is not modelled: kernels before 5.3; expected 5.3 or later{note}")]
    BeforeModelled {
        /// Where the text was given.
        field: Field,
        /// The text.
        value: String,
        /// What is special about it; empty if nothing.
        note: &'static str,
    },
}

impl Error {
    /// The field that has to be mended.
    pub fn field(&self) -> Field {
        match self {
            Self::Malformed { field, .. }
            | Self::TooLong { field, .. }
            | Self::BeforeModelled { field, .. } => *field,
        }
    }
}

/// Where a text about a kernel was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Field {
    /// A kernel typed by an operator: a release or a profile's name.
    Kernel,
    /// `uname -r`.
    Release,
    /// `uname -v`.
    Version,
    /// `/proc/version_signature`.
    VersionSignature,
}

impl Field {
    fn also_accepts(self) -> &'static str {
        match self {
            Self::Kernel => ", or a profile's name, such as mel-v5",
            Self::Release | Self::Version | Self::VersionSignature => "",
        }
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Kernel => "kernel",
            Self::Release => "release",
            Self::Version => "version",
            Self::VersionSignature => "version_signature",
        })
    }
}

/// A text as it may stand in a message: on one line, and short.
pub(super) fn excerpt(text: &str) -> String {
    const MOST: usize = 64;
    let mut shown: String = text.chars().take(MOST).flat_map(char::escape_debug).collect();
    if text.chars().nth(MOST).is_some() {
        shown.push('…');
    }
    shown
}
