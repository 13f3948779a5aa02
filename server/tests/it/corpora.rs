//! The fuzz targets of the server's parsers over their corpora: what the fuzzer once found stays found.

#[path = "../../../fuzz/parsers.rs"]
mod parsers;

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
fn stat() {
    over("stat", parsers::stat);
}

#[test]
fn tasks() {
    over("tasks", parsers::tasks);
}

#[test]
fn queues() {
    over("queues", parsers::queues);
}

#[test]
fn cgroups() {
    over("cgroups", parsers::cgroups);
}
