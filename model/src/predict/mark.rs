//! The imbalance mark in time. Load balancing marks a group inside which affinity stopped it, and clears the mark when a
//! pass ends well. Which pass comes when cannot be seen from user space; how often they come was measured on real
//! kernels (`docs/fidelity.md`).

use super::{clock::left_after, sparse::Sparse};

/// What a burst meets of the imbalance mark.
#[doc(alias = "sgc->imbalance")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Marks {
    /// No group is ever marked.
    #[default]
    Never,
    /// A group is marked for as many of the placements as is likely, given how long there has been a reason.
    Expected,
    /// A group is marked from the moment at which there is a reason.
    AtOnce,
}

impl Marks {
    /// How likely a group is marked for which there has been a reason for so many microseconds, in thousandths.
    pub fn likely_after(micros: u64) -> u32 {
        u32::try_from(share_of(SHARE, ONE - left_after(micros, COMES)) * 1000 / ONE).unwrap_or(0)
    }
}

/// A part of a whole, both in units of 2^-31.
fn share_of(whole: i64, part: i64) -> i64 {
    (whole * (part >> 15)) >> 16
}

/// Which groups may be marked, in runs that follow both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Markable {
    /// None.
    #[default]
    None,
    /// Those in which tasks that run now can be a reason.
    Crowded,
    /// Any: pinned tasks have run somewhere on the host of late, and a mark can outlive its reason.
    Any,
}

/// The time in which a mark that has a reason comes half-way to how often it is set, in microseconds: ln 2 over the
/// sum of the rates at which passes set it (0.05 per ms) and clear it (0.04 per ms).
const COMES: u64 = 7_702;
/// The time in which a mark that has lost its reason becomes half as likely: ln 2 over the rate at which passes clear it.
const GOES: u64 = 17_329;
/// How often a mark is set that has long had a reason: 0.05 over 0.09.
const SHARE: i64 = ONE * 5 / 9;
/// Certainty, in units of 2^-31.
const ONE: i64 = 1 << 31;

/// The mark of one group.
#[derive(Debug, Clone, Copy, Default)]
struct Mark {
    has_reason: bool,
    is_set: bool,
    /// How likely it is set, and how many of the placements so far should have met it beyond those that did, in units of
    /// 2^-31.
    likely: i64,
    due: i64,
}

/// The marks of all groups during a burst.
#[derive(Debug, Clone)]
pub(crate) struct MarkBoard {
    marks: Marks,
    /// Of the groups of which it was asked whether there is a reason.
    of: Sparse<Mark>,
    /// Groups that had a reason once.
    active: Vec<u32>,
    /// Groups that are told to be marked.
    told: Vec<u32>,
}

impl MarkBoard {
    pub(crate) fn new(marks: Marks, groups: usize) -> Self {
        let limit = if marks == Marks::Never { 0 } else { groups };
        Self { marks, of: Sparse::new(limit, 0), active: Vec::new(), told: Vec::new() }
    }

    /// The group is marked, and stays so.
    pub(crate) fn tell(&mut self, group: u32) {
        self.told.push(group);
    }

    /// Whether it matters where there is a reason.
    pub(crate) fn asks_for_reasons(&self) -> bool {
        matches!(self.marks, Marks::Expected | Marks::AtOnce)
    }

    /// No group can be marked.
    pub(crate) fn is_blank(&self) -> bool {
        self.marks == Marks::Never && self.told.is_empty()
    }

    pub(crate) fn is_set(&self, group: u32) -> bool {
        self.told.contains(&group) || self.of.get(group as usize).is_some_and(|mark| mark.is_set)
    }

    /// The group that had a reason first.
    pub(crate) fn first_active(&self) -> Option<u32> {
        self.active.first().copied()
    }

    /// Whether any mark that came with time is set.
    pub(crate) fn any_is_set(&self) -> bool {
        self.active.iter().any(|&group| self.is_set(group))
    }

    /// Says whether load balancing has a reason to mark the group now.
    pub(crate) fn note(&mut self, group: u32, has_reason: bool) {
        let mut mark = self.of.get(group as usize).copied().unwrap_or_default();
        mark.has_reason = has_reason;
        if self.marks == Marks::AtOnce {
            mark.is_set = has_reason;
        } else if has_reason && !self.active.contains(&group) {
            self.active.push(group);
        }
        self.of.set(group as usize, mark);
    }

    /// Lets time pass up to the next placement.
    pub(crate) fn advance(&mut self, micros: u64) {
        if self.active.is_empty() {
            return;
        }
        let (comes, goes) = (left_after(micros, COMES), left_after(micros, GOES));
        for &group in &self.active {
            let Some(mark) = self.of.get_mut(group as usize) else { continue };
            mark.likely = if mark.has_reason {
                share_of(mark.likely, comes) + share_of(SHARE, ONE - comes)
            } else {
                share_of(mark.likely, goes)
            };
            mark.due += mark.likely;
            mark.is_set = mark.due >= ONE;
            if mark.is_set {
                mark.due -= ONE;
            }
        }
    }
}
