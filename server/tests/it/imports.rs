//! The crates import each other only as the design allows, and only the daemon knows hwloc.

use serde_json::Value;
use std::{collections::BTreeSet, process::Command};

/// Each crate of ours with those of ours that it may import.
const ALLOWED: [(&str, &[&str]); 5] = [
    ("berth-model", &[]),
    ("berth-proto", &[]),
    ("berthd", &["berth-model", "berth-proto"]),
    ("berth", &["berth-model", "berth-proto"]),
    ("berth-fidelity", &["berth-model"]),
];

fn packages() -> Vec<(String, BTreeSet<String>)> {
    let cargo = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(cargo.status.success(), "{}", String::from_utf8_lossy(&cargo.stderr));
    let metadata: Value = serde_json::from_slice(&cargo.stdout).unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let packages = metadata["packages"].as_array().unwrap().iter();
    packages
        .map(|package| {
            let imports =
                package["dependencies"].as_array().unwrap().iter().map(|import| text(&import["name"]));
            (text(&package["name"]), imports.collect())
        })
        .collect()
}

/// Imports for tests count too: what a test links, a change may come to rely on.
#[test]
fn one_way_only() {
    let packages = packages();
    let names: BTreeSet<&str> = packages.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ALLOWED.iter().map(|(name, _)| *name).collect(), "a crate without a row in the table");
    for (name, imports) in &packages {
        let (_, allowed) = ALLOWED.iter().find(|(known, _)| known == name).unwrap();
        for ours in imports.iter().filter(|import| names.contains(import.as_str())) {
            assert!(allowed.contains(&ours.as_str()), "{name} imports {ours}");
        }
        let knows_hwloc = imports.iter().any(|import| import.starts_with("hwloc"));
        assert_eq!(knows_hwloc, name == "berthd", "{name} and hwloc");
    }
}

/// The model has no I/O and no async, whatever its own code says.
#[test]
fn the_model_imports_nothing_that_reaches_outside() {
    let packages = packages();
    let (_, imports) = packages.iter().find(|(name, _)| name == "berth-model").unwrap();
    for reaching in ["tokio", "tonic", "prost", "rustix", "libc", "tracing", "arc-swap"] {
        assert!(!imports.contains(reaching), "berth-model imports {reaching}");
    }
}
