//! Numbers as people read them.

use std::time::Duration;

use berth_proto::v1::CountRange;

/// A count with its noun: `1 task`, `176 tasks`.
pub(crate) fn count(number: impl Into<u64>, noun: &str) -> String {
    let number = number.into();
    match (number, noun) {
        (1, _) => format!("1 {noun}"),
        _ => format!("{} {noun}s", grouped(number)),
    }
}

/// Thousands set apart from 10,000 on.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    if number < 10_000 {
        return digits;
    }
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A share of 0 to 1 as a percentage.
pub(crate) fn percent(share: f64) -> String {
    format!("{:.2} %", share * 100.0)
}

/// From the least to the most, as percentages; one number where both read the same.
pub(crate) fn percent_range(least: f64, most: f64) -> String {
    let (low, high) = (percent(least), percent(most));
    if low == high { low } else { format!("{} to {high}", low.trim_end_matches(" %")) }
}

/// A range of counts; one number where both ends are the same.
pub(crate) fn range(range: CountRange) -> String {
    let (least, most) = (range.least, range.most);
    if least == most { least.to_string() } else { format!("{least} to {most}") }
}

/// Bytes in the largest binary unit that leaves a whole part, with a decimal below ten.
pub(crate) fn bytes(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let mut unit = "B";
    let mut tenths = u128::from(bytes) * 10;
    for next in UNITS {
        if tenths < 10_240 {
            break;
        }
        tenths /= 1024;
        unit = next;
    }
    match (tenths / 10, tenths % 10) {
        (whole, tenth) if whole < 10 && tenth > 0 => format!("{whole}.{tenth} {unit}"),
        (whole, _) => format!("{whole} {unit}"),
    }
}

/// A time in the unit that suits it.
pub(crate) fn time(time: Duration) -> String {
    match time.as_nanos() {
        0 => "0 s".to_owned(),
        1..1_000_000 => format!("{} µs", time.as_micros()),
        1_000_000..1_000_000_000 => format!("{} ms", time.as_millis()),
        _ if time.as_secs() < 120 => format!("{:.1} s", time.as_secs_f64()),
        _ => format!("{} min", time.as_secs() / 60),
    }
}

/// A time of the wire. Empty if it is absent or negative.
pub(crate) fn wire_time(wire: Option<prost_types::Duration>) -> String {
    wire.and_then(|wire| Duration::try_from(wire).ok()).map(time).unwrap_or_default()
}

/// A moment, to the second, in UTC. Empty if it is absent.
pub(crate) fn moment(wire: Option<prost_types::Timestamp>) -> String {
    wire.map(|at| prost_types::Timestamp { nanos: 0, ..at }.to_string()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_to_the_second() {
        let at = prost_types::Timestamp { seconds: 1_780_000_000, nanos: 123_456_789 };
        assert_eq!(moment(Some(at)), "2026-05-28T20:26:40Z");
        assert_eq!(moment(None), "");
    }

    #[test]
    fn numbers_read_well() {
        assert_eq!(count(1_u32, "task"), "1 task");
        assert_eq!(count(65_536_u32, "task"), "65,536 tasks");
        assert_eq!(grouped(1_048_576), "1,048,576");
        assert_eq!(percent(2.0 / 11.0), "18.18 %");
        assert_eq!(percent_range(0.25, 1.0), "25.00 to 100.00 %");
        assert_eq!(percent_range(0.181_81, 0.181_82), "18.18 %");
        assert_eq!(range(CountRange { least: 1, most: 5 }), "1 to 5");
        for (n, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1 << 25, "32 MiB"),
            (1_610_612_736, "1.5 GiB"),
            (u64::MAX, "15 EiB"),
        ] {
            assert_eq!(bytes(n), text);
        }
        for (n, text) in [
            (0, "0 s"),
            (100_000, "100 µs"),
            (250_000_000, "250 ms"),
            (1_500_000_000, "1.5 s"),
            (400_000_000_000, "6 min"),
        ] {
            assert_eq!(time(Duration::from_nanos(n)), text);
        }
    }
}
