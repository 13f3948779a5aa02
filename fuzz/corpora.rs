//! What the tests run over the corpora.

/// Runs a target over each file of its corpus.
pub(crate) fn over(name: &str, target: fn(&[u8])) {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus").join(name);
    let files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(files.len() >= 5, "only {} files", files.len());
    for file in files {
        // Shown if it panics.
        eprintln!("{}", file.display());
        target(&std::fs::read(&file).unwrap());
    }
}
