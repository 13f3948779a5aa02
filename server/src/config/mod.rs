//! The whole configuration: a TOML file, then `BERTH_*` of the environment, then flags, the later counting before the
//! earlier. It is read and checked before anything is opened, and everything that is wrong with it is told at once.
//!
//! # Where a setting is added
//!
//! In its section's file in [`sections`], and nowhere else: a field of that section with its help, its flag, its
//! default and the parser that says what is accepted.
//!
//! ```text
//! /// The longest that a request may take; a caller's own deadline counts if it is shorter.
//! deadline: Duration = Setting::new("deadline", "TIME", parse::time(ms(1)..=s(3600))).or("30s").live();
//! ```
//!
//! From this line come the key `limits.deadline` of the file, the flag `--deadline`, the variable `BERTH_DEADLINE`,
//! the help, the example file (`server/berthd.example.toml`, which a test keeps equal to it: `BERTH_BLESS=1 cargo test
//! -p berthd example` writes it), `--print-config`, and the field `config.limits.deadline`. `live` is for what may
//! change while the daemon runs: who reads it asks [`Live`] each time, or waits for its changes; what is not live is
//! told to need a restart. A flag beside the value's that turns a part off (`--no-tcp`) comes with `can_be_off`; the
//! value is then an `Option` and `none` in the file. What holds between several settings is checked in [`check`].
//!
//! serde's `deny_unknown_fields` would stop at the first problem, and would not say which variable or flag it was in:
//! so the file is read as a table, and what no section knows is refused there.

mod check;
mod file;
mod live;
mod parse;
mod print;
mod sections;
mod setting;
mod values;

pub use live::Live;
pub(crate) use live::Reloader;
pub use parse::TextFile;
pub use sections::{Admin, Holds, Host, Limits, Listen, Load, Log, LogFormat, Roles, Sections, Tls};

use setting::Problems;
use std::{ffi::OsString, fmt, path::PathBuf};
use values::Values;

/// What the daemon is to do.
#[derive(Debug, Clone)]
pub struct Config {
    /// The settings.
    pub sections: Sections,
    /// The host to answer about.
    pub topology: Topology,
    /// Whether the load is measured: not if the host is a description.
    pub measure_load: bool,
    /// This program, which is started anew for each reading through hwloc.
    pub program: PathBuf,
    /// Where `proc` and `sys` lie; `/` but in tests.
    pub root: PathBuf,
    /// Each setting as it was given, to be told.
    given: Values,
}

/// The host to answer about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Topology {
    /// The one that the daemon runs on.
    Live,
    /// The one that an hwloc XML describes.
    Xml(TextFile),
    /// The one that an hwloc synthetic description describes.
    Synthetic(String),
}

impl Topology {
    fn of(host: &Host) -> Self {
        match (&host.topology_xml, &host.topology_synthetic) {
            (Some(file), _) => Self::Xml(file.clone()),
            (None, Some(text)) => Self::Synthetic(text.clone()),
            (None, None) => Self::Live,
        }
    }
}

/// What was asked for.
#[derive(Debug)]
pub enum Asked {
    /// To serve.
    Serve(Box<Config>),
    /// To say whether the configuration is right, which it is as far as it can be told without reading the host.
    Check(Box<Config>),
    /// To print this to stdout.
    Print(String),
}

/// Why there is no configuration.
#[derive(Debug)]
pub enum Stop {
    /// The help or the version was asked for, or an argument is none. Prints itself.
    Said(Box<clap::Error>),
    /// Something is wrong.
    Invalid(Invalid),
}

impl Stop {
    /// What is wrong, a sentence each.
    pub fn problems(&self) -> Vec<String> {
        match self {
            Self::Said(said) => vec![said.to_string()],
            Self::Invalid(invalid) => invalid.0.clone(),
        }
    }
}

/// Everything that is wrong with a configuration, a sentence each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invalid(pub Vec<String>);

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("\n"))
    }
}

impl std::error::Error for Invalid {}

impl Asked {
    /// Reads it from the arguments, the program's name first, the environment, and the file.
    ///
    /// # Errors
    ///
    /// If help was asked for, or something is wrong.
    pub fn try_from_args<A: Into<OsString> + Clone>(args: impl IntoIterator<Item = A>) -> Result<Self, Stop> {
        let matches =
            print::command().try_get_matches_from(args).map_err(|error| Stop::Said(Box::new(error)))?;
        if matches.get_flag(print::EXAMPLE) {
            return Ok(Self::Print(print::example()));
        }
        if matches.get_flag(print::MAN) {
            return Ok(Self::Print(print::man()));
        }
        let mut problems = Problems::default();
        let given = Values::read(&matches, &mut problems);
        let config = Config::try_new(given, problems).map_err(Stop::Invalid)?;
        Ok(if matches.get_flag(print::PRINT) {
            Self::Print(print::effective(&config.given))
        } else if matches.get_flag(print::CHECK) {
            Self::Check(Box::new(config))
        } else {
            Self::Serve(Box::new(config))
        })
    }
}

impl Config {
    /// Reads it from the arguments, the program's name first, the environment, and the file.
    ///
    /// # Errors
    ///
    /// If anything but to serve was asked for, or something is wrong.
    pub fn try_from_args<A: Into<OsString> + Clone>(args: impl IntoIterator<Item = A>) -> Result<Self, Stop> {
        match Asked::try_from_args(args)? {
            Asked::Serve(config) | Asked::Check(config) => Ok(*config),
            Asked::Print(_) => Err(Stop::Invalid(Invalid(vec!["nothing is to be served".to_owned()]))),
        }
    }

    /// The help text.
    pub fn help() -> String {
        print::command().render_long_help().to_string()
    }

    /// The commented example file: every setting with its default.
    pub fn example() -> String {
        print::example()
    }

    fn try_new(given: Values, mut problems: Problems) -> Result<Self, Invalid> {
        let sections = Sections::read(&given, &mut problems);
        check::given(&given, &mut problems);
        if let Some(sections) = &sections {
            check::sections(sections, &given, &mut problems);
        }
        let sections = problems.none(sections)?;
        let topology = Topology::of(&sections.host);
        Ok(Self {
            sections,
            measure_load: topology == Topology::Live,
            topology,
            // Not the path that it was started by: the file there may have been replaced since.
            program: PathBuf::from("/proc/self/exe"),
            root: PathBuf::from("/"),
            given,
        })
    }
}
