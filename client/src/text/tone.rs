//! Colours that mean something. Without them nothing is lost: the words say the same.

use anstyle::{AnsiColor, Style};

/// What a word is to the reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    /// A word like any other.
    Plain,
    /// A heading.
    Heading,
    /// All is well.
    Good,
    /// A pile-up, or a form that is not safe.
    Bad,
    /// Not known, or a warning.
    Doubtful,
}

impl Tone {
    /// The text in this tone, as it is if `colour` is off.
    pub(crate) fn paint(self, text: &str, colour: bool) -> String {
        let style = match self {
            Self::Plain => Style::new(),
            Self::Heading => Style::new().bold(),
            Self::Good => AnsiColor::Green.on_default(),
            Self::Bad => AnsiColor::Red.on_default().bold(),
            Self::Doubtful => AnsiColor::Yellow.on_default(),
        };
        if colour { format!("{style}{text}{style:#}") } else { text.to_owned() }
    }
}
