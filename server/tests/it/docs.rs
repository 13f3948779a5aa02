//! Every reason that the server may name has a row in `docs/errors.md`.

use std::{collections::BTreeSet, fs, path::Path};

/// Words in capitals that are no reasons.
const OTHERS: [&str; 5] =
    ["PERCENT", "CARGO_PKG_VERSION", "XDG_RUNTIME_DIR", "XDG_STATE_HOME", "BERTH_COMMIT"];

fn sources(folder: &Path, text: &mut String) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, text);
        } else if !path.ends_with("ingest/reader.rs") && !path.ends_with("metrics/requests.rs") {
            text.push_str(&fs::read_to_string(path).unwrap());
        }
    }
}

#[test]
fn every_reason_is_explained() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut text = String::new();
    sources(&folder.join("src"), &mut text);
    let is_reason = |word: &&str| {
        word.len() > 6
            && word.bytes().all(|b| b.is_ascii_uppercase() || b == b'_')
            && !OTHERS.contains(word)
            && !["SIG", "CONFIG_"].iter().any(|other| word.starts_with(other))
    };
    let reasons: BTreeSet<&str> = text.split('"').filter(is_reason).collect();
    assert!(reasons.len() > 30, "{reasons:?}");
    let page = fs::read_to_string(folder.join("../docs/errors.md")).unwrap();
    for reason in reasons {
        assert!(page.contains(&format!("`{reason}`")), "{reason} is not in docs/errors.md");
    }
}
