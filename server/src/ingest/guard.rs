//! What is looked at before a description reaches hwloc's C code.
//!
//! hwloc trusts its input: it takes 3.0 for a wrong file without saying so, allocates what a synthetic description
//! multiplies to, and leaves document types to its XML library. Each is refused here with a sentence.

use berth_model::cpuset::MAX_CPUS;

/// The most XML that is looked at, in bytes.
pub const MAX_XML_BYTES: usize = 16 << 20;
/// The longest synthetic description, in bytes: enough to name the number of every CPU.
const MAX_SYNTHETIC_BYTES: usize = 1 << 20;
/// The most objects of one level that a synthetic description may put below one of the level above: hwloc compares each
/// with all the others there.
const MAX_FANOUT: u64 = 1024;
/// The most objects that a synthetic description may multiply to.
const MAX_OBJECTS: u64 = 1 << 20;

/// Why a description is not given to hwloc.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// It is longer than what is accepted.
    #[error("it has {len} bytes; at most {most} are accepted")]
    TooLong {
        /// Its length in bytes.
        len: usize,
        /// The longest that is accepted.
        most: usize,
    },
    /// It holds a NUL character.
    #[error("it holds a NUL character; expected text")]
    Nul,
    /// It does not begin as an hwloc XML does.
    #[error("it has no <topology> element; expected an hwloc topology, as `lstopo --of xml` writes it")]
    NotTopology,
    /// It declares entities or other things in a document type of its own.
    #[error(
        "its document type has declarations of its own, which are not accepted; remove what stands in [ ]"
    )]
    Declarations,
    /// It is of a format that hwloc 2 does not read.
    #[error(
        "it is of hwloc's XML format {version}; expected version 2, which \
         `lstopo --of xml --export-xml-flags v2` writes on that host"
    )]
    Version {
        /// The version that it names.
        version: String,
    },
    /// It has too many objects, or a number that no CPU may have.
    #[error("it describes {what}; at most {MAX_CPUS} CPUs, numbered below {MAX_CPUS}, are accepted")]
    TooLarge {
        /// What it has too much of.
        what: &'static str,
    },
    /// It puts too many objects side by side.
    #[error(
        "it puts {count} objects below one; at most {MAX_FANOUT} are accepted, such as `pack:64 core:512 pu:2`"
    )]
    TooFlat {
        /// How many.
        count: u64,
    },
    /// A count in it is no number.
    #[error("the count in `{part}` is not a number from 1 on; expected a part such as `core:8`")]
    Count {
        /// The part of the description.
        part: String,
    },
}

/// Looks at an XML without parsing more than its head.
pub(super) fn check_xml(xml: &str) -> Result<(), Refused> {
    if xml.len() > MAX_XML_BYTES {
        return Err(Refused::TooLong { len: xml.len(), most: MAX_XML_BYTES });
    }
    if xml.contains('\0') {
        return Err(Refused::Nul);
    }
    let root = root_element(xml)?;
    match version(root) {
        // Format 1 had no version; libhwloc 2 still reads it.
        Some(version) if major(version).is_none_or(|major| major > 2) => {
            Err(Refused::Version { version: version.chars().take(16).collect() })
        }
        _ => Ok(()),
    }
}

/// What follows `<topology`, once everything that may stand before it is skipped.
fn root_element(xml: &str) -> Result<&str, Refused> {
    let mut rest = xml.trim_start_matches('\u{feff}').trim_start();
    loop {
        let end = if rest.starts_with("<?") {
            "?>"
        } else if rest.starts_with("<!--") {
            "-->"
        } else if rest.starts_with("<!DOCTYPE") {
            let declared = rest.split('>').next().unwrap_or_default();
            if declared.contains('[') {
                return Err(Refused::Declarations);
            }
            ">"
        } else {
            break;
        };
        let (_, after) = rest.split_once(end).ok_or(Refused::NotTopology)?;
        rest = after.trim_start();
    }
    let after = rest.strip_prefix("<topology").ok_or(Refused::NotTopology)?;
    if after.starts_with(|c: char| c.is_whitespace() || c == '>') {
        Ok(after)
    } else {
        Err(Refused::NotTopology)
    }
}

fn version(root: &str) -> Option<&str> {
    let attributes = root.split('>').next()?;
    let (_, after) = attributes.split_once("version")?;
    let value = after.trim_start().strip_prefix('=')?.trim_start();
    let quote = value.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    value[1..].split(quote).next()
}

fn major(version: &str) -> Option<u32> {
    version.split('.').next()?.trim().parse().ok()
}

/// Multiplies the counts of a synthetic description before hwloc does.
pub(super) fn check_synthetic(text: &str) -> Result<(), Refused> {
    if text.len() > MAX_SYNTHETIC_BYTES {
        return Err(Refused::TooLong { len: text.len(), most: MAX_SYNTHETIC_BYTES });
    }
    if text.contains('\0') {
        return Err(Refused::Nul);
    }
    let (mut width, mut objects) = (1u64, 0u64);
    for part in parts(text) {
        if part.starts_with('[') {
            // Memory beside the level above: one for each of its objects.
            objects = objects.saturating_add(width);
        } else if let Some(count) = count(part)? {
            if count > MAX_FANOUT {
                return Err(Refused::TooFlat { count });
            }
            width = width.saturating_mul(count);
            objects = objects.saturating_add(width);
        }
        if objects > MAX_OBJECTS || width > u64::from(MAX_CPUS) {
            return Err(Refused::TooLarge { what: "too many objects" });
        }
        if !indexes_are_small(part) {
            return Err(Refused::TooLarge { what: "a number that is too high" });
        }
    }
    Ok(())
}

/// The description cut at white space that stands outside brackets.
fn parts(text: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0u32;
    text.split(move |c: char| {
        match c {
            '(' | '[' => depth = depth.saturating_add(1),
            ')' | ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && c.is_whitespace()
    })
    .filter(|part| !part.is_empty())
}

/// The count of `core:8(...)` or `8`; nothing for attributes of the whole such as `(memory=1GB)`.
fn count(part: &str) -> Result<Option<u64>, Refused> {
    let plain = part.split(['(', '[']).next().unwrap_or_default();
    if plain.is_empty() {
        return Ok(None);
    }
    let digits = plain.rsplit(':').next().unwrap_or_default();
    match digits.parse() {
        Ok(count) if count > 0 => Ok(Some(count)),
        // Not a count that hwloc reads either; it only may be larger than any number here.
        _ => Err(Refused::Count { part: part.chars().take(40).collect() }),
    }
}

/// No number in a list of indexes may make hwloc allocate a bitmap for it that is wider than any host.
fn indexes_are_small(part: &str) -> bool {
    let Some((_, list)) = part.split_once("indexes=") else { return true };
    let list = list.split([' ', ')']).next().unwrap_or_default();
    list.split(|c: char| !c.is_ascii_digit())
        .filter(|digits| !digits.is_empty())
        .all(|digits| digits.parse::<u32>().is_ok_and(|number| number <= MAX_CPUS))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str =
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n";

    #[test]
    fn the_head_of_an_xml() {
        for good in ["<topology version=\"2.0\">", "<topology>", "<!-- a > b --><topology version='2.1'\n>"] {
            assert_eq!(check_xml(&format!("{HEAD}{good}</topology>")), Ok(()), "{good}");
            assert_eq!(check_xml(good), Ok(()), "{good}");
        }
        for version in ["3.0", "3", "10.1", "x"] {
            let xml = format!("{HEAD}<topology version=\"{version}\">");
            assert_eq!(check_xml(&xml), Err(Refused::Version { version: version.to_owned() }));
        }
        for bad in
            ["", "no xml", "<html>", "<topologyx>", "<!-- <topology>", "<?xml", "{\"a\": 1}", "<topology"]
        {
            assert_eq!(check_xml(bad), Err(Refused::NotTopology), "{bad}");
        }
        assert_eq!(check_xml("<topology>\0"), Err(Refused::Nul));
        let entities = "<!DOCTYPE topology [<!ENTITY a \"b\">]><topology>";
        assert_eq!(check_xml(entities), Err(Refused::Declarations));
        let long = " ".repeat(MAX_XML_BYTES + 1);
        assert!(matches!(check_xml(&long), Err(Refused::TooLong { .. })));
    }

    #[test]
    fn synthetic_descriptions() {
        for good in [
            "pack:2 group:10 [numa] l3:1 core:16 pu:2(indexes=2*320:320*1)",
            "2 3 4",
            "numa:2(memory=1GB) core:4 pu:1",
            "pack:1 [numa(memory=1 GB)] [numa] core:1024 pu:64",
            "(memory=1GB) node:2 pu:2",
            "core:4 pu:1(indexes=3,2,1,0)",
        ] {
            assert_eq!(check_synthetic(good), Ok(()), "{good}");
        }
        for flat in ["pu:65536", "core:4096 pu:8"] {
            assert!(matches!(check_synthetic(flat), Err(Refused::TooFlat { .. })), "{flat}");
        }
        for large in ["pack:1000 core:1000 pu:1000", "core:1 pu:2(indexes=0,4000000000)"] {
            assert!(matches!(check_synthetic(large), Err(Refused::TooLarge { .. })), "{large}");
        }
        for none in ["core", "core:", "core:-1", "core:0", "core:99999999999999999999"] {
            assert!(matches!(check_synthetic(none), Err(Refused::Count { .. })), "{none}");
        }
    }
}
