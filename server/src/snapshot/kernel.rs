//! Which kernels a host may run, and why.

use berth_model::profile::{
    self, Candidates, Column, Confidence, Error, KernelIdentity, Profile, Refused, all,
};
use std::collections::BTreeMap;

/// How it was told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Told {
    /// The operator or the request said so.
    Stated,
    /// The kernel says so itself.
    Read,
    /// It was not.
    Nothing,
}

/// The kernels that a host may run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Choice {
    /// Likeliest first. Empty if the host's kernel is one that the model does not cover.
    pub(crate) profiles: Vec<Profile>,
    pub(crate) confidence: Option<Confidence>,
    pub(crate) told: Told,
    /// The release of kernel.org as understood; empty if none was told.
    pub(crate) release: String,
    pub(crate) evidence: Vec<String>,
    /// Rules of the profiles that somebody set otherwise, by name.
    pub(crate) overridden: BTreeMap<&'static str, String>,
}

impl Choice {
    /// The kernel that the operator typed: a release or a profile's name.
    pub(crate) fn typed(text: &str) -> Result<Self, Error> {
        let release =
            KernelIdentity::new(text.trim()).upstream().map(|upstream| upstream.version.to_string());
        Ok(Self::of(profile::from_text(text)?, Told::Stated, release.unwrap_or_default()))
    }

    /// The kernel that a request describes.
    pub(crate) fn stated(identity: &KernelIdentity) -> Result<Self, Error> {
        let release = identity.upstream()?.version.to_string();
        Ok(Self::of(profile::candidates(identity)?, Told::Stated, release))
    }

    /// A profile by name.
    pub(crate) fn named(profile: &'static Profile) -> Self {
        let evidence = vec![format!("The profile {} was asked for.", profile.name)];
        let candidates = Candidates { profiles: vec![profile], confidence: Confidence::Given, evidence };
        Self::of(candidates, Told::Stated, String::new())
    }

    /// The running kernel. One that is too old for the model has no profile; one that cannot be read may have any.
    pub(crate) fn running(identity: &KernelIdentity) -> Self {
        match profile::candidates(identity) {
            Ok(candidates) => {
                let release = identity.upstream().map(|upstream| upstream.version.to_string());
                Self::of(candidates, Told::Read, release.unwrap_or_default())
            }
            Err(error @ Error::BeforeModelled { .. }) => {
                Self { profiles: Vec::new(), ..Self::nothing_told(sentence(&error)) }
            }
            Err(error) => Self::nothing_told(sentence(&error)),
        }
    }

    /// Nobody told: every released profile is possible, newest first.
    pub(crate) fn nothing_told(evidence: String) -> Self {
        let released =
            || all().iter().filter(|profile| profile.provenance.status == profile::Status::Released);
        // The table has mainline releases oldest first, then stable backports newest first.
        let is_mainline = |profile: &&Profile| profile.name.starts_with('v');
        let (mut mainline, backports): (Vec<_>, Vec<_>) = released().partition(is_mainline);
        mainline.reverse();
        Self {
            profiles: distinct(mainline.into_iter().chain(backports).copied()),
            confidence: None,
            told: Told::Nothing,
            release: String::new(),
            evidence: vec![evidence],
            overridden: BTreeMap::new(),
        }
    }

    /// The same with rules set otherwise.
    ///
    /// # Errors
    ///
    /// If a column does not take its value.
    pub(crate) fn with_rules(mut self, rules: &[(Column, String)]) -> Result<Self, Refused> {
        for (column, value) in rules {
            for profile in &mut self.profiles {
                column.set(profile, value)?;
            }
            self.evidence.push(format!("The rule {} was set to {}.", column.name(), value.trim()));
            self.overridden.insert(column.name(), value.trim().to_owned());
        }
        self.profiles = distinct(self.profiles);
        Ok(self)
    }

    fn of(candidates: Candidates, told: Told, release: String) -> Self {
        let Candidates { profiles, confidence, evidence } = candidates;
        let profiles = profiles.into_iter().copied().collect();
        let overridden = BTreeMap::new();
        Self { profiles, confidence: Some(confidence), told, release, evidence, overridden }
    }
}

/// The first of those with the same rules.
fn distinct(profiles: impl IntoIterator<Item = Profile>) -> Vec<Profile> {
    let mut distinct: Vec<Profile> = Vec::new();
    for profile in profiles {
        if !distinct.iter().any(|known| known.same_rules(&profile)) {
            distinct.push(profile);
        }
    }
    distinct
}

/// A model's error as a sentence of evidence.
fn sentence(error: &Error) -> String {
    format!("The kernel could not be told: {error}.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_kernel_may_be_any_released_one_newest_first() {
        let choice = Choice::nothing_told(String::new());
        let names: Vec<&str> = choice.profiles.iter().map(|profile| profile.name).collect();
        assert_eq!(names.first(), Some(&"v6.19"), "{names:?}");
        assert!(names.contains(&"v5.8") && !names.iter().any(|name| name.starts_with("mel")), "{names:?}");
        for (i, a) in choice.profiles.iter().enumerate() {
            assert!(
                !choice.profiles[..i].iter().any(|b| a.same_rules(b)),
                "{} is twice in {names:?}",
                a.name
            );
        }
    }

    #[test]
    fn a_kernel_before_the_model_has_no_profile() {
        assert!(Choice::running(&KernelIdentity::new("4.19.0")).profiles.is_empty());
        assert!(!Choice::running(&KernelIdentity::new("not a kernel")).profiles.is_empty());
        assert_eq!(Choice::running(&KernelIdentity::new("6.12.95")).release, "6.12.95");
    }
}
