//! What a host says of its kernel, and the version of kernel.org behind it.

use super::{
    Built, Error, Field, Patching, Version,
    error::excerpt,
    vendor::{self, Clues},
};

/// What a host says of its kernel.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct KernelIdentity {
    /// `uname -r`, such as `6.1.0-57-cloud-amd64`.
    pub release: String,
    /// `uname -v`, such as `#1 SMP PREEMPT_DYNAMIC Debian 6.1.192-3 (2026-11-26)`. It may tell the stable level and
    /// when the kernel was built.
    pub version: Option<String>,
    /// `/proc/version_signature`, such as `Ubuntu 6.8.0-45.45-generic 6.8.12`: Ubuntu's word for the stable level.
    pub version_signature: Option<String>,
}

/// The version of kernel.org behind a kernel, as far as it can be told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Upstream {
    /// The version. Without a patch level where the stable level is not told.
    pub version: Version,
    /// A version of another series that another of the host's texts names. Such a kernel may be either.
    pub conflicting: Option<Version>,
    /// Whose kernel it is; absent if nobody's mark was found.
    pub vendor: Option<&'static str>,
    /// What is to be expected beyond that version.
    pub patching: Patching,
    /// Built from a source tree with commits after the named version.
    pub beyond_tag: bool,
    /// When it was built; absent if it does not say.
    pub built: Option<Built>,
    /// Nothing had to be assumed.
    pub certain: bool,
    /// What was concluded from what, as plain sentences.
    pub evidence: Vec<String>,
}

impl KernelIdentity {
    /// A kernel of which only `uname -r` is known, or a kernel that somebody typed.
    pub fn new(release: impl Into<String>) -> Self {
        Self { release: release.into(), version: None, version_signature: None }
    }

    /// The version of kernel.org behind this kernel.
    ///
    /// # Errors
    ///
    /// If the release is none, or a text is longer than any kernel's.
    pub fn upstream(&self) -> Result<Upstream, Error> {
        self.upstream_of(Field::Release)
    }

    /// As [`KernelIdentity::upstream`]; a wrong release is blamed on `field`.
    pub(super) fn upstream_of(&self, field: Field) -> Result<Upstream, Error> {
        let release = checked(&self.release, field, LONGEST_RELEASE)?;
        let version_text =
            checked(self.version.as_deref().unwrap_or_default(), Field::Version, LONGEST_TEXT)?;
        let signature = checked(
            self.version_signature.as_deref().unwrap_or_default(),
            Field::VersionSignature,
            LONGEST_TEXT,
        )?;
        let (version, suffix) = Version::parse(release).map_err(|problem| Error::Malformed {
            field,
            value: excerpt(release),
            problem,
        })?;

        let lower = suffix.to_ascii_lowercase();
        let vendor =
            vendor::find(&Clues { suffix: &lower, version: version_text, signed: !signature.is_empty() });
        let mut found = Upstream {
            version,
            conflicting: None,
            vendor: vendor.map(|vendor| vendor.name),
            patching: match vendor {
                Some(vendor) => vendor.patching,
                None if suffix.is_empty() || suffix_is_rc(suffix) => Patching::Upstream,
                None => Patching::Fixes,
            },
            beyond_tag: is_beyond_tag(&lower),
            built: Built::parse(version_text),
            certain: vendor.map_or_else(|| suffix.is_empty() || suffix_is_rc(suffix), |vendor| vendor.plain),
            evidence: vec![format!("The release is {release}.")],
        };
        found.note_vendor(suffix);
        let told = found.take_level(version_text, signature);
        let zero_is_level =
            suffix.is_empty() || version.rc.is_some() || vendor.is_some_and(|vendor| vendor.zero_is_level);
        if !told && version.patch == Some(0) && !zero_is_level {
            found.version.patch = None;
            found.say(format!(
                "The 0 in it may stand for any stable level of {}.{}.",
                version.major, version.minor
            ));
        }
        Ok(found)
    }
}

impl Upstream {
    fn say(&mut self, sentence: String) {
        self.evidence.push(sentence);
    }

    fn note_vendor(&mut self, suffix: &str) {
        match (self.vendor, self.patching) {
            (Some(vendor), Patching::Upstream) => {
                self.say(format!("It is marked as {vendor}, which follows kernel.org's releases."));
            }
            (Some(vendor), Patching::Fixes) => {
                self.say(format!(
                    "It is marked as {vendor}, which adds fixes that the number does not tell."
                ));
            }
            (Some(vendor), Patching::Features) => self.say(format!(
                "It is marked as {vendor}, which adds scheduler changes of later releases to the old number."
            )),
            (None, _) if !self.certain => {
                self.say(format!(
                    "Its suffix {suffix} is no known vendor's, who may have added fixes that the number does not tell."
                ));
            }
            (None, _) => {}
        }
        if self.beyond_tag {
            self.patching = self.patching.max(Patching::Fixes);
            self.certain = false;
            self.say("It was built from a source tree with commits after the named version.".to_owned());
        }
    }

    /// Takes the stable level from the other texts. Returns whether one of them told it.
    fn take_level(&mut self, version_text: &str, signature: &str) -> bool {
        let from_signature = level_in_signature(signature);
        if !signature.is_empty() && from_signature.is_none() {
            self.say("/proc/version_signature could not be read and was not used.".to_owned());
        }
        let sources =
            [("/proc/version_signature", from_signature), ("uname -v", level_in_version(version_text))];
        for (place, level) in sources {
            let Some(level) = level else { continue };
            if level.series() == self.version.series() {
                self.version = level;
                self.say(format!("{place} tells the real version: {level}."));
                return true;
            }
            self.conflicting = Some(level);
            self.certain = false;
            self.say(format!("{place} tells {level} instead, of another series: it may be either."));
        }
        false
    }
}

/// The kernel has room for 64 characters in each field of `uname`.
const LONGEST_RELEASE: usize = 64;
const LONGEST_TEXT: usize = 256;

fn checked(text: &str, field: Field, most: usize) -> Result<&str, Error> {
    let text = text.trim();
    if text.len() > most {
        return Err(Error::TooLong { field, value: excerpt(text), len: text.len(), most });
    }
    Ok(text)
}

/// The last word of `Ubuntu 6.8.0-45.45-generic 6.8.12`.
fn level_in_signature(signature: &str) -> Option<Version> {
    let mut words = signature.split_whitespace();
    let is_ubuntu = words.next() == Some("Ubuntu");
    let (level, _) = Version::parse(words.nth(1)?).ok()?;
    (is_ubuntu && words.next().is_none() && level.patch.is_some()).then_some(level)
}

/// The version behind the distribution's name in `… Debian 6.1.192-3 (2026-11-26)`; Raspberry Pi OS puts an epoch
/// before it: `… Debian 1:6.6.31-1+rpt1 (2024-05-29)`.
fn level_in_version(version: &str) -> Option<Version> {
    let mut words = version.split_whitespace();
    words.find(|word| ["Debian", "Kali"].contains(word))?;
    let word = words.next()?;
    let (_, word) = word.rsplit_once(':').unwrap_or(("", word));
    let (mut level, _) = Version::parse(word).ok()?;
    // `Debian 6.12-1~exp1` is 6.12 itself.
    level.patch = level.patch.or(Some(0));
    Some(level)
}

/// `6.12.0+`, `6.12.0-00123-gabcdef012345`, `6.12.0-rc1-next-20240930`.
fn is_beyond_tag(suffix: &str) -> bool {
    let is_commit = |part: &str| {
        part.strip_prefix('g').is_some_and(|id| id.len() >= 7 && id.bytes().all(|b| b.is_ascii_hexdigit()))
    };
    suffix.ends_with('+') || suffix.contains("-next-") || suffix.split(['-', '+', '.']).any(is_commit)
}

/// `-rc3` and nothing else.
fn suffix_is_rc(suffix: &str) -> bool {
    let digits = suffix.trim_start_matches('-').strip_prefix("rc");
    digits.is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()))
}
