//! What load balancing does to a placement afterwards: whether it repairs a pile-up, lets it stand, makes it worse or
//! moves tasks to and fro.
//!
//! Every group of every domain balances in turn, in the order in which its passes fall due, until none has anything
//! left to do. The tasks of the job move where their mask lets them; what else runs stays where it is, since nothing
//! is known of it.

mod floor;
mod pass;
mod splits;
mod units;

pub use splits::{Split, worst_split};

use super::{Burst, Host, Tally};
use crate::cpuset::Cpu;
use floor::Floor;
use std::{
    cmp::Reverse,
    collections::{BinaryHeap, HashSet},
    hash::{DefaultHasher, Hash, Hasher},
};
use units::Units;

/// What load balancing does to an outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Effect {
    /// There is no pile-up, and none arises.
    NothingToDo,
    /// It repairs the pile-up.
    Repairs,
    /// It lets the pile-up stand, though it may lessen it.
    LetsStand,
    /// It crowds some CPU further.
    MakesWorse,
    /// It moves tasks to and fro.
    PingPongs,
}

/// How often a pass sees the mark of a group in which affinity has stopped balancing. The mark comes and goes faster
/// than the passes that read it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MarkSeen {
    /// Never.
    Never,
    /// By one pass in so many.
    OneIn(u32),
}

impl MarkSeen {
    /// As measured: of twelve to forty-two surplus tasks four to nine leaked out in 5 s on 128 CPUs.
    pub const MEASURED: Self = Self::OneIn(3);
}

/// How balancing is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settling {
    /// What is assumed of marks.
    pub marks: MarkSeen,
    /// For how many milliseconds, as the quickest kernel has it.
    pub horizon_ms: u64,
}

/// For how long balancing is followed if nothing else is said, in milliseconds.
pub const HORIZON_MS: u64 = 10_000;

impl Default for Settling {
    fn default() -> Self {
        Self { marks: MarkSeen::MEASURED, horizon_ms: HORIZON_MS }
    }
}

/// A placement after load balancing.
#[derive(Debug, Clone, PartialEq)]
pub struct Settled {
    /// What was done.
    pub effect: Effect,
    /// The CPU of each task at the end, in no order of the tasks.
    pub places: Vec<Cpu>,
    /// What that comes to.
    pub tally: Tally,
    /// How many tasks were moved.
    pub moves: u32,
    /// Shortest and longest time in milliseconds until the last of the moves that count; absent if there are none, or no
    /// end was reached.
    pub takes_ms: Option<(u64, u64)>,
    /// The fewest tasks on the fullest CPU while tasks move to and fro, or at the end.
    pub fullest_least: u32,
    /// The same for the most.
    pub fullest_most: u32,
    /// No task is moved any more.
    pub is_at_rest: bool,
}

/// Lets load balancing work on the places of a burst's tasks.
#[doc(alias = "load_balance")]
#[doc(alias = "sched_balance_rq")]
#[doc(alias = "rebalance_domains")]
pub fn settle(host: Host<'_>, burst: &Burst<'_>, places: &[Cpu], settling: Settling) -> Settled {
    let before = burst.tally(host, places);
    let mut floor = Floor::new(host, burst, places);
    let units = Units::new(host.domains);
    let mut course = Course::new(&units, &floor, settling);
    while let Some(unit) = course.next() {
        let seen = course.sees_mark(unit);
        let done = pass::pass(&mut floor, host.profile, &units, unit, course.failures[unit], seen);
        course.note(unit, &done, &units, &floor);
        if course.recurs(&done, &floor) {
            break;
        }
    }
    let places = floor.places();
    let tally = burst.tally(host, &places);
    let goes_round = course.goes_round();
    let (least, most) = if goes_round { course.fullest } else { (tally.fullest, tally.fullest) };
    let effect = effect(&before, &tally, goes_round);
    Settled {
        effect,
        places,
        moves: course.moves,
        takes_ms: course.takes().filter(|_| !goes_round),
        fullest_least: least,
        fullest_most: most,
        is_at_rest: !goes_round,
        tally,
    }
}

/// What becomes of a placement, whatever is assumed of marks.
#[derive(Debug, Clone, PartialEq)]
pub struct Afterwards {
    /// With marks seen as often as measured.
    pub central: Settled,
    /// What is done at the worse end: a pile-up that only marks let leak away is one that stands.
    pub effect: Effect,
    /// Fewest and most tasks on the fullest CPU, from marks never seen to always.
    pub fullest: (u32, u32),
    /// What is done depends on marks, which cannot be read.
    pub hangs_on_marks: bool,
}

/// Lets load balancing work on a placement for some milliseconds, with marks seen never, as often as measured, and
/// always. Nothing for kernels that balance by load.
pub fn afterwards(host: Host<'_>, burst: &Burst<'_>, places: &[Cpu], horizon_ms: u64) -> Option<Afterwards> {
    host.profile.balance.tolerance()?;
    let run = |marks| settle(host, burst, places, Settling { marks, horizon_ms });
    let central = run(MarkSeen::MEASURED);
    let (never, always) = (run(MarkSeen::Never), run(MarkSeen::OneIn(1)));
    let all = [&central, &never, &always];
    let least = all.iter().map(|end| end.fullest_least).min().unwrap_or(0);
    let most = all.iter().map(|end| end.fullest_most).max().unwrap_or(least);
    let leaks = central.effect == Effect::Repairs && never.effect != Effect::Repairs;
    let effect = if leaks { never.effect } else { central.effect };
    let hangs_on_marks = all.iter().any(|end| end.effect != central.effect);
    Some(Afterwards { effect, fullest: (least, most), hangs_on_marks, central })
}

fn effect(before: &Tally, after: &Tally, goes_round: bool) -> Effect {
    if goes_round && (before.pile_up || after.pile_up) {
        return Effect::PingPongs;
    }
    match (before.pile_up, after.pile_up) {
        (false, false) => Effect::NothingToDo,
        (true, false) => Effect::Repairs,
        (false, true) => Effect::MakesWorse,
        (true, true) if after.fullest > before.fullest => Effect::MakesWorse,
        (true, true) => Effect::LetsStand,
    }
}

/// When each unit balances next, and what has come of it.
struct Course {
    settling: Settling,
    due: BinaryHeap<Reverse<(u64, usize)>>,
    /// Whether a unit is in `due`.
    waits: Vec<bool>,
    failures: Vec<u32>,
    /// How often a unit has met a mark.
    met: Vec<u32>,
    interval: Vec<u64>,
    now: u64,
    last_move: Option<u64>,
    moves: u32,
    /// States after a move.
    known: HashSet<u64>,
    /// When a state was met that had not been before.
    last_new: u64,
    /// The longest interval of any level.
    longest: u64,
    /// Fewest and most tasks on the fullest CPU since then.
    fullest: (u32, u32),
}

impl Course {
    fn new(units: &Units<'_>, floor: &Floor<'_>, settling: Settling) -> Self {
        let interval: Vec<u64> = (0..units.len()).map(|unit| units.of(unit).interval_ms).collect();
        let mut course = Self {
            settling,
            due: BinaryHeap::with_capacity(units.len()),
            waits: vec![false; units.len()],
            failures: vec![0; units.len()],
            met: vec![0; units.len()],
            now: 0,
            last_move: None,
            moves: 0,
            known: HashSet::new(),
            last_new: 0,
            longest: interval.iter().copied().max().unwrap_or(0),
            fullest: (0, 0),
            interval,
        };
        (0..units.len()).for_each(|unit| course.queue(unit, units.is_busy(unit, floor)));
        course
    }

    /// The unit whose pass falls due next. Nothing once all are at rest, or the time is over.
    fn next(&mut self) -> Option<usize> {
        let Reverse((at, unit)) = *self.due.peek().filter(|next| next.0.0 <= self.settling.horizon_ms)?;
        self.due.pop();
        self.waits[unit] = false;
        self.now = at;
        Some(unit)
    }

    fn sees_mark(&self, unit: usize) -> bool {
        match self.settling.marks {
            MarkSeen::Never => false,
            MarkSeen::OneIn(passes) => (self.met[unit] + 1).is_multiple_of(passes.max(1)),
        }
    }

    fn queue(&mut self, unit: usize, busy: bool) {
        if !self.waits[unit] {
            let factor = if busy { BUSY_FACTOR } else { 1 };
            self.due.push(Reverse((self.now + self.interval[unit] * factor, unit)));
            self.waits[unit] = true;
        }
    }

    /// Takes in what a pass has done: units that it concerns have to look again.
    fn note(&mut self, unit: usize, done: &pass::Done, units: &Units<'_>, floor: &Floor<'_>) {
        self.failures[unit] = done.failures;
        self.met[unit] += u32::from(done.met_mark);
        if done.may_go_on || done.met_mark {
            self.queue(unit, done.busy);
        }
        for &(from, to) in &done.moved {
            self.moves += 1;
            self.last_move = Some(self.now);
            for &other in units.around(from).iter().chain(units.around(to)) {
                self.queue(other, units.is_busy(other, floor));
            }
        }
        if let Some(group) = done.mark_changed {
            for &other in units.reading(group) {
                self.queue(other, false);
            }
        }
    }

    /// Whether the run can be ended: each level has had its turn, and no new state has come of it.
    fn recurs(&mut self, done: &pass::Done, floor: &Floor<'_>) -> bool {
        if done.moved.is_empty() {
            return false;
        }
        let mut hasher = DefaultHasher::new();
        floor.counts().hash(&mut hasher);
        let fullest = floor.fullest();
        if self.known.insert(hasher.finish()) {
            self.last_new = self.now;
            self.fullest = (fullest, fullest);
        }
        let (least, most) = self.fullest;
        self.fullest = (least.min(fullest), most.max(fullest));
        self.now > self.last_new + 2 * self.longest
    }

    /// Tasks still move, and only between states that have been.
    fn goes_round(&self) -> bool {
        self.last_move.is_some_and(|last| last > self.last_new && last + self.longest >= self.now)
    }

    /// A pass comes once in its interval at the quickest; a level that has had nothing to do waits twice as long.
    fn takes(&self) -> Option<(u64, u64)> {
        self.last_move.map(|last| (last, 2 * last))
    }
}

/// A busy CPU balances so much more rarely.
#[doc(alias = "busy_factor")]
const BUSY_FACTOR: u64 = 16;
