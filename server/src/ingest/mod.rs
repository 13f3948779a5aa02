//! What the daemon reads: hardware through hwloc, what sysfs knows better, the kernel's identity, and the load.
//!
//! hwloc is C code that asserts what it expects of its input, and that its environment steers. It therefore runs in
//! a process of its own, one for each reading: [`Reader`] starts it, [`child`] is that process, and a [`Hardware`]
//! comes back. What it may do there cannot end the daemon.
//!
//! Everything else here reads a few small files and belongs on a blocking thread.

pub mod cgroup;
pub mod child;
mod facts;
mod guard;
mod hwloc;
mod kconfig;
pub mod kernel;
pub mod load;
mod marks;
pub(crate) mod numa_maps;
mod parcel;
pub mod partitions;
pub mod process;
mod reader;
mod settings;
pub mod sysfs;
pub(crate) mod threads;

pub use facts::{Cache, CoreKind, Facts, Source};
pub use guard::{MAX_XML_BYTES, Refused};
pub(crate) use kernel::boot_id;
pub use marks::Marks;
pub use partitions::Partition;
pub use reader::{AT_A_TIME, Error, Reader};
pub use settings::Settings;

use berth_model::topology::Description;

/// A host's hardware as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hardware {
    /// What placement depends on.
    pub description: Description,
    /// What else is told of it.
    pub facts: Facts,
}
