//! What a file of records came to, and all of them.

use crate::{
    domains::{self, Matches},
    free::{self, Known},
    proofs,
    record::Record,
    scene::{Question, Scene},
    settling,
    steps::{self, Fared, Miss, Step},
};
use anyhow::Result;
use berth_model::predict::{Effect, Marks};
use std::{collections::BTreeMap, fmt, ops::AddAssign};

/// A share of a whole.
#[derive(Debug, Clone, Copy, Default)]
pub struct Share {
    /// Those that count.
    pub of: u32,
    /// All.
    pub all: u32,
}

impl Share {
    fn add(&mut self, counts: bool) {
        self.all += 1;
        self.of += u32::from(counts);
    }

    /// In percent; 100 of nothing.
    pub fn percent(self) -> f64 {
        if self.all == 0 { 100.0 } else { 100.0 * f64::from(self.of) / f64::from(self.all) }
    }
}

impl AddAssign for Share {
    fn add_assign(&mut self, other: Self) {
        self.of += other.of;
        self.all += other.all;
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.1} % ({} of {})", self.percent(), self.of, self.all)
    }
}

/// Free-running bursts.
#[derive(Debug, Clone, Default)]
pub struct Free {
    /// The central run has as many tasks on each package, NUMA node and LLC, within 0, 1 and 2.
    pub within: [[Share; 3]; 3],
    /// The record lies inside the range of each node, and within 1 of it.
    pub inside: [Share; 2],
    /// Sum of the widest ranges, in tasks.
    pub width: u64,
    /// Real pile-ups, and how many of them the central run and the range miss.
    pub missed: [Share; 2],
    /// Bursts without a pile-up, and for how many of them the central run and the range have one.
    pub false_alarms: [Share; 2],
}

/// Proofs.
#[derive(Debug, Clone, Copy, Default)]
pub struct Proofs {
    /// Called safe.
    pub safe: Share,
    /// Of those called safe, and launched without a stall: those that piled up.
    pub wrong: Share,
    /// Of those called safe, and launched with a stall, for which no proof is valid: those that piled up.
    pub stalled: Share,
}

impl Proofs {
    fn add(&mut self, question: &Question<'_>, proof: proofs::Outcome) {
        self.safe.add(proof.safe);
        if proof.safe {
            let stalls = question.stalls_before().is_some();
            let launch = if stalls { &mut self.stalled } else { &mut self.wrong };
            launch.add(proof.piled_up);
        }
    }
}

/// What load balancing made of launches.
#[derive(Debug, Clone, Default)]
pub struct Settled {
    /// It did what it is said to do: of all launches, and of those that began with a pile-up.
    pub agree: [Share; 2],
    /// Of those that began with a pile-up, those whose fullest CPU is in its range at the last look, and within 1 of it.
    pub inside: [Share; 2],
    /// How many of the others by what balancing did and what it is said to do.
    pub misses: BTreeMap<(Effect, Effect), u32>,
}

impl Settled {
    fn add(&mut self, outcome: &settling::Outcome) {
        self.agree[0].add(outcome.agrees());
        if outcome.began_piled_up() {
            self.agree[1].add(outcome.agrees());
            self.inside[0].add(outcome.outside() == 0);
            self.inside[1].add(outcome.outside() <= 1);
        }
        if !outcome.agrees() {
            *self.misses.entry((outcome.did, outcome.said[0])).or_default() += 1;
        }
    }
}

/// The figures of one file, or of all.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// Cases.
    pub cases: u32,
    /// CPUs with exactly the kernel's domains.
    pub domains: Share,
    /// How many steps fared how.
    pub steps: BTreeMap<Step, u32>,
    /// Choices that tell whether a group is marked, by how long there has been a reason: those where it is.
    pub marked: [Share; AGES.len()],
    /// How many of them are to be by the model's rates, in thousandths.
    pub to_be_marked: [u64; AGES.len()],
    /// Cases whose parent was held up.
    pub stalls: Share,
    /// Steps that need a thread more or less, or are refused, before and after a stall of the parent.
    pub strays: [Share; 2],
    /// Bursts, the parent's CPU being known and not. Cases of which the record does not tell what the kernel saw are left
    /// out.
    pub free: [Free; 2],
    /// What load balancing made of them, from where the kernel had put the tasks.
    pub settled: Settled,
    /// Proofs, as for bursts.
    pub proofs: [Proofs; 2],
    /// Of those called safe, the parent's CPU being known: those that are with one more busy CPU too.
    pub stand_one_more: Share,
    /// Of these, those that piled up.
    pub stood_and_piled_up: Share,
}

/// Until how many milliseconds after the reason a mark is counted together.
const AGES: [u64; 6] = [2, 4, 8, 16, 32, u64::MAX];

/// Both states of knowledge, in the order of [`Report::free`].
const KNOWN: [Known; 2] = [Known::Origin, Known::Nothing];

impl Report {
    /// Holds the model against one record, and tells of each miss.
    ///
    /// # Errors
    ///
    /// If the record contradicts itself.
    pub fn of(record: &Record, tell: &mut impl FnMut(Tale<'_>)) -> Result<Self> {
        let scene = Scene::try_new(record)?;
        let Matches { cpus, equal } = domains::compare(&scene, record);
        let mut report = Self { domains: Share { of: equal, all: cpus }, ..Self::default() };
        for question in &scene.questions(record)? {
            report.cases += 1;
            let Fared { steps, misses, looks } = steps::replay(&scene, question);
            for look in looks.iter().filter(|_| !question.is_untold()) {
                let index = AGES.iter().position(|&age| look.age / 1000 < age).unwrap_or(AGES.len() - 1);
                report.marked[index].add(look.is_set);
                report.to_be_marked[index] += u64::from(Marks::likely_after(look.age));
            }
            let stalls_before = question.stalls_before().unwrap_or(usize::MAX);
            report.stalls.add(stalls_before < usize::MAX);
            for (task, step) in steps.into_iter().enumerate() {
                *report.steps.entry(step).or_default() += 1;
                if !question.is_untold() {
                    report.strays[usize::from(task >= stalls_before)].add(step >= Step::ShortThread);
                }
            }
            misses.iter().for_each(|miss| tell(Tale::Step { record, question, miss }));
            let told = (!question.is_untold()).then_some(question);
            if let Some(outcome) = told.and_then(|question| settling::settle(&scene, question)) {
                report.settled.add(&outcome);
                tell(Tale::Settled { record, question, outcome: &outcome });
            }
            for (index, &known) in KNOWN.iter().enumerate() {
                if let Some(outcome) = told.and_then(|question| free::run(&scene, question, known)) {
                    report.free[index].add(&outcome);
                    tell(Tale::Free { record, question, known, outcome: &outcome });
                }
                let proof = proofs::prove(&scene, question, known);
                report.proofs[index].add(question, proof);
                if proof.safe && known == Known::Origin {
                    let stands = proofs::stands_one_more(&scene, question, known);
                    report.stand_one_more.add(stands);
                    if stands {
                        report.stood_and_piled_up.add(proof.piled_up);
                    }
                }
                if proof.safe && proof.piled_up {
                    tell(Tale::Proof { record, question, known });
                }
            }
        }
        Ok(report)
    }

    /// Steps that need no more than this to be allowed.
    pub fn steps_up_to(&self, step: Step) -> Share {
        let of = self.steps.range(..=step).map(|(_, count)| count).sum();
        Share { of, all: self.steps.values().sum() }
    }
}

impl Free {
    fn add(&mut self, outcome: &free::Outcome) {
        for (level, off) in self.within.iter_mut().zip(outcome.off) {
            for (share, tolerance) in level.iter_mut().zip(0..) {
                share.add(off <= tolerance);
            }
        }
        self.inside[0].add(outcome.outside == 0);
        self.inside[1].add(outcome.outside <= 1);
        self.width += u64::from(outcome.width);
        let shares = if outcome.piled_up { &mut self.missed } else { &mut self.false_alarms };
        shares[0].add(outcome.central != outcome.piled_up);
        shares[1].add(outcome.any != outcome.piled_up);
    }
}

impl AddAssign<&Self> for Report {
    fn add_assign(&mut self, other: &Self) {
        self.cases += other.cases;
        self.domains += other.domains;
        for (&step, count) in &other.steps {
            *self.steps.entry(step).or_default() += count;
        }
        self.stalls += other.stalls;
        for (ours, &theirs) in self.marked.iter_mut().zip(&other.marked) {
            *ours += theirs;
        }
        for (ours, theirs) in self.to_be_marked.iter_mut().zip(other.to_be_marked) {
            *ours += theirs;
        }
        for (ours, &theirs) in self.strays.iter_mut().zip(&other.strays) {
            *ours += theirs;
        }
        for (ours, theirs) in self.free.iter_mut().zip(&other.free) {
            let pairs = ours.within.iter_mut().flatten().zip(theirs.within.iter().flatten());
            let pairs = pairs.chain(ours.inside.iter_mut().zip(&theirs.inside));
            let pairs = pairs.chain(ours.missed.iter_mut().zip(&theirs.missed));
            for (ours, &theirs) in pairs.chain(ours.false_alarms.iter_mut().zip(&theirs.false_alarms)) {
                *ours += theirs;
            }
            ours.width += theirs.width;
        }
        let shares = |it: &Settled| [it.agree, it.inside];
        let theirs = shares(&other.settled).concat();
        let ours = self.settled.agree.iter_mut().chain(&mut self.settled.inside);
        ours.zip(theirs).for_each(|(ours, theirs)| *ours += theirs);
        for (&pair, count) in &other.settled.misses {
            *self.settled.misses.entry(pair).or_default() += count;
        }
        for (ours, theirs) in self.proofs.iter_mut().zip(&other.proofs) {
            ours.safe += theirs.safe;
            ours.wrong += theirs.wrong;
            ours.stalled += theirs.stalled;
        }
        self.stand_one_more += other.stand_one_more;
        self.stood_and_piled_up += other.stood_and_piled_up;
    }
}

/// Something that is worth telling of one case.
#[derive(Debug)]
pub enum Tale<'a> {
    /// A step that needed more than the rules and the record.
    Step {
        /// The record.
        record: &'a Record,
        /// The case.
        question: &'a Question<'a>,
        /// The step.
        miss: &'a Miss,
    },
    /// A burst that was predicted at once.
    Free {
        /// The record.
        record: &'a Record,
        /// The case.
        question: &'a Question<'a>,
        /// What was known.
        known: Known,
        /// How it came out.
        outcome: &'a free::Outcome,
    },
    /// What load balancing made of a launch.
    Settled {
        /// The record.
        record: &'a Record,
        /// The case.
        question: &'a Question<'a>,
        /// What it did and what was said.
        outcome: &'a settling::Outcome,
    },
    /// A proof that was wrong.
    Proof {
        /// The record.
        record: &'a Record,
        /// The case.
        question: &'a Question<'a>,
        /// What was known.
        known: Known,
    },
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let up_to = |step| self.steps_up_to(step);
        let count = |step| self.steps.get(&step).copied().unwrap_or(0);
        writeln!(f, "  domains equal to the kernel's      {}", self.domains)?;
        writeln!(f, "  steps allowed: rules and clock     {}", up_to(Step::Allowed))?;
        writeln!(f, "    however long tasks have run      {}", up_to(Step::AnyWeight))?;
        writeln!(f, "    either state of a mark           {}", up_to(Step::AnyMark))?;
        writeln!(f, "    or of a mark left by others      {}", up_to(Step::MarkLeft))?;
        writeln!(
            f,
            "    the rest: burners unseen {}, a short thread {}, refused {}",
            count(Step::LooseBurners),
            count(Step::ShortThread),
            count(Step::Refused)
        )?;
        let [before, after] = self.strays;
        writeln!(f, "  marked, by ms since there is a reason (and by the rates)")?;
        for ((age, share), to_be) in AGES.iter().zip(self.marked).zip(self.to_be_marked) {
            let until = if *age == u64::MAX { "later".to_owned() } else { format!("< {age}") };
            let rates = to_be as f64 / 10.0 / f64::from(share.all.max(1));
            writeln!(f, "    {until:<6}{share}, {rates:.1} %")?;
        }
        writeln!(f, "  bursts with a stall                {}", self.stalls)?;
        writeln!(f, "    short thread or refused: before {before}, after {after}")?;
        for (free, known) in self.free.iter().zip(["parent's CPU known", "parent's CPU unknown"]) {
            writeln!(f, "  free running, {known}")?;
            for (level, shares) in ["package", "NUMA node", "LLC"].iter().zip(&free.within) {
                let [exact, one, two] = shares.map(Share::percent);
                writeln!(
                    f,
                    "    per {level:<9} exact {exact:.1} %, within 1 {one:.1} %, within 2 {two:.1} %"
                )?;
            }
            let [inside, near] = free.inside.map(Share::percent);
            let width = free.width as f64 / f64::from(free.inside[0].all.max(1));
            writeln!(
                f,
                "    in the node's range {inside:.1} %, within 1 {near:.1} %; mean width {width:.1}"
            )?;
            writeln!(f, "    pile-ups missed: central {}, range {}", free.missed[0], free.missed[1])?;
            let [central, range] = free.false_alarms;
            writeln!(f, "    false alarms: central {central}, range {range}")?;
        }
        let Settled { agree, inside, misses } = &self.settled;
        writeln!(f, "  load balancing does as said        {}; of pile-ups {}", agree[0], agree[1])?;
        let [inside, near] = inside.map(Share::percent);
        writeln!(f, "    fullest CPU of pile-ups in its range {inside:.1} %, within 1 {near:.1} %")?;
        for ((did, said), count) in misses {
            writeln!(f, "    did {did:?}, said {said:?}: {count}")?;
        }
        for (proofs, known) in self.proofs.iter().zip(["known", "unknown"]) {
            writeln!(f, "  proven safe, parent's CPU {known}: {}", proofs.safe)?;
            writeln!(f, "    of these piled up                {}", proofs.wrong)?;
            writeln!(f, "    launched with a stall, not valid {}", proofs.stalled)?;
        }
        writeln!(f, "  safe with one more busy CPU too    {}", self.stand_one_more)?;
        writeln!(f, "    of these piled up                {}", self.stood_and_piled_up)?;
        Ok(())
    }
}

impl fmt::Display for Tale<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |record: &Record, question: &Question<'_>| {
            format!("{} {}#{}", record.name, question.case.id, question.case.rep)
        };
        match *self {
            Self::Step { record, question, miss } => write!(
                f,
                "step    {} task {}: from CPU {} to {}, allowed {} ({:?})",
                name(record, question),
                miss.task,
                miss.parent,
                miss.took,
                miss.allowed,
                miss.step
            ),
            Self::Free { record, question, known, outcome } => write!(
                f,
                "burst   {} ({known:?} known): off by {:?} per package, node, LLC; {} outside; piled up {}, central {}, range {}",
                name(record, question),
                outcome.off,
                outcome.outside,
                outcome.piled_up,
                outcome.central,
                outcome.any
            ),
            Self::Settled { record, question, outcome } => {
                let ([before, best, later], (least, most)) = (outcome.fullest, outcome.range);
                write!(
                    f,
                    "settle  {}: did {:?}, said {:?}; fullest CPU {before} at first (best {best}), later {later}, range {least}..{most}; {} moves",
                    name(record, question),
                    outcome.did,
                    outcome.said,
                    outcome.moves
                )
            }
            Self::Proof { record, question, known } => {
                write!(f, "proof   {} ({known:?} known): called safe and piled up", name(record, question))
            }
        }
    }
}

impl Tale<'_> {
    /// Whether it tells of something that did not come out as predicted.
    pub fn is_miss(&self) -> bool {
        match self {
            Self::Step { miss, .. } => miss.step > Step::AnyMark,
            Self::Free { outcome, .. } => {
                outcome.outside > 1 || outcome.piled_up != outcome.central || outcome.piled_up != outcome.any
            }
            Self::Settled { outcome, .. } => !outcome.agrees(),
            Self::Proof { .. } => true,
        }
    }
}
