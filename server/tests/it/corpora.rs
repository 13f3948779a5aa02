//! The fuzz targets of the server's parsers over their corpora: what the fuzzer once found stays found.

#[path = "../../../fuzz/parsers.rs"]
mod parsers;
#[path = "../../../fuzz/corpora.rs"]
mod runner;

use runner::over;

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
