//! Which profiles a host may have.

use super::{
    Built, Error, Field, KernelIdentity, Patching, Profile, Upstream, Version, error::excerpt, table,
};

/// The profiles that a host may have. What holds for all of them holds for the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidates {
    /// Most likely first, never empty, no two with the same rules.
    pub profiles: Vec<&'static Profile>,
    /// How sure this is.
    pub confidence: Confidence,
    /// What was concluded from what, as plain sentences.
    pub evidence: Vec<String>,
}

/// How sure Berth is of a host's profile, surest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Confidence {
    /// The operator named the profile.
    Given,
    /// One profile: the host tells its version of kernel.org, and the rules of that version were read.
    Exact,
    /// One profile, with an assumption: the release lies between known ones or after them, its rules were not read,
    /// or its vendor may patch.
    Inferred,
    /// Several profiles: what would decide between them is not told.
    Ambiguous,
}

/// Every profile that a host with this kernel may have.
///
/// Sound rather than short: a stable level that is hidden, a vendor that takes fixes, and a source tree between two
/// releases each add the profiles that they allow. What narrows them: the stable level in `uname -v` or
/// `/proc/version_signature`, and a build before 82d6e01a0699 was ever posted.
///
/// # Errors
///
/// If the texts name no kernel, or one before v5.3.
pub fn candidates(identity: &KernelIdentity) -> Result<Candidates, Error> {
    resolve(identity, Field::Release)
}

/// As [`candidates`], for a kernel that somebody typed: a profile's name picks that profile; anything else is a
/// release, such as `6.12.95` or `v6.12.95`. A series without a level, such as `6.12`, is any kernel of it.
///
/// # Errors
///
/// If the text is neither.
pub fn from_text(kernel: &str) -> Result<Candidates, Error> {
    let kernel = kernel.trim();
    if let Some(profile) = Profile::named(kernel) {
        let evidence = vec![format!("The profile {} was asked for.", profile.name)];
        return Ok(Candidates { profiles: vec![profile], confidence: Confidence::Given, evidence });
    }
    resolve(&KernelIdentity::new(kernel), Field::Kernel)
}

fn resolve(identity: &KernelIdentity, field: Field) -> Result<Candidates, Error> {
    let mut upstream = identity.upstream_of(field)?;
    let mut found = Found {
        profiles: Vec::new(),
        evidence: std::mem::take(&mut upstream.evidence),
        certain: upstream.certain,
    };
    found.gather(upstream.version, &upstream).ok_or_else(|| Error::BeforeModelled {
        field,
        value: excerpt(identity.release.trim()),
        note: if upstream.patching == Patching::Features { MIXED } else { "" },
    })?;
    if let Some(other) = upstream.conflicting {
        found.gather(other, &upstream).ok_or_else(|| Error::BeforeModelled {
            field: Field::Version,
            value: other.to_string(),
            note: "",
        })?;
    }
    let confidence = match found.profiles.as_slice() {
        [one] if found.certain && one.provenance.knowledge.is_confirmed() => Confidence::Exact,
        [_] => Confidence::Inferred,
        _ => Confidence::Ambiguous,
    };
    Ok(Candidates { profiles: found.profiles, confidence, evidence: found.evidence })
}

const MIXED: &str = "; its vendor mixes in scheduler changes of later releases that the number does not tell, so name a profile";

/// The profile of all releases from one on, to the next entry of [`SERIES`].
struct Series {
    first: (u16, u16),
    /// The release that the profile is named after: for the others of its span it is inferred.
    named: (u16, u16),
    profile: &'static Profile,
    /// The same with 82d6e01a0699; absent where nobody maintained such a kernel any more when it was written, or
    /// where the profile has it.
    fixed: Option<&'static Profile>,
}

const FIRST: (u16, u16) = (5, 3);
/// From here on the rules differ by 82d6e01a0699 alone.
const LAST_RULES: (u16, u16) = (6, 0);
/// The first mainline release with 82d6e01a0699.
const FIXED: (u16, u16) = (6, 19);

static SERIES: [Series; 18] = [
    series(FIRST, (5, 3), &table::V5_3, None),
    series((5, 4), (5, 4), &table::V5_4, None),
    series((5, 5), (5, 5), &table::V5_5, None),
    series((5, 7), (5, 7), &table::V5_7, None),
    series((5, 8), (5, 8), &table::V5_8, None),
    series((5, 9), (5, 9), &table::V5_9, None),
    series((5, 10), (5, 10), &table::V5_10, Some(&table::V5_10_FIXED)),
    series((5, 11), (5, 12), &table::V5_12, Some(&table::V5_15_FIXED)),
    series((5, 13), (5, 13), &table::V5_13, Some(&table::V5_15_FIXED)),
    series((5, 16), (5, 16), &table::V5_16, Some(&table::V5_16_FIXED)),
    series((5, 18), (5, 18), &table::V5_18, Some(&table::V5_18_FIXED)),
    series((5, 19), (5, 19), &table::V5_19, Some(&table::V5_18_FIXED)),
    series(LAST_RULES, (6, 0), &table::V6_0, Some(&table::V6_1_FIXED)),
    series((6, 1), (6, 1), &table::V6_1, Some(&table::V6_1_FIXED)),
    series((6, 6), (6, 6), &table::V6_6, Some(&table::V6_6_FIXED)),
    series((6, 12), (6, 12), &table::V6_12, Some(&table::V6_12_FIXED)),
    series((6, 18), (6, 18), &table::V6_18, Some(&table::V6_18_FIXED)),
    series(FIXED, (6, 19), &table::V6_19, None),
];

const fn series(
    first: (u16, u16),
    named: (u16, u16),
    profile: &'static Profile,
    fixed: Option<&'static Profile>,
) -> Series {
    Series { first, named, profile, fixed }
}

/// The first stable level of each series with 82d6e01a0699: all of July 2026, from the stable tree's own lists of
/// changes. Other series had ended.
const FLOORS: [((u16, u16), u16); 6] =
    [((6, 18), 39), ((6, 12), 97), ((6, 6), 145), ((6, 1), 178), ((5, 15), 212), ((5, 10), 261)];

/// A kernel built before this month cannot have 82d6e01a0699: it was first posted in the middle of 2025.
const BEFORE_FIX: Built = Built { year: 2025, month: 1 };
/// From this month on, a kernel of a maintained stable series more likely has it than not.
const AFTER_BACKPORTS: Built = Built { year: 2026, month: 8 };

/// Whether a kernel has 82d6e01a0699.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Carries {
    Yes,
    No,
    /// May have; true if it more likely has.
    Maybe(bool),
}

struct Found {
    profiles: Vec<&'static Profile>,
    evidence: Vec<String>,
    certain: bool,
}

impl Found {
    /// Adds what a kernel of this version may have. Nothing if the version is older than every profile.
    fn gather(&mut self, version: Version, upstream: &Upstream) -> Option<()> {
        let at = SERIES.iter().rposition(|series| series.first <= version.series())?;
        let before = at.checked_sub(1).and_then(|at| SERIES.get(at));
        let here = SERIES.get(at)?;
        self.note_series(version, here);

        let states: Vec<&Series> = if upstream.patching == Patching::Features && here.first < LAST_RULES {
            self.say(
                "The rules of each release from its base to v6.0 are possible; newest first is a guess."
                    .to_owned(),
            );
            SERIES.iter().skip(at).take_while(|series| series.first <= LAST_RULES).collect()
        } else {
            vec![here]
        };
        let plain = states.iter().rev().map(|series| series.profile);
        let fixed = states.iter().rev().filter_map(|series| fixed_in(series, version));
        match self.carries_fix(version, upstream) {
            Carries::No => self.extend(plain),
            Carries::Yes => self.extend(fixed),
            Carries::Maybe(true) => self.extend(fixed.chain(plain)),
            Carries::Maybe(false) => self.extend(plain.chain(fixed)),
        }

        if version.is_mainline_rc() && here.first == version.series() {
            self.say(format!(
                "A candidate for {}.{} may still lack its changes.",
                version.major, version.minor
            ));
            self.extend([before?.profile]);
        }
        if upstream.beyond_tag && matches!(version.patch, None | Some(0)) {
            self.extend(SERIES.get(at + 1).map(|series| series.profile));
        }
        Some(())
    }

    fn note_series(&mut self, version: Version, here: &Series) {
        let (major, minor) = version.series();
        let name = here.profile.name;
        if version.series() > FIXED {
            self.say(format!("{major}.{minor} is newer than every release known here: taken as {name}."));
        } else if version.series() != here.named {
            self.say(format!(
                "{major}.{minor} is taken as {name}: no change of a rule between them is known."
            ));
        } else {
            return;
        }
        self.certain = false;
    }

    fn carries_fix(&mut self, version: Version, upstream: &Upstream) -> Carries {
        if version.series() >= FIXED {
            return Carries::Yes;
        }
        let (major, minor) = version.series();
        let level = if version.rc.is_some() { version.patch.or(Some(0)) } else { version.patch };
        let floor = FLOORS.iter().find(|(series, _)| *series == version.series()).map(|(_, level)| *level);
        match (level, floor) {
            // A candidate for the first level with it: from before that change or after.
            (Some(level), Some(floor)) if level == floor && version.rc.is_some() => {}
            (Some(level), Some(floor)) if level >= floor => {
                self.say(format!("82d6e01a0699 is in {major}.{minor}.y from {major}.{minor}.{floor} on."));
                return Carries::Yes;
            }
            (Some(level), Some(floor)) if upstream.patching == Patching::Upstream => {
                self.say(format!(
                    "82d6e01a0699 came with {major}.{minor}.{floor}, so {major}.{minor}.{level} lacks it."
                ));
                return Carries::No;
            }
            (_, None) if upstream.patching == Patching::Upstream => {
                self.say(format!("82d6e01a0699 is in no {major}.{minor} release."));
                return Carries::No;
            }
            _ => {}
        }
        // A date from before the series began is a build system's constant.
        if let Some(built) = upstream.built.filter(|built| *built < BEFORE_FIX && version.series() <= (6, 12))
        {
            self.say(format!("It was built in {built}, before 82d6e01a0699 was posted: it lacks it."));
            return Carries::No;
        }
        self.say("Whether it has 82d6e01a0699 is not told: both are possible.".to_owned());
        let late = upstream.built.is_some_and(|built| built >= AFTER_BACKPORTS);
        Carries::Maybe(late && floor.is_some() && upstream.patching == Patching::Upstream)
    }

    fn say(&mut self, sentence: String) {
        self.evidence.push(sentence);
    }

    fn extend(&mut self, profiles: impl IntoIterator<Item = &'static Profile>) {
        for profile in profiles {
            if !self.profiles.iter().any(|known| known.same_rules(profile)) {
                self.profiles.push(profile);
            }
        }
    }
}

/// A series' rules with 82d6e01a0699; from v6.19 on that is the series itself.
fn fixed_in(series: &Series, version: Version) -> Option<&'static Profile> {
    if version.series() >= FIXED { Some(series.profile) } else { series.fixed }
}
