//! Times as they are typed: `500ms`, `5s`, `1m`.

use std::time::Duration;

/// No answer takes longer than a server lets it; more than an hour is a slip of the keyboard.
const MOST: Duration = Duration::from_secs(3600);

/// Reads a time of more than nothing and at most an hour. A number alone is in seconds.
///
/// # Errors
///
/// A sentence that says what is accepted.
pub(super) fn parse(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let seconds = match &text[digits.len()..] {
        "ms" => 0.001,
        "s" | "" => 1.0,
        "m" | "min" => 60.0,
        _ => f64::NAN,
    };
    let number: f64 = digits.parse().unwrap_or(f64::NAN);
    Duration::try_from_secs_f64(number * seconds)
        .ok()
        .filter(|time| !time.is_zero() && *time <= MOST)
        .ok_or_else(|| "write a time of up to an hour, such as 500ms, 5s or 1m".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        for (text, ms) in [("500ms", 500), ("5s", 5000), ("0.25", 250), ("1m", 60_000), ("2min", 120_000)] {
            assert_eq!(parse(text), Ok(Duration::from_millis(ms)), "{text}");
        }
        for text in ["", "s", "0", "-1s", "1h", "1e9s", "nan", "inf", "5 s", "61m"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
