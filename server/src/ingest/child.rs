//! The process that runs hwloc: reads one topology, writes it to its output and ends.
//!
//! It answers with status 0 and the topology, or with status 3 and a sentence. hwloc may end it in any other way.

use super::{hwloc, parcel::Parcel};
use prost::Message;
use rustix::{
    io::Errno,
    process::{Gid, Resource, Rlimit, Uid},
    thread::{self, CapabilitySet, CapabilitySets},
};
use std::{
    io::{self, Read, Write},
    process::ExitCode,
};

/// The first argument that makes the program this process.
pub const ARGUMENT: &str = "read-topology";

/// Ended with a sentence on its output that says why there is no topology.
pub(super) const REFUSED: u8 = 3;

/// The address space that a topology may cost, in bytes: twice what one of 16,384 CPUs, or 16 MiB of XML, takes. A hostile
/// one must not take the host's memory.
pub const MAX_MEMORY: u64 = 256 << 20;
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
    let confined = limit(Resource::Core, 0)
        .and_then(|()| limit(Resource::As, MAX_MEMORY))
        .and_then(|()| limit(Resource::Cpu, MAX_CPU_SECONDS))
        .and_then(|()| if foreign { give_up_rights() } else { Ok(()) });
    confined.map_err(|error| format!("the process that reads topologies could not be confined: {error}"))
}

fn limit(resource: Resource, most: u64) -> io::Result<()> {
    let most = Rlimit { current: Some(most), maximum: Some(most) };
    Ok(rustix::process::setrlimit(resource, most)?)
}

/// Gives up every right that a process can do without whose whole work is to turn its input into its output. What
/// cannot be given up ends it, but for one: a root that may not become another user (without the capability, or in a
/// user namespace that has no other) stays one without any capability, which can open nothing and start nothing.
fn give_up_rights() -> io::Result<()> {
    thread::set_no_new_privs(true)?;
    if rustix::process::geteuid().is_root() {
        let (user, group) = (Uid::from_raw(NOBODY), Gid::from_raw(NOBODY));
        let become_nobody = || {
            thread::set_thread_groups(&[])?;
            thread::set_thread_res_gid(group, group, group)?;
            thread::set_thread_res_uid(user, user, user)
        };
        match become_nobody() {
            Ok(()) | Err(Errno::PERM | Errno::INVAL) => {}
            Err(error) => return Err(error.into()),
        }
    }
    // Also those that a service manager gave to a berthd that is not root.
    thread::clear_ambient_capability_set()?;
    let none = CapabilitySet::empty();
    thread::set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })?;
    // No file, socket or process beside those that it has: its input, its output and what it says in passing.
    limit(Resource::Nofile, 3)?;
    limit(Resource::Nproc, 0)?;
    limit(Resource::Fsize, 0)?;
    // Not of its own code's word: as the kernel has it.
    let left = thread::capabilities(None)?;
    if left.effective.is_empty() && left.permitted.is_empty() && thread::no_new_privs()? {
        Ok(())
    } else {
        Err(io::Error::other("it kept capabilities"))
    }
}
