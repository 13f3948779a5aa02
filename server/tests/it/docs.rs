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

/// The targets of a page's links to files of the repository, without what comes after `#`.
fn linked(page: &str) -> BTreeSet<&str> {
    let targets = page.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
    let targets = targets.filter_map(|(target, _)| target.split('#').next());
    targets.filter(|target| !target.is_empty() && !target.contains("://")).collect()
}

/// The index names each document, and no page links to a file that is not there.
#[test]
fn documents_are_found() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let docs = root.join("docs");
    let names = fs::read_dir(&docs).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let names: BTreeSet<String> = names.filter(|name| name.ends_with(".md")).collect();
    let index = fs::read_to_string(docs.join("README.md")).unwrap();
    for name in names.iter().filter(|name| *name != "README.md") {
        assert!(linked(&index).contains(name.as_str()), "docs/README.md does not name {name}");
    }
    let pages = names.iter().map(|name| docs.join(name));
    let pages =
        pages.chain(["README.md", "CONTRIBUTING.md", "testdata/README.md"].map(|name| root.join(name)));
    for path in pages {
        let page = fs::read_to_string(&path).unwrap();
        for target in linked(&page) {
            let file = path.parent().unwrap().join(target);
            assert!(file.exists(), "{} links to {target}, which is not there", path.display());
        }
    }
}
