//! When a kernel was built, from `uname -v`.

use std::fmt;

/// The month in which a kernel says it was built.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Built {
    /// The year.
    pub year: u16,
    /// The month, from 1.
    pub month: u8,
}

impl Built {
    /// Looks for a date in `uname -v`: `… Fri Aug 30 12:02:04 UTC 2024`, `… Wed, 24 Jul 2024 22:25:43 +0000`,
    /// `… (2026-05-08)`. The kernel cuts the text at 64 characters, so the year may be missing: then there is none.
    /// Years before 2019 are no dates either: reproducible builds stamp 1970 or 1980.
    pub(super) fn parse(version: &str) -> Option<Self> {
        let mut month = None;
        for word in version.split([' ', ',', '(', ')']) {
            if let Some(date) = iso(word) {
                return Some(date);
            }
            if let Some(at) = MONTHS.iter().position(|name| *name == word) {
                month = u8::try_from(at + 1).ok();
            } else if let (Some(month), Some(year)) = (month, year(word)) {
                return Some(Self { year, month });
            }
        }
        None
    }
}

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

fn year(word: &str) -> Option<u16> {
    let digits = word.len() == 4 && word.bytes().all(|b| b.is_ascii_digit());
    word.parse().ok().filter(|year| digits && (2019..2100).contains(year))
}

/// `2026-05-08`, with or without a time behind it.
fn iso(word: &str) -> Option<Built> {
    let mut parts = word.splitn(3, '-');
    let year = year(parts.next()?)?;
    let month = parts.next().filter(|month| month.len() == 2)?.parse().ok()?;
    parts.next()?;
    (1..=12).contains(&month).then_some(Built { year, month })
}

impl fmt::Display for Built {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{:02}", self.year, self.month)
    }
}

#[cfg(test)]
mod tests {
    use super::Built;

    #[test]
    fn dates() {
        for (version, date) in [
            ("#45-Ubuntu SMP PREEMPT_DYNAMIC Fri Aug 30 12:02:04 UTC 2024", Some((2024, 8))),
            ("#1 SMP PREEMPT_DYNAMIC Debian 6.1.170-3 (2026-05-08)", Some((2026, 5))),
            ("#1 SMP PREEMPT_DYNAMIC PMX 6.8.12-4 (2024-11-06T15:04Z)", Some((2024, 11))),
            ("#1 SMP PREEMPT_DYNAMIC Wed, 24 Jul 2024 22:25:43 +0000", Some((2024, 7))),
            ("#1 SMP PREEMPT_DYNAMIC Thu Jun  6 08:03:39 UTC 2024 (0aca4a3)", Some((2024, 6))),
            // Cut at 64 characters.
            ("#45~22.04.1-Ubuntu SMP PREEMPT_DYNAMIC Wed Sep 11 15:25:05 UTC 2", None),
            // Reproducible builds.
            ("#1-NixOS SMP PREEMPT_DYNAMIC Tue Jan  1 00:00:00 UTC 1980", None),
            ("#1 SMP PREEMPT_DYNAMIC @0", None),
            ("2024-13-01", None),
            ("2024-05", None),
            ("Mayday 2024", None),
            ("", None),
        ] {
            let date = date.map(|(year, month)| Built { year, month });
            assert_eq!(Built::parse(version), date, "{version}");
        }
    }
}
