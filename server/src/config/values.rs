//! Every setting as it was given, and where: by a flag, else a variable, else the file, else its default.

use super::{
    file,
    parse::{Form, NONE, Raw},
    print,
    sections::Sections,
    setting::{About, Problems, variable},
};
use clap::{ArgMatches, parser::ValueSource};
use std::{collections::BTreeMap, fmt, path::PathBuf};

/// Where a value was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Source {
    Default,
    /// Under its key.
    File(PathBuf),
    /// The variable.
    Environment(String),
    /// The flag with its dashes.
    Flag(String),
}

/// A value as it was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Given {
    pub(super) key: String,
    pub(super) raw: Raw,
    pub(super) source: Source,
}

/// As whoever gave it would find it again.
impl fmt::Display for Given {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, raw, source } = self;
        match source {
            Source::Default => write!(f, "{key} = {}", written(raw, Form::Text)),
            Source::File(path) => write!(f, "{}: {key} = {}", path.display(), written(raw, Form::Text)),
            Source::Environment(variable) => write!(f, "{variable}={raw}"),
            Source::Flag(flag) => write!(f, "{flag} {raw}"),
        }
    }
}

/// Every setting as it was given, by its section and key: `limits.deadline`.
#[derive(Debug, Clone, Default)]
pub(super) struct Values(BTreeMap<String, Given>);

impl Values {
    /// What the command line, the environment and the file say.
    pub(super) fn read(matches: &ArgMatches, problems: &mut Problems) -> Self {
        let mut values = Self::default();
        for (key, about) in all() {
            let raw = match about.form {
                Form::List if about.default == NONE => Raw::Many(Vec::new()),
                _ => Raw::One(about.default.to_owned()),
            };
            values.set(key, raw, Source::Default);
        }
        if let Some(path) = file::path(matches) {
            for (key, raw) in file::read(&path, problems) {
                values.set(key, raw, Source::File(path.clone()));
            }
        }
        for (key, about) in all() {
            if let Some((raw, source)) = typed(matches, &key, &about) {
                values.set(key, raw, source);
            }
        }
        values
    }

    pub(super) fn get(&self, key: &str) -> Option<&Given> {
        self.0.get(key)
    }

    /// Whether it is given, and not `none`.
    pub(super) fn is_some(&self, key: &str) -> bool {
        self.get(key).is_some_and(|given| given.raw != Raw::One(NONE.to_owned()))
    }

    /// Those that differ: here, and there.
    pub(super) fn differing<'a>(&'a self, other: &'a Self) -> impl Iterator<Item = (&'a Given, &'a Given)> {
        let both = self.0.iter().filter_map(|(key, given)| Some((given, other.get(key)?)));
        both.filter(|(here, there)| here.raw != there.raw)
    }

    /// Takes one of another's.
    pub(super) fn take(&mut self, given: &Given) {
        self.0.insert(given.key.clone(), given.clone());
    }

    fn set(&mut self, key: String, raw: Raw, source: Source) {
        self.0.insert(key.clone(), Given { key, raw, source });
    }
}

/// Every setting with its section and key.
pub(super) fn all() -> impl Iterator<Item = (String, About)> {
    Sections::about().into_iter().flat_map(|section| {
        section.settings.into_iter().map(move |about| (format!("{}.{}", section.name, about.key), about))
    })
}

/// What the flag says, else the variable; of the two flags of what can be off, the one that was typed last.
fn typed(matches: &ArgMatches, key: &str, about: &About) -> Option<(Raw, Source)> {
    let value = || {
        let texts: Vec<String> = matches.get_many::<String>(key)?.cloned().collect();
        Some(match <[String; 1]>::try_from(texts) {
            Ok([text]) => Raw::One(text),
            Err(texts) => Raw::Many(texts),
        })
    };
    let off = print::off(about);
    let is_off = about.can_be_off && matches.get_flag(&off);
    let source_of = |flag: &str, id: &str| match matches.value_source(id) {
        Some(ValueSource::CommandLine) => Some(Source::Flag(format!("--{flag}"))),
        Some(ValueSource::EnvVariable) => Some(Source::Environment(variable(flag))),
        _ => None,
    };
    let by_value = source_of(about.flag, key).and_then(|source| Some((value()?, source)));
    let by_off =
        is_off.then(|| source_of(&off, &off)).flatten().map(|source| (Raw::One(NONE.into()), source));
    match (by_value, by_off) {
        (Some(value @ (_, Source::Flag(_))), Some((_, Source::Environment(_)))) => Some(value),
        (Some(value @ (_, Source::Flag(_))), Some(_)) if is_later(matches, key, &off) => Some(value),
        (by_value, by_off) => by_off.or(by_value),
    }
}

/// Whether the one flag was typed after the other.
fn is_later(matches: &ArgMatches, flag: &str, other: &str) -> bool {
    let last = |id| matches.indices_of(id).and_then(|indices| indices.max());
    last(flag) > last(other)
}

/// A value as the file has it.
pub(super) fn written(raw: &Raw, form: Form) -> String {
    let quoted = |text: &str| toml::Value::String(text.to_owned()).to_string();
    match raw {
        Raw::Many(texts) => {
            format!("[{}]", texts.iter().map(|text| quoted(text)).collect::<Vec<_>>().join(", "))
        }
        Raw::One(text) => match form {
            Form::Number if text.parse::<i64>().is_ok() => text.clone(),
            Form::Switch if matches!(text.as_str(), "true" | "false") => text.clone(),
            _ => quoted(text),
        },
    }
}
