//! What is said of the settings: the command line with its help, the example file, and the settings in effect.

use super::{
    file,
    parse::{Form, NONE, Raw},
    sections::Sections,
    setting::{About, variable},
    values::{Source, Values, written},
};
use clap::{Arg, ArgAction, Command, builder::BoolishValueParser};
use std::fmt::Write as _;

/// Names of the arguments that are no settings.
pub(super) const CONFIG: &str = "config";
pub(super) const CHECK: &str = "check-config";
pub(super) const PRINT: &str = "print-config";
pub(super) const EXAMPLE: &str = "example-config";
pub(super) const MAN: &str = "man";

const ABOUT: &str = "\
Answers over gRPC where this host's kernel would put new tasks, and where they should go instead.

It listens on loopback TCP and on a unix socket. Ask it with `berth`, or with any gRPC client: it has reflection.

  grpcurl -plaintext -d '{\"tasks\": 8}' 127.0.0.1:7117 berth.v1.PlacementService/Predict
  grpcurl -plaintext -unix /run/berth/berthd.sock berth.v1.InfoService/GetInfo

It needs no rights: it reads /proc and /sys, and changes nothing.";

const AFTER: &str = "\
Times are written 500ms, 2s, 1m or 1h. A flag counts before its variable of the environment, and that before the file.
SIGHUP reads the file again: --example-config says which settings it changes.
HWLOC_* variables are ignored: they would make it read another host than this one.
Exit status: 0 stopped as told; 1 failed; 64 told something that cannot be; 69 could not listen.";

/// The command line.
pub(super) fn command() -> Command {
    let (short, _) = ABOUT.split_once("\n\n").unwrap_or((ABOUT, ""));
    let mut command = Command::new("berthd")
        .version(env!("CARGO_PKG_VERSION"))
        .about(short)
        .long_about(ABOUT)
        .after_help(AFTER)
        .max_term_width(100)
        .args_override_self(true)
        .next_help_heading("Configuration")
        .args([
            Arg::new(CONFIG)
                .long(CONFIG)
                .value_name("FILE")
                .env(variable(CONFIG))
                .hide_env_values(true)
                .default_value(file::DEFAULT)
                .help("Read the settings from this TOML file")
                .long_help("Read the settings from this TOML file.\n\nThe default is read if it is there; another one has to be. `none` reads no file."),
            print_only(CHECK, "Say what is wrong with the configuration, and do nothing else"),
            print_only(PRINT, "Print every setting in effect and where it was given, and do nothing else"),
            print_only(EXAMPLE, "Print a commented file with every setting and its default, and do nothing else"),
            print_only(MAN, "Print the manual page, and do nothing else"),
        ]);
    for section in Sections::about() {
        command = command.next_help_heading(section.title.trim_end_matches('.').to_owned());
        for about in section.settings {
            command = command.arg(value_flag(section.name, &about));
            if about.can_be_off {
                command = command.arg(off_flag(&about));
            }
        }
    }
    command
}

/// The manual page, from what `--help` says.
pub(super) fn man() -> String {
    let mut page = Vec::new();
    // Writing to memory does not fail.
    let source = concat!("berth ", env!("CARGO_PKG_VERSION"));
    // No date, as roff takes it: an argument that is empty would be none, and the version the date.
    let man = clap_mangen::Man::new(command()).section("8").date("\"\"").source(source).manual("Berth");
    let _ = man.render(&mut page);
    String::from_utf8_lossy(&page).into_owned()
}

/// The flag that turns off what can be off, without its dashes.
pub(super) fn off(about: &About) -> String {
    format!("no-{}", about.flag)
}

fn print_only(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).action(ArgAction::SetTrue).help(help)
}

fn value_flag(section: &str, about: &About) -> Arg {
    let mut long = about.paragraphs().join("\n\n");
    if about.default != NONE {
        let _ = write!(long, "\n\n[default: {}]", about.default);
    }
    let first = about.paragraphs().into_iter().next().unwrap_or_default();
    let mut short = first.trim_end_matches('.').to_owned();
    if about.default != NONE {
        let _ = write!(short, " [default: {}]", about.default);
    }
    let arg = Arg::new(format!("{section}.{}", about.key))
        .long(about.flag)
        .value_name(about.value_name)
        .env(about.variable())
        .hide_env_values(true)
        .help(short)
        .long_help(long);
    match about.form {
        Form::List => arg.action(ArgAction::Append),
        Form::Switch => arg.num_args(0..=1).require_equals(true).default_missing_value("true"),
        Form::Text | Form::Number => arg,
    }
}

fn off_flag(about: &About) -> Arg {
    Arg::new(off(about))
        .long(off(about))
        .env(variable(&off(about)))
        .hide_env_values(true)
        .action(ArgAction::SetTrue)
        .value_parser(BoolishValueParser::new())
        .help(format!("The same as --{} {NONE}", about.flag))
}

/// Every setting as a comment with its default, explained.
pub(super) fn example() -> String {
    let mut text = format!("\
# Settings of berthd, each with its default. Read from {} or from the file that --config names.
# A variable of the environment counts before this file, and a flag before both.
# `berthd --check-config` says what is wrong with it; `berthd --print-config` prints what is in effect and why.
", file::DEFAULT);
    for section in Sections::about().into_iter().filter(|section| !section.settings.is_empty()) {
        let _ = write!(text, "\n# {}\n[{}]\n", section.title, section.name);
        for about in section.settings {
            let reload = if about.live { "changed by SIGHUP" } else { "a change needs a restart" };
            text.push('\n');
            for paragraph in about.paragraphs() {
                wrap(&paragraph, &mut text);
            }
            let default = match about.form {
                Form::List if about.default == NONE => Raw::Many(Vec::new()),
                _ => Raw::One(about.default.to_owned()),
            };
            let _ = write!(
                text,
                "# --{}, {}; {reload}\n#{} = {}\n",
                about.flag,
                about.variable(),
                about.key,
                written(&default, about.form)
            );
        }
    }
    text
}

/// A paragraph as comment lines.
fn wrap(paragraph: &str, text: &mut String) {
    const WIDTH: usize = 100;
    let mut line = String::from("#");
    for word in paragraph.split_whitespace() {
        if line.len() + 1 + word.len() > WIDTH {
            text.push_str(&line);
            text.push('\n');
            line = String::from("#");
        }
        line.push(' ');
        line.push_str(word);
    }
    text.push_str(&line);
    text.push('\n');
}

/// Every setting in effect, with where it was given. It is a file that could be read again.
pub(super) fn effective(values: &Values) -> String {
    let mut text = String::new();
    for section in Sections::about().into_iter().filter(|section| !section.settings.is_empty()) {
        let _ = writeln!(text, "{}[{}]", if text.is_empty() { "" } else { "\n" }, section.name);
        for about in section.settings {
            let Some(given) = values.get(&format!("{}.{}", section.name, about.key)) else { continue };
            let source = match &given.source {
                Source::Default => "default".to_owned(),
                Source::File(path) => path.display().to_string(),
                Source::Environment(variable) => variable.clone(),
                Source::Flag(flag) => flag.clone(),
            };
            let _ = writeln!(text, "{} = {} # {source}", about.key, written(&given.raw, about.form));
        }
    }
    text
}
