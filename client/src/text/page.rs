//! What a text is laid out for, and the text as it grows.

use std::env;
use std::io::IsTerminal as _;

use super::{Table, Tone, wrap::wrap};

/// Columns of a text that does not go to a terminal.
const USUAL_WIDTH: usize = 100;
/// Narrower than this, tables cannot be read; wider, sentences cannot.
const WIDTHS: std::ops::RangeInclusive<usize> = 60..=140;

/// When to use colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Colour {
    /// On a terminal, unless NO_COLOR is set
    #[default]
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

impl Colour {
    fn is_on(self, terminal: bool) -> bool {
        let set = |name| env::var_os(name).is_some_and(|value| !value.is_empty());
        match self {
            Self::Always => true,
            Self::Never => false,
            Self::Auto => {
                terminal && !set("NO_COLOR") && env::var_os("TERM").is_none_or(|term| term != "dumb")
            }
        }
    }
}

/// What a text is laid out for.
#[derive(Debug, Clone, Copy)]
pub struct Page {
    /// Columns.
    pub width: usize,
    /// Whether to use colours.
    pub colour: bool,
    /// Whether to tell more, and to cut no list short.
    pub verbose: bool,
}

impl Page {
    /// The page that standard output is.
    pub fn stdout(colour: Colour, verbose: bool) -> Self {
        let columns = env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
        let of_terminal =
            || terminal_size::terminal_size_of(std::io::stdout()).map(|(width, _)| usize::from(width.0));
        let width: usize = columns.or_else(of_terminal).unwrap_or(USUAL_WIDTH);
        Self {
            width: width.clamp(*WIDTHS.start(), *WIDTHS.end()),
            colour: colour.is_on(std::io::stdout().is_terminal()),
            verbose,
        }
    }

    /// Whether standard error takes colours.
    pub(crate) fn stderr_colour(colour: Colour) -> bool {
        colour.is_on(std::io::stderr().is_terminal())
    }
}

/// A text as it grows, block by block.
#[derive(Debug)]
pub(crate) struct Text {
    page: Page,
    out: String,
}

impl Text {
    pub(crate) fn new(page: Page) -> Self {
        Self { page, out: String::new() }
    }

    pub(crate) fn page(&self) -> Page {
        self.page
    }

    /// A heading, after an empty line if it is not the first.
    pub(crate) fn heading(&mut self, text: &str) {
        if !self.out.is_empty() {
            self.out.push('\n');
        }
        self.out.push_str(&Tone::Heading.paint(text, self.page.colour));
        self.out.push('\n');
    }

    /// Labels and what they stand for, side by side. Without a text a label is left out.
    pub(crate) fn fields<'a>(&mut self, fields: impl IntoIterator<Item = (&'a str, Tone, String)>) {
        let fields: Vec<_> = fields.into_iter().filter(|(_, _, text)| !text.is_empty()).collect();
        let widest = fields.iter().map(|(label, ..)| label.chars().count()).max().unwrap_or(0);
        let indent = widest + 4;
        for (label, tone, text) in fields {
            for (i, line) in wrap(&text, self.page.width.saturating_sub(indent)).iter().enumerate() {
                let label = if i == 0 { label } else { "" };
                // The tone is that of the first word; a sentence in colour cannot be read.
                let line = if i == 0 { first_word(tone, line, self.page.colour) } else { line.clone() };
                self.out.push_str(&format!("  {label:<widest$}  {line}\n"));
            }
        }
    }

    /// A sentence, indented as the blocks are.
    pub(crate) fn sentence(&mut self, text: &str) {
        self.hanging("", text);
    }

    /// A sentence with a dash before it.
    pub(crate) fn item(&mut self, text: &str) {
        self.hanging("- ", text);
    }

    fn hanging(&mut self, mark: &str, text: &str) {
        let hang = " ".repeat(mark.len());
        for (i, line) in wrap(text, self.page.width.saturating_sub(2 + mark.len())).iter().enumerate() {
            let mark = if i == 0 { mark } else { hang.as_str() };
            self.out.push_str(&format!("  {mark}{line}\n"));
        }
    }

    /// A table, if it has rows.
    pub(crate) fn table(&mut self, table: &Table) {
        self.out.push_str(&table.layout(self.page));
    }

    /// An empty line.
    pub(crate) fn gap(&mut self) {
        self.out.push('\n');
    }

    pub(crate) fn finish(self) -> String {
        self.out
    }
}

fn first_word(tone: Tone, line: &str, colour: bool) -> String {
    let end = line.find([' ', ':', ';', ',']).unwrap_or(line.len());
    let (word, rest) = line.split_at(end);
    if tone == Tone::Plain { line.to_owned() } else { format!("{}{rest}", tone.paint(word, colour)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: Page = Page { width: 30, colour: false, verbose: false };

    #[test]
    fn fields_line_up_and_hang() {
        let mut text = Text::new(PAGE);
        text.heading("Answer");
        text.fields([
            ("verdict", Tone::Bad, "PILE_UP: ten tasks on one CPU".to_owned()),
            ("nothing", Tone::Plain, String::new()),
            ("use", Tone::Plain, "18.18 %".to_owned()),
        ]);
        text.item("a sentence that is too long for one line");
        let expected = "\
Answer
  verdict  PILE_UP: ten tasks
           on one CPU
  use      18.18 %
  - a sentence that is too
    long for one line
";
        assert_eq!(text.finish(), expected);
    }

    #[test]
    fn colour_is_on_the_first_word_alone() {
        let mut text = Text::new(Page { colour: true, ..PAGE });
        text.fields([("verdict", Tone::Good, "SAFE: no run piles up".to_owned())]);
        assert_eq!(text.finish(), "  verdict  \u{1b}[32mSAFE\u{1b}[0m: no run piles\n           up\n");
    }

    #[test]
    fn colours_are_never_used_unasked() {
        assert!(Colour::Always.is_on(false));
        assert!(!Colour::Never.is_on(true));
        assert!(!Colour::Auto.is_on(false));
    }
}
