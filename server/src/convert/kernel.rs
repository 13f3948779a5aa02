//! Kernels, from and to the wire.

use super::{Failure, Faults};
use crate::snapshot::{Choice, kernel::Told};
use berth_model::profile::{Column, Confidence, Error, Field, KernelIdentity, Profile, all};
use berth_proto::v1::{self, confidence::Value};
use std::collections::BTreeMap;

/// The kernel that a request names, if any, and the rules that it sets otherwise.
#[derive(Debug, Default)]
pub(crate) struct KernelAsked {
    named: Option<Choice>,
    rules: Vec<(Column, String)>,
}

impl KernelAsked {
    /// What it comes to on a host whose own kernel is `own`, if that is another one.
    ///
    /// # Errors
    ///
    /// As [`KernelAsked::on`].
    pub(crate) fn other_than(self, own: &Choice) -> Result<Option<Choice>, Failure> {
        if self.named.is_none() && self.rules.is_empty() {
            return Ok(None);
        }
        Ok(Some(self.on(|| own.clone())?).filter(|choice| choice != own))
    }

    /// What it comes to on a host whose own kernel is `own`.
    ///
    /// # Errors
    ///
    /// If a rule does not take its value: [`from_wire`] has seen to that.
    pub(crate) fn on(self, own: impl FnOnce() -> Choice) -> Result<Choice, Failure> {
        self.named.unwrap_or_else(own).with_rules(&self.rules).map_err(Failure::internal)
    }
}

/// The kernel that a request asks about.
pub(crate) fn from_wire(kernel: Option<v1::Kernel>, faults: &mut Faults) -> KernelAsked {
    let Some(mut kernel) = kernel else { return KernelAsked::default() };
    let rules = rules(std::mem::take(&mut kernel.rules), faults);
    KernelAsked { named: choice(kernel, faults), rules }
}

/// Every rule that is set otherwise, in the order in which the kernel comes to them.
fn rules(given: BTreeMap<String, String>, faults: &mut Faults) -> Vec<(Column, String)> {
    let mut scratch = *Profile::ideal();
    let mut rules = Vec::new();
    for (name, value) in given {
        if faults.are_many() {
            break;
        }
        let read = Column::named(&name).and_then(|column| {
            column.set(&mut scratch, &value)?;
            Ok((column, value))
        });
        let name: String = name.chars().take(40).collect();
        rules.extend(faults.take(&format!("kernel.rules[{name}]"), read));
    }
    rules.sort_unstable();
    rules
}

/// The kernel that a request names; nothing if it names none.
fn choice(kernel: v1::Kernel, faults: &mut Faults) -> Option<Choice> {
    let v1::Kernel { release, version, version_signature, profile, rules: _ } = kernel;
    if !profile.is_empty() {
        return named("kernel.profile", &profile, faults);
    }
    let only_release = version.is_empty() && version_signature.is_empty();
    if release.is_empty() {
        if !only_release {
            let because = "it is needed beside `version` and `version_signature`; expected all of `uname -r`";
            faults.add("kernel.release", because);
        }
        return None;
    }
    // Who types a kernel may type a profile too.
    if only_release
        && let Some(profile) = Profile::named(release.trim()).filter(|p| !p.name.starts_with(['v', '6', '5']))
    {
        return Some(Choice::named(profile));
    }
    let optional = |text: String| (!text.is_empty()).then_some(text);
    let identity = KernelIdentity {
        release,
        version: optional(version),
        version_signature: optional(version_signature),
    };
    Choice::stated(&identity).map_err(|error| faults.add(field(&error), error.to_string())).ok()
}

fn named(field: &str, name: &str, faults: &mut Faults) -> Option<Choice> {
    let profile = Profile::named(name.trim());
    if profile.is_none() {
        let shown: String = name.chars().take(40).collect();
        let known: Vec<&str> = all().iter().map(|profile| profile.name).collect();
        faults.add(field, format!("`{shown}` is no profile; expected one of {}", known.join(", ")));
    }
    profile.map(Choice::named)
}

fn field(error: &Error) -> &'static str {
    match error.field() {
        Field::Kernel | Field::Release => "kernel.release",
        Field::Version => "kernel.version",
        Field::VersionSignature => "kernel.version_signature",
    }
}

/// What was chosen for a host, and why.
pub(crate) fn to_wire(choice: &Choice) -> v1::ProfileChoice {
    let mut names = choice.profiles.iter().map(|profile| profile.name.to_owned());
    v1::ProfileChoice {
        name: names.next().unwrap_or_default(),
        confidence: confidence(choice).into(),
        others: names.collect(),
        release: choice.release.clone(),
        evidence: choice.evidence.clone(),
        overridden: choice.overridden.iter().map(|(&name, value)| (name.to_owned(), value.clone())).collect(),
    }
}

fn confidence(choice: &Choice) -> Value {
    match (choice.confidence, choice.told) {
        (None, _) | (_, Told::Nothing) => Value::Unknown,
        (Some(Confidence::Ambiguous), _) => Value::Assumed,
        (Some(Confidence::Inferred), _) => Value::Inferred,
        (Some(Confidence::Given | Confidence::Exact), Told::Stated) => Value::Stated,
        (Some(Confidence::Given | Confidence::Exact), Told::Read) => Value::Known,
    }
}
