//! The systemd unit: systemd understands it, and finds little that whoever takes the daemon over could do.

use crate::support::PROGRAM;
use berth_server::ingest::{AT_A_TIME, child::MAX_MEMORY};
use std::{fs, path::Path, process::Command};

/// Tenths of what `systemd-analyze security` calls exposure, of 100.
const MOST_EXPOSED: &str = "17";

#[test]
fn systemd_takes_the_unit() {
    let unit = Path::new(env!("CARGO_MANIFEST_DIR")).join("../systemd/berthd.service");
    let text = fs::read_to_string(unit).unwrap();
    let here = text.replace("/usr/bin/berthd", PROGRAM).replace("file:/usr/share/doc", "file:/");
    assert_ne!(text, here, "it names the program");
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("berthd.service");
    fs::write(&copy, here).unwrap();
    let Ok(verified) = Command::new("systemd-analyze").arg("verify").arg(&copy).output() else {
        println!("skipped: there is no systemd-analyze here");
        return;
    };
    let said = String::from_utf8_lossy(&verified.stderr);
    assert!(verified.status.success(), "{said}");
    assert!(!said.contains("berthd.service:"), "{said}");
    let mut security = Command::new("systemd-analyze");
    security.args(["security", "--offline=true", "--threshold", MOST_EXPOSED]).arg(&copy);
    let judged = security.output().unwrap();
    if String::from_utf8_lossy(&judged.stderr).contains("unrecognized option") {
        println!("skipped: this systemd-analyze judges no units that are not installed");
        return;
    }
    assert!(judged.status.success(), "{}", String::from_utf8_lossy(&judged.stdout));
}

/// Descriptions that take all they may, as many as are read at a time, leave half of the unit's memory to berthd.
#[test]
fn descriptions_fit_into_the_units_memory() {
    let unit = Path::new(env!("CARGO_MANIFEST_DIR")).join("../systemd/berthd.service");
    let text = fs::read_to_string(unit).unwrap();
    let most = text.lines().find_map(|line| line.strip_prefix("MemoryMax=")?.strip_suffix('G')).unwrap();
    let most = most.parse::<u64>().unwrap() << 30;
    let read = u64::try_from(AT_A_TIME).unwrap() * MAX_MEMORY;
    assert!(read <= most / 2, "{AT_A_TIME} of {MAX_MEMORY} bytes, of {most}");
}
