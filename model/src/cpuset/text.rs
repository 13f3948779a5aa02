//! The text forms of a set of CPUs: cpulist, hex mask, and comma-separated groups of 32 bits.

use super::{Cpu, CpuSet, MAX_CPUS};
use std::{fmt, str::FromStr};

/// The longest text that is looked at, in bytes: far more than a list of every second of 65,536 CPUs needs.
const MAX_TEXT: usize = 1 << 20;

/// The most parts, and words of 64 CPUs in long strides, that a list may name: each CPU twice.
const MAX_NAMED: u32 = 2 * MAX_CPUS;

/// Why a text is no set of CPUs.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// A part of the text is neither a CPU, a range nor hex digits.
    #[error("`{part}` is not a CPU, a range such as 0-15 or 0-30:2, or a hex mask such as 0xff")]
    BadPart {
        /// The part, cut to a readable length.
        part: String,
    },
    /// A range ends before it starts.
    #[error("the range `{part}` ends before it starts")]
    BackwardRange {
        /// The range as given.
        part: String,
    },
    /// A stride is 0, or a run is longer than its stride.
    #[error("the stride in `{part}` must be at least 1, and at least the run before the slash")]
    BadStride {
        /// The range as given.
        part: String,
    },
    /// A CPU number is beyond what Berth takes.
    #[error("`{part}` names a CPU above {}, the highest number that is accepted", MAX_CPUS - 1)]
    TooLarge {
        /// The part, cut to a readable length.
        part: String,
    },
    /// The text names CPUs over and over.
    #[error("the text names the same CPUs over and over; expected each about once")]
    TooMany,
    /// The text is longer than any set needs.
    #[error("the text is {len} bytes long; at most {MAX_TEXT} are read")]
    TooLong {
        /// Its length in bytes.
        len: usize,
    },
}

impl CpuSet {
    /// Reads a set of CPUs in any form that Linux tools print:
    ///
    /// * cpulist: `0-15,320-335`, with strides `0-30:2` (every second) and `0-31:4/8` (the first 4 of every 8);
    /// * hex mask: `0xff`;
    /// * groups of 32 bits, highest first: `ffffffff,00000000`, also with `0x` before each.
    ///
    /// A text without CPUs (nothing, `0x0`, `,`) is the empty set: whether that is allowed is the caller's to say.
    ///
    /// # Errors
    ///
    /// The part that cannot be read, or a CPU number of [`MAX_CPUS`] or more.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        if text.len() > MAX_TEXT {
            return Err(ParseError::TooLong { len: text.len() });
        }
        let text = text.trim();
        let is_group = |p: &str| p.len() == 8 && p.bytes().all(|b| b.is_ascii_hexdigit());
        let has_prefix = |p: &str| p.starts_with("0x") || p.starts_with("0X");
        // Eight digits are a group of a mask: no CPU number is that long.
        if text.split(',').any(|p| has_prefix(p.trim()) || is_group(p.trim())) {
            parse_mask(text)
        } else {
            parse_list(text)
        }
    }

    /// The hex form without groups: `0xff`; the empty set is `0x0`.
    pub fn to_hex(&self) -> String {
        let mut words = (0..self.end()).rev().map(|index| self.word(index));
        let Some(last) = words.next() else { return "0x0".to_owned() };
        words.fold(format!("{last:#x}"), |text, word| format!("{text}{word:016x}"))
    }

    /// The kernel's mask form: groups of 32 bits, highest first, separated by commas; the empty set is `00000000`.
    pub fn to_groups(&self) -> String {
        let words = (0..self.end()).rev().map(|index| self.word(index));
        let halves = words.flat_map(|w| [w >> 32, w & 0xffff_ffff]);
        let groups: Vec<String> = halves.skip_while(|&g| g == 0).map(|g| format!("{g:08x}")).collect();
        if groups.is_empty() { "00000000".to_owned() } else { groups.join(",") }
    }
}

fn shown(part: &str) -> String {
    const MOST: usize = 40;
    match part.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &part[..end]),
        None => part.to_owned(),
    }
}

fn parse_mask(text: &str) -> Result<CpuSet, ParseError> {
    let mut set = CpuSet::new();
    let mut base: usize = 0;
    for (i, part) in text.rsplit(',').map(str::trim).enumerate() {
        let digits = part.strip_prefix("0x").or_else(|| part.strip_prefix("0X")).unwrap_or(part);
        let lone = i == 0 && !text.contains(',');
        if digits.is_empty() || (!lone && digits.len() > 8) || !digits.bytes().all(|b| b.is_ascii_hexdigit())
        {
            return Err(ParseError::BadPart { part: shown(part) });
        }
        for (nibble, digit) in digits.chars().rev().filter_map(|c| c.to_digit(16)).enumerate() {
            for bit in (0..4).filter(|bit| digit >> bit & 1 == 1) {
                let number = u32::try_from(base + nibble * 4 + bit).ok();
                let cpu = number.and_then(Cpu::try_new);
                set.insert(cpu.ok_or_else(|| ParseError::TooLarge { part: shown(part) })?);
            }
        }
        base += 32;
    }
    Ok(set)
}

fn parse_list(text: &str) -> Result<CpuSet, ParseError> {
    let mut set = CpuSet::new();
    let mut named = 0;
    for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        let number = |digits: &str| -> Result<u32, ParseError> {
            if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
                return Err(ParseError::BadPart { part: shown(part) });
            }
            digits
                .parse()
                .ok()
                .filter(|&n| n < MAX_CPUS)
                .ok_or_else(|| ParseError::TooLarge { part: shown(part) })
        };
        let (range, stride) =
            part.split_once(':').map_or((part, None), |(range, stride)| (range, Some(stride)));
        let (low, high) = match range.split_once('-') {
            Some((low, high)) => (number(low.trim())?, number(high.trim())?),
            None if stride.is_some() => return Err(ParseError::BadPart { part: shown(part) }),
            None => (number(range)?, number(range)?),
        };
        if low > high {
            return Err(ParseError::BackwardRange { part: shown(part) });
        }
        let (run, step) = match stride.map(|s| s.split_once('/').unwrap_or(("1", s))) {
            Some((run, step)) => (number(run)?, number(step)?),
            None => (1, 1),
        };
        if step == 0 || run == 0 || run > step {
            return Err(ParseError::BadStride { part: shown(part) });
        }
        let mut from = low;
        while from <= high {
            let to = high.min(from + run - 1);
            if let (Some(from), Some(to)) = (Cpu::try_new(from), Cpu::try_new(to)) {
                set.insert_range(from, to);
            }
            from += step;
        }
        // What is named again and again costs time and adds nothing.
        named += (high - low) / step / 64 + 1;
        if named > MAX_NAMED {
            return Err(ParseError::TooMany);
        }
    }
    Ok(set)
}

impl FromStr for CpuSet {
    type Err = ParseError;
    fn from_str(text: &str) -> Result<Self, ParseError> {
        Self::parse(text)
    }
}

/// The kernel's cpulist form.
impl fmt::Display for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut cpus = self.iter().map(Cpu::number).peekable();
        let mut first = true;
        while let Some(low) = cpus.next() {
            let mut high = low;
            while cpus.next_if_eq(&(high + 1)).is_some() {
                high += 1;
            }
            if !std::mem::take(&mut first) {
                f.write_str(",")?;
            }
            if low == high { write!(f, "{low}")? } else { write!(f, "{low}-{high}")? }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn list(text: &str) -> String {
        CpuSet::parse(text).unwrap().to_string()
    }

    #[test]
    fn every_form_of_one_set_reads_the_same() {
        for text in
            ["0-31,64-95", "0xffffffff00000000ffffffff", "ffffffff,00000000,ffffffff", " 64-95 , 0-31,5 "]
        {
            let set = CpuSet::parse(text).unwrap();
            assert_eq!(set.to_string(), "0-31,64-95", "{text}");
            assert_eq!(set.to_hex(), "0xffffffff00000000ffffffff", "{text}");
            assert_eq!(set.to_groups(), "ffffffff,00000000,ffffffff", "{text}");
        }
        assert_eq!(list("0xffffffff,0x00000000"), "32-63");
        assert_eq!(list("00000001"), "0");
        assert_eq!(list("1024-1030"), "1024-1030");
    }

    #[test]
    fn strides_as_the_kernel_reads_them() {
        assert_eq!(list("0-10:2"), "0,2,4,6,8,10");
        assert_eq!(list("0-15:2/8,20"), "0-1,8-9,20");
        assert_eq!(list("0-300:64/100"), "0-63,100-163,200-263,300");
        assert_eq!(list("65000-65535:7").split(',').count(), 77);
    }

    #[test]
    fn nothing_is_the_empty_set() {
        for text in ["", " ", ",", "0x0", "00000000", ",,"] {
            assert!(CpuSet::parse(text).unwrap().is_empty(), "{text:?}");
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        let error = |text: &str| CpuSet::parse(text).unwrap_err();
        for text in
            ["abc", "1-", "-3", "1..3", "0xzz", "1,x", "0x", "3:2", "1-2-3", "+1", "٣", "fffffffff,00000000"]
        {
            assert!(matches!(error(text), ParseError::BadPart { .. }), "{text}: {:?}", error(text));
        }
        assert!(matches!(error("9-3"), ParseError::BackwardRange { .. }));
        for text in ["0-9:0", "0-9:3/2", "0-9:0/2"] {
            assert!(matches!(error(text), ParseError::BadStride { .. }), "{text}");
        }
        let wide = format!("0x1{}", "0".repeat(16_384));
        for text in ["65536", "0-99999", "99999999999999", wide.as_str()] {
            assert!(matches!(error(text), ParseError::TooLarge { .. }), "{text}");
        }
        assert!(matches!(error(&"1,".repeat(1 << 20)), ParseError::TooLong { .. }));
        assert!(matches!(error(&"0-65535,".repeat(100_000)), ParseError::TooMany));
        assert_eq!(list(&"0-65535,".repeat(100)), "0-65535");
    }

    proptest! {
        #[test]
        fn any_set_survives_every_text_form(numbers in prop::collection::vec(0u16..=u16::MAX, 0..200)) {
            let set: CpuSet = numbers.into_iter().map(Cpu::from).collect();
            prop_assert_eq!(&CpuSet::parse(&set.to_string()).unwrap(), &set);
            prop_assert_eq!(&CpuSet::parse(&set.to_hex()).unwrap(), &set);
            prop_assert_eq!(&CpuSet::parse(&set.to_groups()).unwrap(), &set);
        }

        #[test]
        fn set_algebra_agrees_with_a_plain_one(a in prop::collection::btree_set(0u16..300, 0..80),
                                               b in prop::collection::btree_set(0u16..300, 0..80)) {
            let set = |s: &std::collections::BTreeSet<u16>| s.iter().map(|&n| Cpu::from(n)).collect::<CpuSet>();
            let (x, y) = (set(&a), set(&b));
            prop_assert_eq!(x.intersection(&y), set(&(&a & &b)));
            prop_assert_eq!(x.union(&y), set(&(&a | &b)));
            prop_assert_eq!(x.difference(&y), set(&(&a - &b)));
            prop_assert_eq!(x.intersects(&y), !a.is_disjoint(&b));
            prop_assert_eq!(x.intersection_len(&y), a.intersection(&b).count());
            prop_assert_eq!(x.is_subset(&y), a.is_subset(&b));
            prop_assert_eq!(x.len(), a.len());
            prop_assert_eq!(x.last(), a.last().map(|&n| Cpu::from(n)));
            let from = Cpu::from(150);
            let next = a.range(150..).chain(&a).next().map(|&n| Cpu::from(n));
            prop_assert_eq!(x.next_wrapping(from), next);
        }

        #[test]
        fn no_text_panics(text in ".{0,40}") {
            let _ = CpuSet::parse(&text);
        }
    }
}
