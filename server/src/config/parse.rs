//! From a value as it was typed to what it means, with what would have been accepted instead.

use std::{
    fmt,
    fs::File,
    io::Read,
    ops::RangeInclusive,
    path::{Path, PathBuf},
    str::FromStr,
    time::Duration,
};

/// The value that turns off what can be off.
pub(super) const NONE: &str = "none";

/// A value as it was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Raw {
    One(String),
    /// A list of the file, or a flag that was given several times.
    Many(Vec<String>),
}

/// As it is typed.
impl fmt::Display for Raw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::One(text) => f.write_str(text),
            Self::Many(texts) => f.write_str(&texts.join(",")),
        }
    }
}

/// How a value is written in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// In quotes.
    Text,
    /// Bare.
    Number,
    /// `true` or `false`; a flag without a value.
    Switch,
    /// A list of texts; a flag that may be given several times, or once with commas.
    List,
}

type Parse<T> = dyn Fn(&Raw) -> Result<T, String>;

/// What a value is understood by. Its error says what would be accepted.
pub(super) struct Parser<T> {
    pub(super) form: Form,
    parse: Box<Parse<T>>,
}

impl<T: 'static> Parser<T> {
    /// Understands one text.
    pub(super) fn new(form: Form, parse: impl Fn(&str) -> Result<T, String> + 'static) -> Self {
        let parse = move |raw: &Raw| match raw {
            Raw::One(text) => parse(text),
            Raw::Many(_) => Err("expected one value and not a list".to_owned()),
        };
        Self { form, parse: Box::new(parse) }
    }
}

impl<T> Parser<T> {
    pub(super) fn parse(&self, raw: &Raw) -> Result<T, String> {
        (self.parse)(raw)
    }

    /// Understands the same, and makes something else of it.
    pub(super) fn map<U>(self, make: impl Fn(T) -> U + 'static) -> Parser<U>
    where
        T: 'static,
    {
        let Self { form, parse } = self;
        Parser { form, parse: Box::new(move |raw| parse(raw).map(&make)) }
    }
}

/// Any text but none.
pub(super) fn text() -> Parser<String> {
    Parser::new(Form::Text, |text| {
        if text.is_empty() { Err("expected a text".to_owned()) } else { Ok(text.to_owned()) }
    })
}

/// A file's or folder's name.
pub(super) fn path() -> Parser<PathBuf> {
    Parser::new(Form::Text, |text| {
        if text.is_empty() { Err("expected a path".to_owned()) } else { Ok(PathBuf::from(text)) }
    })
}

/// A number within bounds.
pub(super) fn number<N>(bounds: RangeInclusive<N>) -> Parser<N>
where
    N: FromStr + PartialOrd + fmt::Display + Copy + 'static,
{
    Parser::new(Form::Number, move |text| {
        let number = text.parse().ok().filter(|number| bounds.contains(number));
        number.ok_or_else(|| format!("expected a number from {} to {}", bounds.start(), bounds.end()))
    })
}

/// A time within bounds.
pub(super) fn time(bounds: RangeInclusive<Duration>) -> Parser<Duration> {
    Parser::new(Form::Text, move |text| {
        amount_of_time(text).filter(|time| bounds.contains(time)).ok_or_else(|| {
            let (least, most) = bounds.clone().into_inner();
            format!("expected a time from {least:?} to {most:?}, written 500ms, 2s or 1m")
        })
    })
}

/// Yes or no.
pub(super) fn switch() -> Parser<bool> {
    Parser::new(Form::Switch, |text| text.parse().map_err(|_| "expected true or false".to_owned()))
}

/// One of a few words.
pub(super) fn choice<T: Clone + 'static>(words: &'static [(&'static str, T)]) -> Parser<T> {
    Parser::new(Form::Text, move |text| {
        let found = words.iter().find(|(word, _)| *word == text);
        found.map(|(_, value)| value.clone()).ok_or_else(|| {
            let words: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            format!("expected {}", words.join(" or "))
        })
    })
}

/// Nothing, written `none` or empty, or what the parser understands.
pub(super) fn optional<T: 'static>(parser: Parser<T>) -> Parser<Option<T>> {
    let form = parser.form;
    let parse = move |raw: &Raw| match raw {
        Raw::One(text) if text == NONE || text.is_empty() => Ok(None),
        _ => parser.parse(raw).map(Some),
    };
    Parser { form, parse: Box::new(parse) }
}

/// Any number of what the parser understands: a list in the file; with commas, or a flag several times, elsewhere.
pub(super) fn list<T: 'static>(parser: Parser<T>) -> Parser<Vec<T>> {
    let parse = move |raw: &Raw| {
        let texts: Vec<String> = match raw {
            Raw::One(text) if text == NONE || text.is_empty() => Vec::new(),
            Raw::One(text) => text.split(',').map(|text| text.trim().to_owned()).collect(),
            Raw::Many(texts) => texts.clone(),
        };
        let each = texts.into_iter().map(|text| {
            let raw = Raw::One(text);
            parser.parse(&raw).map_err(|problem| match raw {
                Raw::One(text) => format!("`{text}`: {problem}"),
                Raw::Many(_) => problem,
            })
        });
        each.collect()
    };
    Parser { form: Form::List, parse: Box::new(parse) }
}

/// A file that is read with the configuration.
#[derive(Clone, PartialEq, Eq)]
pub struct TextFile {
    /// Its name, for messages.
    pub path: PathBuf,
    /// What it holds.
    pub text: String,
}

impl fmt::Debug for TextFile {
    /// Without what it holds, which may be a private key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TextFile").field("path", &self.path).finish_non_exhaustive()
    }
}

/// A text file. Of a longer one than `most` bytes, one byte more is read: whoever understands the text tells that it is
/// too long.
pub(super) fn text_file(most: usize) -> Parser<TextFile> {
    Parser::new(Form::Text, move |path| {
        let path = PathBuf::from(path);
        Ok(TextFile { text: read_text(&path, most)?, path })
    })
}

/// A file's text, up to one byte more than `most`.
pub(super) fn read_text(path: &Path, most: usize) -> Result<String, String> {
    let mut bytes = Vec::new();
    let most = u64::try_from(most).unwrap_or(u64::MAX).saturating_add(1);
    let read = File::open(path).and_then(|file| file.take(most).read_to_end(&mut bytes));
    read.map_err(|error| error.to_string())?;
    String::from_utf8(bytes).map_err(|_| "it is not UTF-8 text".to_owned())
}

/// Milliseconds and seconds, for bounds.
pub(super) const fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

pub(super) const fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn amount_of_time(text: &str) -> Option<Duration> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let amount: u64 = digits.parse().ok()?;
    match &text[digits.len()..] {
        "ms" => Some(ms(amount)),
        "s" => Some(s(amount)),
        "m" => amount.checked_mul(60).map(s),
        "h" => amount.checked_mul(3600).map(s),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one<T>(parser: &Parser<T>, text: &str) -> Result<T, String> {
        parser.parse(&Raw::One(text.to_owned()))
    }

    #[test]
    fn times() {
        assert_eq!(amount_of_time("250ms"), Some(ms(250)));
        assert_eq!((amount_of_time("2m"), amount_of_time("1h")), (Some(s(120)), Some(s(3600))));
        for bad in ["", "5", "s", "1d", "-1s", "1.5s", "99999999999999999999s", "9999999999999999999m"] {
            assert_eq!(amount_of_time(bad), None, "{bad}");
        }
        let bounded = time(ms(100)..=s(60));
        assert!(one(&bounded, "100ms").is_ok() && one(&bounded, "1m").is_ok());
        assert_eq!(
            one(&bounded, "61s").unwrap_err(),
            "expected a time from 100ms to 60s, written 500ms, 2s or 1m"
        );
    }

    #[test]
    fn lists_and_what_may_be_left_out() {
        let ports = list(number(1..=9_u16));
        assert_eq!(one(&ports, "1, 2"), Ok(vec![1, 2]));
        assert_eq!(one(&ports, "none"), Ok(vec![]));
        assert_eq!(ports.parse(&Raw::Many(vec!["3".to_owned()])), Ok(vec![3]));
        assert_eq!(one(&ports, "1,x").unwrap_err(), "`x`: expected a number from 1 to 9");
        assert_eq!(one(&optional(number(1..=9_u8)), "none"), Ok(None));
        assert!(number(1..=9_u8).parse(&Raw::Many(Vec::new())).is_err());
        assert!(one(&text(), "").is_err() && one(&path(), "").is_err());
        assert_eq!((one(&switch(), "true"), one(&switch(), "yes").is_err()), (Ok(true), true));
    }
}
