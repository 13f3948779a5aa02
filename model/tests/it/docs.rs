//! `docs/heuristics.md` names functions and tests; each of them exists.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

/// The source of each module of the model and of these tests, by the module's name.
fn sources() -> BTreeMap<String, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut folders: Vec<PathBuf> = vec![root.join("src"), root.join("tests/it")];
    let mut sources: BTreeMap<String, String> = BTreeMap::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let stem = path.file_stem().unwrap().to_str().unwrap();
            let module = if stem == "mod" {
                path.parent().unwrap().file_name().unwrap().to_str().unwrap()
            } else {
                stem
            };
            // Modules of one name, such as the model's `trace` and the tests', are searched together.
            sources.entry(module.to_owned()).or_default().push_str(&std::fs::read_to_string(&path).unwrap());
        }
    }
    sources
}

/// What a line of a table names: pairs of a module and something in it, written as `module`: `one`, `two`.
fn named(line: &str) -> Vec<(&str, &str)> {
    let mut named = Vec::new();
    let mut module = None;
    // Every second part is between backticks; what follows it tells what it is.
    let parts: Vec<&str> = line.split('`').collect();
    for pair in parts.get(1..).unwrap_or_default().chunks(2) {
        let [code, after] = pair else { break };
        let is_module = code.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
        if *after == ": " && is_module {
            module = Some(*code);
            continue;
        }
        if let Some(module) = module {
            named.push((module, *code));
        }
        if *after != ", " {
            module = None;
        }
    }
    named
}

#[test]
fn every_name_in_the_tables_is_one_of_the_code() {
    let text =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/heuristics.md")).unwrap();
    let sources = sources();
    let mut checked = 0;
    for line in text.lines().filter(|line| line.starts_with('|')) {
        for (module, name) in named(line) {
            let source = sources.get(module).unwrap_or_else(|| panic!("there is no module {module}: {line}"));
            for part in name.split("::") {
                let is_there = ["fn ", "struct ", "enum "].iter().any(|kind| {
                    let declared = format!("{kind}{part}");
                    let mut found = source.match_indices(&declared);
                    found.any(|(at, what)| {
                        !source[at + what.len()..].starts_with(|c: char| c.is_alphanumeric() || c == '_')
                    })
                });
                let is_method_of = source.contains(&format!("impl {part}"));
                assert!(is_there || is_method_of, "{module} has no {part}: {line}");
            }
            checked += 1;
        }
    }
    assert!(checked > 60, "only {checked} names were checked");
}
