//! What makes a setting, and the macro that makes a section of them.

use super::{
    Invalid,
    parse::{Form, Parser},
    values::Values,
};

/// One setting: how it is given, and how it is understood.
pub(super) struct Setting<T> {
    flag: &'static str,
    value_name: &'static str,
    default: &'static str,
    live: bool,
    /// There is a flag `--no-…` too.
    can_be_off: bool,
    parser: Parser<T>,
}

impl<T> Setting<T> {
    /// A setting without a default: `none`, unless one is given by [`or`](Self::or).
    pub(super) fn new(flag: &'static str, value_name: &'static str, parser: Parser<T>) -> Self {
        Self { flag, value_name, default: super::parse::NONE, live: false, can_be_off: false, parser }
    }

    /// Its default, as a user would write it.
    pub(super) fn or(self, default: &'static str) -> Self {
        Self { default, ..self }
    }

    /// SIGHUP changes it while the daemon runs.
    pub(super) fn live(self) -> Self {
        Self { live: true, ..self }
    }

    /// A flag `--no-…` gives it the value `none`.
    pub(super) fn can_be_off(self) -> Self {
        Self { can_be_off: true, ..self }
    }

    pub(super) fn is_live(&self) -> bool {
        self.live
    }

    /// The value of the key, if it is one; else the problem is noted.
    pub(super) fn read(&self, key: &str, values: &Values, problems: &mut Problems) -> Option<T> {
        let given = values.get(key)?;
        match self.parser.parse(&given.raw) {
            Ok(value) => Some(value),
            Err(problem) => {
                problems.add(format!("{given}: {problem}"));
                None
            }
        }
    }

    pub(super) fn about(&self, key: &'static str, help: &[&'static str]) -> About {
        About {
            key,
            flag: self.flag,
            value_name: self.value_name,
            default: self.default,
            live: self.live,
            can_be_off: self.can_be_off,
            form: self.parser.form,
            help: help.iter().map(|line| line.trim()).collect::<Vec<_>>().join("\n"),
        }
    }
}

/// What there is to know of a setting, whatever its type.
#[derive(Debug, Clone)]
pub(super) struct About {
    /// Its name in the file, after its section's.
    pub(super) key: &'static str,
    /// Its flag without the dashes.
    pub(super) flag: &'static str,
    pub(super) value_name: &'static str,
    pub(super) default: &'static str,
    pub(super) live: bool,
    pub(super) can_be_off: bool,
    pub(super) form: Form,
    /// A line that says it, then perhaps an empty line and more.
    pub(super) help: String,
}

impl About {
    /// Its variable of the environment.
    pub(super) fn variable(&self) -> String {
        variable(self.flag)
    }

    /// The help's paragraphs, each one line.
    pub(super) fn paragraphs(&self) -> Vec<String> {
        self.help.split("\n\n").map(|paragraph| paragraph.replace('\n', " ")).collect()
    }
}

/// The variable of the environment that stands for a flag.
pub(super) fn variable(flag: &str) -> String {
    format!("BERTH_{}", flag.replace('-', "_").to_uppercase())
}

/// What there is to know of a section.
#[derive(Debug, Clone)]
pub(super) struct AboutSection {
    pub(super) name: &'static str,
    /// A sentence.
    pub(super) title: &'static str,
    pub(super) settings: Vec<About>,
}

/// Settings that belong together: a table of the file.
pub(super) trait Section: Sized {
    fn about() -> AboutSection;
    /// Nothing if a value is none.
    fn read(values: &Values, problems: &mut Problems) -> Option<Self>;
    /// Takes what is live from another one.
    fn take_live(&mut self, newer: &Self);
}

/// Makes a section: a struct with a field for each setting.
macro_rules! section {
    (
        #[doc = $title:literal]
        $Section:ident $name:literal;
        $( $(#[doc = $help:literal])+ $key:ident: $Type:ty = $setting:expr; )*
    ) => {
        #[doc = $title]
        #[derive(Debug, Clone)]
        #[non_exhaustive]
        pub struct $Section {
            $( $(#[doc = $help])+ pub $key: $Type, )*
        }

        impl $crate::config::setting::Section for $Section {
            fn about() -> $crate::config::setting::AboutSection {
                $crate::config::setting::AboutSection {
                    name: $name,
                    title: $title.trim_ascii(),
                    settings: vec![$({
                        let setting: $crate::config::setting::Setting<$Type> = $setting;
                        setting.about(stringify!($key), &[$($help),+])
                    },)*],
                }
            }

            #[allow(unused_variables, reason = "a section may be empty")]
            fn read(
                values: &$crate::config::values::Values,
                problems: &mut $crate::config::setting::Problems,
            ) -> Option<Self> {
                $(
                    let setting: $crate::config::setting::Setting<$Type> = $setting;
                    let $key = setting.read(concat!($name, ".", stringify!($key)), values, problems);
                )*
                Some(Self { $( $key: $key?, )* })
            }

            #[allow(unused_variables, reason = "a section may be empty")]
            fn take_live(&mut self, newer: &Self) {
                $(
                    let setting: $crate::config::setting::Setting<$Type> = $setting;
                    if setting.is_live() {
                        self.$key.clone_from(&newer.$key);
                    }
                )*
            }
        }
    };
}
pub(super) use section;

/// What is wrong so far, a sentence each.
#[derive(Debug, Default)]
pub(super) struct Problems(Vec<String>);

impl Problems {
    pub(super) fn add(&mut self, problem: impl Into<String>) {
        self.0.push(problem.into());
    }

    /// # Errors
    ///
    /// If there is a problem. Where there is none, there is a value.
    pub(super) fn none<T>(self, value: Option<T>) -> Result<T, Invalid> {
        value.filter(|_| self.0.is_empty()).ok_or(Invalid(self.0))
    }
}
