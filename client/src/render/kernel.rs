//! Which profile was taken for a kernel, in words.

use berth_proto::v1::ProfileChoice;

use crate::text::words;

/// Other profiles that are named before they are only counted.
const NAMED: usize = 4;

/// The kernel, its profile, and how sure that is. `asked` is the release as typed.
pub(super) fn chosen(choice: &ProfileChoice, asked: &str, whole: bool) -> String {
    let release = match (choice.release.as_str(), asked) {
        ("", "") => "not given",
        ("", asked) => asked,
        (release, _) => release,
    };
    let name = &choice.name;
    let sure = words::confidence(choice.confidence());
    let mut text = format!("{release}; rules of {name} ({sure})");
    if !choice.overridden.is_empty() {
        let set: Vec<String> =
            choice.overridden.iter().map(|(rule, value)| format!("{rule}={value}")).collect();
        text += &format!(" with {}", set.join(", "));
    }
    if !choice.others.is_empty() {
        text += &format!(", or of {}", some(&choice.others, whole));
    }
    text
}

/// The first few names, and how many more there are.
pub(super) fn some(names: &[String], whole: bool) -> String {
    // One more fits where "1 more" would stand.
    if whole || names.len() <= NAMED + 1 {
        return names.join(", ");
    }
    format!("{} and {} more", names[..NAMED].join(", "), names.len() - NAMED)
}
