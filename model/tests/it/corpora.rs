//! The fuzz targets over their corpora: what the fuzzer once found stays found.

#[path = "../../../fuzz/corpora.rs"]
mod runner;
#[path = "../../../fuzz/targets.rs"]
mod targets;

use runner::over;

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
