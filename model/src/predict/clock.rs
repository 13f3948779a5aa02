//! Time inside a burst: how utilisation and running time grow between two forks.
//!
//! Both averages approach what the queue runs with a half-life of 32 periods of 1024 µs. What a queue still *lacks* of
//! that shrinks everywhere by the same factor, so lacks are kept as they would be worth at one moment: sums over groups
//! stay exact, no counter is touched as time passes, and groups are compared as they stand.

/// A half-life of the averages is 2 to this power of microseconds.
#[doc(alias = "LOAD_AVG_PERIOD")]
const HALF_LIFE_BITS: u32 = 15;

/// Bits behind the point of a [`Lack`].
const FRACTION: u32 = 8;

/// After so many half-lives lacks are kept at a new moment, so that they never outgrow 64 bits.
const EPOCH: u64 = 20;

/// 2 to the power of 1/2, 1/4, 1/8, …, in units of 2^-31.
const ROOTS: [i64; HALF_LIFE_BITS as usize] = [
    3_037_000_500,
    2_553_802_834,
    2_341_847_524,
    2_242_560_872,
    2_194_507_417,
    2_170_868_212,
    2_159_144_272,
    2_153_306_067,
    2_150_392_887,
    2_148_937_775,
    2_148_210_589,
    2_147_847_087,
    2_147_665_360,
    2_147_574_502,
    2_147_529_075,
];

/// Bits behind the point of a factor; two factors below 2 multiply within 64 bits.
const POINT: u32 = 31;

/// 1 in units of 2^-31.
const ONE: i64 = 1 << POINT;

/// What an average lacks of what it approaches, as it is kept; below 0 if it is more.
pub(crate) type Lack = i64;

/// How far a burst has come since the moment at which lacks are kept.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    micros: u64,
    /// 2 to the power of the fraction of a half-life, and its reciprocal, in units of 2^-31.
    growth: i64,
    decay: i64,
}

impl Default for Clock {
    fn default() -> Self {
        Self { micros: 0, growth: ONE, decay: ONE }
    }
}

impl Clock {
    /// Lets time pass; says by how many bits every lack is to be shifted down, which is rarely more than 0.
    pub(crate) fn advance(&mut self, micros: u64) -> u32 {
        if micros == 0 {
            return 0;
        }
        self.micros = self.micros.saturating_add(micros);
        let half_lives = self.half_lives();
        let epoch = if half_lives < EPOCH { 0 } else { half_lives };
        self.micros -= epoch << HALF_LIFE_BITS;
        let fraction = self.micros & ((1 << HALF_LIFE_BITS) - 1);
        self.growth = power(fraction);
        self.decay = if fraction == 0 { ONE } else { power((1 << HALF_LIFE_BITS) - fraction) >> 1 };
        u32::try_from(epoch).unwrap_or(u32::MAX).min(63)
    }

    fn half_lives(self) -> u64 {
        self.micros >> HALF_LIFE_BITS
    }

    /// Keeps what one queue lacks now.
    pub(crate) fn keep(self, lack: i32) -> Lack {
        let grown = (i128::from(lack) << FRACTION) * i128::from(self.growth);
        // 32 bits, a fraction of 8, a factor below 2 and EPOCH half-lives fit.
        i64::try_from((grown >> POINT) << self.half_lives()).unwrap_or(0)
    }

    /// What is lacking now of what was kept.
    pub(crate) fn lacking(self, kept: Lack) -> i64 {
        let kept = kept >> self.half_lives();
        // What queues lack fits with its factor in 64 bits, whatever a large host lacks does not.
        match kept.checked_mul(self.decay) {
            Some(now) => now >> (POINT + FRACTION),
            None => {
                let now = (i128::from(kept) * i128::from(self.decay)) >> (POINT + FRACTION);
                i64::try_from(now).unwrap_or(i64::MAX)
            }
        }
    }
}

/// The share that is left after a time, in units of 2^-31, of what halves in each half-life.
pub(crate) fn left_after(micros: u64, half_life: u64) -> i64 {
    let halvings = (micros.min(u64::MAX >> HALF_LIFE_BITS) << HALF_LIFE_BITS) / half_life;
    let (whole, fraction) = (halvings >> HALF_LIFE_BITS, halvings & ((1 << HALF_LIFE_BITS) - 1));
    if whole > 32 {
        return 0;
    }
    ((ONE << POINT) / power(fraction)) >> whole
}

/// 2 to the power of a fraction of a half-life, in units of 2^-31.
fn power(fraction: u64) -> i64 {
    let bits = (0..HALF_LIFE_BITS).filter(|bit| fraction >> (HALF_LIFE_BITS - 1 - bit) & 1 == 1);
    bits.fold(ONE, |product, bit| (product * ROOTS[bit as usize]) >> POINT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_is_lacking_after_a_half_life() {
        let mut clock = Clock::default();
        let kept = clock.keep(512);
        let mut lacking = Vec::new();
        for micros in [0, 1_000, 31_768, 32_768, 100_000] {
            assert_eq!(clock.advance(micros), 0);
            lacking.push(clock.lacking(kept));
            let fresh = clock.lacking(clock.keep(512));
            assert!((511..=512).contains(&fresh), "{fresh}");
        }
        assert_eq!(lacking, [512, 501, 256, 128, 15]);
    }

    #[test]
    fn an_epoch_changes_the_unit_and_no_value() {
        let mut clock = Clock::default();
        clock.advance(19 << HALF_LIFE_BITS);
        let kept = clock.keep(1024);
        let shift = clock.advance(1 << HALF_LIFE_BITS);
        assert_eq!((shift, clock.lacking(kept >> shift)), (20, 512));
    }

    #[test]
    fn what_halves_is_a_quarter_after_two() {
        assert_eq!(left_after(0, 7_702), ONE);
        assert_eq!(left_after(7_702, 7_702), ONE / 2);
        assert_eq!(left_after(15_404, 7_702), ONE / 4);
        assert_eq!(left_after(u64::MAX >> 16, 7_702), 0);
    }
}
