//! The process that runs hwloc: reads one topology, writes it to its output and ends.
//!
//! It answers with status 0 and the topology, or with status 3 and a sentence. hwloc may end it in any other way.

use super::{hwloc, parcel::Parcel};
use prost::Message;
use rustix::{
    process::{Gid, Resource, Rlimit, Uid},
    thread,
};
use std::{
    io::{self, Read, Write},
    process::ExitCode,
};

/// The first argument that makes the program this process.
pub const ARGUMENT: &str = "read-topology";

/// Ended with a sentence on its output that says why there is no topology.
pub(super) const REFUSED: u8 = 3;

/// What a description may cost. More than any real one needs; a hostile one must not take the host's memory.
const MAX_MEMORY: u64 = 2 << 30;
const MAX_CPU_SECONDS: u64 = 20;

/// Who a foreign description is read as where the daemon is root.
const NOBODY: u32 = 65_534;

/// Reads the topology that `kind` (the second argument) asks for, a description from the input.
pub fn main(kind: Option<&str>) -> ExitCode {
    let answer = match kind {
        Some(LIVE) => confine(false).and_then(|()| hwloc::live().map_err(|error| error.to_string())),
        Some(kind @ (XML | SYNTHETIC)) => confine(true).and_then(|()| foreign(kind)),
        _ => Err(format!("expected {LIVE}, {XML} or {SYNTHETIC}: this is an inner part of berthd")),
    };
    let (bytes, code) = match answer {
        Ok(hardware) => (Parcel::pack(hardware, hwloc::version()).encode_to_vec(), ExitCode::SUCCESS),
        Err(sentence) => (sentence.into_bytes(), ExitCode::from(REFUSED)),
    };
    let mut output = io::stdout();
    match output.write_all(&bytes).and_then(|()| output.flush()) {
        Ok(()) => code,
        Err(_) => ExitCode::FAILURE,
    }
}

pub(super) const LIVE: &str = "live";
pub(super) const XML: &str = "xml";
pub(super) const SYNTHETIC: &str = "synthetic";

fn foreign(kind: &str) -> Result<super::Hardware, String> {
    let mut text = String::new();
    io::stdin().read_to_string(&mut text).map_err(|error| match error.kind() {
        io::ErrorKind::InvalidData => "it is not UTF-8 text".to_owned(),
        _ => format!("it could not be received: {error}"),
    })?;
    let hardware = if kind == XML { hwloc::from_xml(&text) } else { hwloc::from_synthetic(&text) };
    hardware.map_err(|error| error.to_string())
}

/// Bounds what this process may use and, for a foreign description, what it may do. There is one thread yet, so that
/// what a thread gives up the process has given up.
fn confine(foreign: bool) -> Result<(), String> {
    let limit = |resource, most| {
        rustix::process::setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) })
    };
    let confined = limit(Resource::Core, 0)
        .and_then(|()| limit(Resource::As, MAX_MEMORY))
        .and_then(|()| limit(Resource::Cpu, MAX_CPU_SECONDS))
        .and_then(|()| if foreign { give_up_rights() } else { Ok(()) });
    confined.map_err(|error| format!("the process that reads topologies could not be confined: {error}"))
}

fn give_up_rights() -> rustix::io::Result<()> {
    thread::set_no_new_privs(true)?;
    if rustix::process::geteuid().is_root() {
        let (user, group) = (Uid::from_raw(NOBODY), Gid::from_raw(NOBODY));
        // Refused only to a root of a user namespace without that user, who is nobody outside of it already.
        let _ = thread::set_thread_groups(&[]);
        let _ = thread::set_thread_res_gid(group, group, group);
        let _ = thread::set_thread_res_uid(user, user, user);
    }
    Ok(())
}
