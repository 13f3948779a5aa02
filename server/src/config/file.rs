//! The file: TOML, a table for each section.

use super::{
    parse::{Raw, read_text},
    print,
    sections::Sections,
    setting::Problems,
};
use clap::{ArgMatches, parser::ValueSource};
use std::path::{Path, PathBuf};
use toml::{Table, Value};

/// Where it is looked for if no other is named.
pub(super) const DEFAULT: &str = "/etc/berth/berthd.toml";
/// Longer ones are some other file.
const MAX_BYTES: usize = 1 << 20;

/// The file to read: the one that is named, else the usual one if it is there.
pub(super) fn path(matches: &ArgMatches) -> Option<PathBuf> {
    let path = matches.get_one::<String>(print::CONFIG).map(PathBuf::from)?;
    let is_named = matches.value_source(print::CONFIG) != Some(ValueSource::DefaultValue);
    if is_named && (path.as_os_str() == super::parse::NONE || path.as_os_str().is_empty()) {
        return None;
    }
    // One that is there and cannot be looked at is a problem: it would have counted.
    let is_absent =
        || std::fs::symlink_metadata(&path).is_err_and(|e| e.kind() == std::io::ErrorKind::NotFound);
    (is_named || !is_absent()).then_some(path)
}

/// What it says, by section and key.
pub(super) fn read(path: &Path, problems: &mut Problems) -> Vec<(String, Raw)> {
    let mut about_file = |problem: String| problems.add(format!("{}: {problem}", path.display()));
    let table = read_text(path, MAX_BYTES).and_then(|text| {
        if text.len() > MAX_BYTES {
            return Err(format!("it is longer than {MAX_BYTES} bytes, which no configuration is"));
        }
        text.parse::<Table>().map_err(|error| error.to_string().trim_end().to_owned())
    });
    let table = match table {
        Ok(table) => table,
        Err(problem) => {
            about_file(problem);
            return Vec::new();
        }
    };
    let mut values = Vec::new();
    let sections = Sections::about();
    for (name, value) in table {
        let Some(section) = sections.iter().find(|section| section.name == name) else {
            let names: Vec<String> = sections.iter().map(|section| format!("[{}]", section.name)).collect();
            about_file(format!("there is no section [{name}]; expected {}", names.join(", ")));
            continue;
        };
        let Value::Table(settings) = value else {
            about_file(format!("{name} = {value}: expected a section, written [{name}]"));
            continue;
        };
        for (key, value) in settings {
            if !section.settings.iter().any(|about| about.key == key) {
                let keys: Vec<&str> = section.settings.iter().map(|about| about.key).collect();
                let expected =
                    if keys.is_empty() { "it has no settings yet".to_owned() } else { keys.join(", ") };
                about_file(format!("there is no setting {name}.{key}; [{name}] has: {expected}"));
                continue;
            }
            match raw(&value) {
                Some(raw) => values.push((format!("{name}.{key}"), raw)),
                None => about_file(format!(
                    "{name}.{key} = {value}: expected a text, a number, true or false, or a list of these"
                )),
            }
        }
    }
    values
}

fn raw(value: &Value) -> Option<Raw> {
    match value {
        Value::Array(values) => values.iter().map(one).collect::<Option<_>>().map(Raw::Many),
        value => one(value).map(Raw::One),
    }
}

fn one(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Integer(number) => Some(number.to_string()),
        Value::Float(number) => Some(number.to_string()),
        Value::Boolean(yes) => Some(yes.to_string()),
        Value::Datetime(_) | Value::Array(_) | Value::Table(_) => None,
    }
}
