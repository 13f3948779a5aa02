//! Sets of CPUs, always by the operating system's number, and their text forms.
//!
//! A set has no fixed width: a mask of CPU 1030 is as good as one of CPU 3. Two sets are equal when they hold the
//! same CPUs, however they were made.

mod text;

pub use text::ParseError;

use smallvec::SmallVec;
use std::fmt;

/// The highest number of CPUs that Berth takes in a set: CPUs 0 to 65,535.
pub const MAX_CPUS: u32 = 65_536;

const BITS: u32 = u64::BITS;

/// One CPU (hardware thread, PU) by its Linux number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cpu(u16);

impl Cpu {
    /// The CPU with this number, or `None` at or beyond [`MAX_CPUS`].
    pub fn try_new(number: u32) -> Option<Self> {
        u16::try_from(number).ok().map(Self)
    }

    /// The number, as Linux shows it.
    pub fn number(self) -> u32 {
        u32::from(self.0)
    }

    /// The number as an index into per-CPU tables.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

impl From<u16> for Cpu {
    fn from(number: u16) -> Self {
        Self(number)
    }
}

impl fmt::Display for Cpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Words of a set; so many, those of 256 neighbours, are kept without an allocation.
type Words = SmallVec<[u64; 4]>;

/// A set of CPUs.
///
/// Its [`Display`](fmt::Display) form is the kernel's cpulist, `0-15,320-335`; the empty set prints nothing.
#[derive(Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CpuSet {
    // Index of the first word: a set of few CPUs is small, however high their numbers. Neither the first nor the last
    // word is 0, and the empty set starts at 0, so that derived equality is set equality.
    base: usize,
    words: Words,
}

impl CpuSet {
    /// The empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// CPUs 0 to `count - 1`; at most [`MAX_CPUS`].
    pub fn first_n(count: u32) -> Self {
        (0..count.min(MAX_CPUS)).filter_map(Cpu::try_new).collect()
    }

    /// Adds a CPU; says whether it was new.
    pub fn insert(&mut self, cpu: Cpu) -> bool {
        let (index, bit) = place(cpu);
        self.reach(index);
        let word = &mut self.words[index - self.base];
        let new = *word & bit == 0;
        *word |= bit;
        new
    }

    /// Adds the CPUs from `low` to `high`, both included.
    pub fn insert_range(&mut self, low: Cpu, high: Cpu) {
        let ((first, from), (last, to)) = (place(low), place(high));
        if high < low {
            return;
        }
        self.reach(first);
        self.reach(last);
        for index in first..=last {
            let above = if index == first { !(from - 1) } else { u64::MAX };
            let below = if index == last { to | (to - 1) } else { u64::MAX };
            self.words[index - self.base] |= above & below;
        }
    }

    /// Takes a CPU out; says whether it was there.
    pub fn remove(&mut self, cpu: Cpu) -> bool {
        let (index, bit) = place(cpu);
        let there = self.word(index) & bit != 0;
        if there {
            self.words[index - self.base] &= !bit;
            self.trim();
        }
        there
    }

    /// Whether the CPU is in the set.
    pub fn contains(&self, cpu: Cpu) -> bool {
        let (index, bit) = place(cpu);
        self.word(index) & bit != 0
    }

    /// How many CPUs the set holds.
    pub fn len(&self) -> usize {
        self.words.iter().map(|w| w.count_ones() as usize).sum()
    }

    /// Whether the set holds no CPU.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// The CPU with the lowest number.
    pub fn first(&self) -> Option<Cpu> {
        self.iter().next()
    }

    /// The CPU with the highest number.
    pub fn last(&self) -> Option<Cpu> {
        let word = self.words.last()?;
        cpu_at(self.end() - 1, BITS - 1 - word.leading_zeros())
    }

    /// The CPUs in ascending order.
    pub fn iter(&self) -> Iter<'_> {
        Iter { words: &self.words, base: self.base, word: 0, rest: self.words.first().copied().unwrap_or(0) }
    }

    /// The lowest CPU at or after `from`, or else the lowest of all: a walk that wraps around.
    #[doc(alias = "for_each_cpu_wrap")]
    pub fn next_wrapping(&self, from: Cpu) -> Option<Cpu> {
        let (start, bit) = place(from);
        let ahead = (start.max(self.base)..self.end()).find_map(|index| {
            let word = if index == start { self.word(index) & !(bit - 1) } else { self.word(index) };
            (word != 0).then(|| cpu_at(index, word.trailing_zeros()))
        });
        ahead.flatten().or_else(|| self.first())
    }

    /// Whether the two sets share a CPU.
    pub fn intersects(&self, other: &Self) -> bool {
        self.shared(other).any(|(_, word)| word != 0)
    }

    /// How many CPUs the two sets share.
    pub fn intersection_len(&self, other: &Self) -> usize {
        self.shared(other).map(|(_, word)| word.count_ones() as usize).sum()
    }

    /// Whether every CPU of this set is in `other`.
    pub fn is_subset(&self, other: &Self) -> bool {
        self.words().all(|(index, word)| word & !other.word(index) == 0)
    }

    /// The CPUs of this set that are in `other` too.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        let words = self.shared(other).map(|(_, word)| word).collect();
        Self::trimmed(self.base.max(other.base), words)
    }

    /// The CPUs of this set that are not in `other`.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        let words = (self.base..).zip(&self.words).map(|(index, word)| word & !other.word(index));
        Self::trimmed(self.base, words.collect())
    }

    /// The CPUs of either set.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        let mut all = self.clone();
        all.extend_from(other);
        all
    }

    /// Adds every CPU of `other`.
    pub fn extend_from(&mut self, other: &Self) {
        if other.is_empty() {
            return;
        }
        self.reach(other.base);
        self.reach(other.end() - 1);
        for (index, word) in other.words() {
            self.words[index - self.base] |= word;
        }
    }

    /// Takes every CPU of `other` out.
    pub fn subtract(&mut self, other: &Self) {
        let base = self.base;
        for (index, word) in self.words.iter_mut().enumerate() {
            *word &= !other.word(base + index);
        }
        self.trim();
    }

    /// The 64-bit word at an index, CPU 0 in the lowest bit of the first; 0 beyond the set.
    pub(crate) fn word(&self, index: usize) -> u64 {
        index.checked_sub(self.base).and_then(|at| self.words.get(at)).copied().unwrap_or(0)
    }

    /// The words that are not 0, with their indices. A span of few CPUs with their far siblings has many that are.
    pub(crate) fn words(&self) -> impl Iterator<Item = (usize, u64)> {
        (self.base..).zip(self.words.iter().copied()).filter(|&(_, word)| word != 0)
    }

    /// One more than the index of the last word.
    fn end(&self) -> usize {
        self.base + self.words.len()
    }

    fn shared(&self, other: &Self) -> impl Iterator<Item = (usize, u64)> {
        let range = self.base.max(other.base)..self.end().min(other.end());
        range.map(|index| (index, self.word(index) & other.word(index)))
    }

    /// Makes room for a word.
    #[inline]
    fn reach(&mut self, index: usize) {
        if index < self.base || index >= self.end() {
            self.grow(index);
        }
    }

    #[cold]
    fn grow(&mut self, index: usize) {
        if self.words.is_empty() {
            self.base = index;
        }
        if index < self.base {
            let missing = self.base - index;
            self.words.insert_many(0, std::iter::repeat_n(0, missing));
            self.base = index;
        }
        if index >= self.end() {
            self.words.resize(index + 1 - self.base, 0);
        }
    }

    /// The set of these words, each with its index, ascending.
    pub(crate) fn of_words(words: impl Iterator<Item = (usize, u64)>) -> Self {
        let mut set = Self::new();
        for (index, word) in words.filter(|&(_, word)| word != 0) {
            set.reach(index);
            set.words[index - set.base] |= word;
        }
        set
    }

    fn trimmed(base: usize, words: Words) -> Self {
        let mut set = Self { base, words };
        set.trim();
        set
    }

    fn trim(&mut self) {
        while self.words.last() == Some(&0) {
            self.words.pop();
        }
        let leading = self.words.iter().take_while(|&&word| word == 0).count();
        self.words.drain(..leading);
        self.base = if self.words.is_empty() { 0 } else { self.base + leading };
    }
}

fn place(cpu: Cpu) -> (usize, u64) {
    (cpu.index() / BITS as usize, 1 << (cpu.number() % BITS))
}

/// The CPUs whose bits are set in the word at `index`, ascending.
pub(crate) fn cpus_of_word(index: usize, mut word: u64) -> impl Iterator<Item = Cpu> {
    std::iter::from_fn(move || {
        let bit = (word != 0).then(|| word.trailing_zeros())?;
        word &= word - 1;
        cpu_at(index, bit)
    })
}

fn cpu_at(word: usize, bit: u32) -> Option<Cpu> {
    u32::try_from(word).ok().and_then(|word| Cpu::try_new(word * BITS + bit))
}

impl From<Cpu> for CpuSet {
    fn from(cpu: Cpu) -> Self {
        let mut set = Self::new();
        set.insert(cpu);
        set
    }
}

impl FromIterator<Cpu> for CpuSet {
    fn from_iter<I: IntoIterator<Item = Cpu>>(cpus: I) -> Self {
        let mut set = Self::new();
        set.extend(cpus);
        set
    }
}

impl Extend<Cpu> for CpuSet {
    fn extend<I: IntoIterator<Item = Cpu>>(&mut self, cpus: I) {
        for cpu in cpus {
            self.insert(cpu);
        }
    }
}

impl<'a> IntoIterator for &'a CpuSet {
    type Item = Cpu;
    type IntoIter = Iter<'a>;
    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}

impl fmt::Debug for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CpuSet({self})")
    }
}

/// The CPUs of a [`CpuSet`] in ascending order.
#[derive(Debug, Clone)]
pub struct Iter<'a> {
    words: &'a [u64],
    base: usize,
    word: usize,
    rest: u64,
}

impl Iterator for Iter<'_> {
    type Item = Cpu;
    fn next(&mut self) -> Option<Cpu> {
        while self.rest == 0 {
            self.word += 1;
            self.rest = *self.words.get(self.word)?;
        }
        let bit = self.rest.trailing_zeros();
        self.rest &= self.rest - 1;
        cpu_at(self.base + self.word, bit)
    }
}
