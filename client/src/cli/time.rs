//! Times as they are typed: `500ms`, `5s`, `1m`.

use std::time::Duration;

/// No answer takes longer than a server lets it; more than an hour is a slip of the keyboard.
const MOST: Duration = Duration::from_secs(3600);
/// It has to be renewed in time.
const SHORTEST_HOLD: Duration = Duration::from_millis(100);
/// More than a year is no lease.
const LONGEST_HOLD: Duration = Duration::from_secs(366 * 24 * 3600);

/// Reads a time of more than nothing and at most an hour. A number alone is in seconds.
///
/// # Errors
///
/// A sentence that says what is accepted.
pub(super) fn parse(text: &str) -> Result<Duration, String> {
    read(text)
        .filter(|time| !time.is_zero() && *time <= MOST)
        .ok_or_else(|| "write a time of up to an hour, such as 500ms, 5s or 1m".to_owned())
}

/// Reads how long CPUs are held, from 100 ms up to a year; the server's own limit may be shorter.
///
/// # Errors
///
/// A sentence that says what is accepted.
pub(super) fn hold(text: &str) -> Result<Duration, String> {
    read(text)
        .filter(|time| (SHORTEST_HOLD..=LONGEST_HOLD).contains(time))
        .ok_or_else(|| "write a time of 100ms up to a year, such as 30s, 10m, 8h or 2d".to_owned())
}

/// Reads a time without bounds, nothing included; the server has the bounds.
///
/// # Errors
///
/// A sentence that says what is accepted.
pub(super) fn any(text: &str) -> Result<Duration, String> {
    read(text).ok_or_else(|| "write a time such as 0, 100us, 2ms or 1s".to_owned())
}

fn read(text: &str) -> Option<Duration> {
    let digits = text.trim_end_matches(char::is_alphabetic);
    let seconds = match &text[digits.len()..] {
        "ns" => 1e-9,
        "us" | "µs" => 1e-6,
        "ms" => 0.001,
        "s" | "" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        "d" => 86_400.0,
        _ => return None,
    };
    let number: f64 = digits.parse().ok()?;
    Duration::try_from_secs_f64(number * seconds).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        for (text, ms) in [("500ms", 500), ("5s", 5000), ("0.25", 250), ("1m", 60_000), ("2min", 120_000)] {
            assert_eq!(parse(text), Ok(Duration::from_millis(ms)), "{text}");
        }
        for text in ["", "s", "0", "-1s", "2h", "1e9s", "nan", "inf", "5 s", "61m", "1w"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn holds_may_be_long() {
        assert_eq!(hold("8h"), Ok(Duration::from_secs(8 * 3600)));
        assert_eq!(hold("2d"), Ok(Duration::from_secs(48 * 3600)));
        for text in ["0s", "2ns", "99ms", "400d", "1e300d", "soon"] {
            assert!(hold(text).is_err(), "{text}");
        }
    }

    #[test]
    fn pauses_may_be_short_or_nothing() {
        assert_eq!(any("0"), Ok(Duration::ZERO));
        assert_eq!(any("100us"), Ok(Duration::from_micros(100)));
        assert_eq!(any("100µs"), Ok(Duration::from_micros(100)));
        assert!(any("-1us").is_err());
    }
}
