//! Kernel version numbers.

use std::fmt;

/// A version of kernel.org's numbering.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Version {
    /// `6` of `6.12.95`.
    pub major: u16,
    /// `12` of `6.12.95`.
    pub minor: u16,
    /// `95` of `6.12.95`: the stable level. Absent where it is not told.
    pub patch: Option<u16>,
    /// `3` of `6.12-rc3`. Absent for a release.
    pub rc: Option<u16>,
}

impl Version {
    /// The series: `(6, 12)` of `6.12.95`.
    pub fn series(self) -> (u16, u16) {
        (self.major, self.minor)
    }

    /// Whether it lies between two mainline releases.
    pub(super) fn is_mainline_rc(self) -> bool {
        self.rc.is_some() && matches!(self.patch, None | Some(0))
    }

    /// Takes a version from the front of a text that looks like a release, such as `v6.12.95`, `6.12-rc3` or
    /// `6.1.0-57-cloud-amd64`, and returns it with the suffix that follows the numbers; or says what is wrong.
    pub(super) fn parse(text: &str) -> Result<(Self, &str), &'static str> {
        let text = text.strip_prefix(['v', 'V']).unwrap_or(text);
        if text.is_empty() {
            return Err("it is empty");
        }
        let (major, rest) = number(text)?.ok_or("it does not begin with a number")?;
        let rest = rest.strip_prefix('.').ok_or("it has no minor number")?;
        let (minor, mut rest) = number(rest)?.ok_or("its minor number is not a number")?;
        let mut patch = None;
        if let Some(after) = rest.strip_prefix('.') {
            let (number, after) = number(after)?.ok_or("its patch level is not a number")?;
            patch = Some(number);
            rest = after;
        }
        if major > HIGHEST || minor > HIGHEST {
            return Err("a number is too large");
        }
        let rc = candidate(rest)?;
        if !rest.is_empty() && !rest.starts_with(['-', '+', '_', '~', '.']) && !rest.starts_with("rc") {
            return Err("there is text directly behind its numbers");
        }
        if !rest.bytes().all(|b| b.is_ascii_graphic()) {
            return Err("there is white space or a strange character in it");
        }
        Ok((Self { major, minor, patch, rc }, rest))
    }
}

/// The kernel's own encoding of versions has a byte for each of the first two numbers.
const HIGHEST: u16 = 255;

/// The decimal number at the front of a text, and the rest; nothing if there is none.
fn number(text: &str) -> Result<Option<(u16, &str)>, &'static str> {
    let (digits, rest) = text.split_at(text.bytes().take_while(u8::is_ascii_digit).count());
    if digits.is_empty() {
        return Ok(None);
    }
    let number = digits.parse().map_err(|_| "a number is too large")?;
    Ok(Some((number, rest)))
}

/// The `3` of `-rc3`, of `~rc3` or of Fedora's `-0.rc3.20240802`.
fn candidate(suffix: &str) -> Result<Option<u16>, &'static str> {
    for (at, _) in suffix.match_indices("rc") {
        let (before, after) = (&suffix[..at], &suffix[at + 2..]);
        if before.ends_with(|c: char| c.is_ascii_alphanumeric()) {
            continue;
        }
        if let Some((rc, _)) = number(after)? {
            return Ok(Some(rc));
        }
    }
    Ok(None)
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)?;
        match (self.patch, self.rc) {
            (Some(patch), None) => write!(f, ".{patch}"),
            (Some(0) | None, Some(rc)) => write!(f, "-rc{rc}"),
            (Some(patch), Some(rc)) => write!(f, ".{patch}-rc{rc}"),
            (None, None) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Version;

    #[test]
    fn numbers_and_suffixes() {
        for (text, shown, suffix) in [
            ("6.12.95", "6.12.95", ""),
            ("v6.12.95", "6.12.95", ""),
            ("6.6", "6.6", ""),
            ("6.12.0-rc3", "6.12-rc3", "-rc3"),
            ("6.12-rc3", "6.12-rc3", "-rc3"),
            ("v5.18rc4", "5.18-rc4", "rc4"),
            ("6.12.97-rc1", "6.12.97-rc1", "-rc1"),
            ("6.12~rc3-1~exp1", "6.12-rc3", "~rc3-1~exp1"),
            (
                "6.11.0-0.rc1.20240802gitc0ecd6388360.17.fc41.x86_64",
                "6.11-rc1",
                "-0.rc1.20240802gitc0ecd6388360.17.fc41.x86_64",
            ),
            ("6.1.0-57-cloud-amd64", "6.1.0", "-57-cloud-amd64"),
            ("5.15.153.1-microsoft-standard-WSL2", "5.15.153", ".1-microsoft-standard-WSL2"),
            ("6.12.117+deb12-cloud-amd64", "6.12.117", "+deb12-cloud-amd64"),
            ("6.6.1-march9", "6.6.1", "-march9"),
        ] {
            let (version, rest) = Version::parse(text).unwrap();
            assert_eq!((version.to_string().as_str(), rest), (shown, suffix), "{text}");
        }
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (text, problem) in [
            ("", "it is empty"),
            ("v", "it is empty"),
            ("six", "it does not begin with a number"),
            ("-6.1", "it does not begin with a number"),
            ("6", "it has no minor number"),
            ("6.", "its minor number is not a number"),
            ("6.12.", "its patch level is not a number"),
            ("6.12.x", "its patch level is not a number"),
            ("6.99999999999", "a number is too large"),
            ("6.300", "a number is too large"),
            ("6.12.95beta", "there is text directly behind its numbers"),
            ("6.12.95 6.1", "there is text directly behind its numbers"),
            ("6.12.95-a b", "there is white space or a strange character in it"),
            ("6.12.95-ü", "there is white space or a strange character in it"),
        ] {
            assert_eq!(Version::parse(text), Err(problem), "{text:?}");
        }
    }
}
