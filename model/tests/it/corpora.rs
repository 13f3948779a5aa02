//! The fuzz targets over their corpora: what the fuzzer once found stays found.

#[path = "../../../fuzz/targets.rs"]
mod targets;

/// Runs a target over each file of its corpus.
fn over(name: &str, target: fn(&[u8])) {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus").join(name);
    let files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(files.len() >= 5, "only {} files", files.len());
    for file in files {
        // Shown if it panics.
        eprintln!("{}", file.display());
        target(&std::fs::read(&file).unwrap());
    }
}

#[test]
fn versions() {
    over("versions", targets::versions);
}

#[test]
fn cpulists() {
    over("cpulists", targets::cpulists);
}

#[test]
fn masks() {
    over("masks", targets::masks);
}

#[test]
fn topologies() {
    over("topologies", targets::topologies);
}
