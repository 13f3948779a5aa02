//! Topologies through hwloc, of the running host, an XML or a synthetic description.
//!
//! hwloc's logical indices and its C objects never leave this module: what comes out names CPUs and NUMA nodes by
//! the operating system's numbers. Only [`super::child`] calls it.

mod cores;
mod nodes;
mod read;

use super::{Hardware, Refused, Source, guard};
use hwlocality::{
    Topology,
    topology::builder::{BuildFlags, StringInputError, TopologyBuilder},
};

/// Why hwloc gave no topology.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Error {
    /// The description is not given to hwloc.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// hwloc cannot read it.
    #[error("hwloc cannot read it{}", .expected.map(|expected| format!("; expected {expected}")).unwrap_or_default())]
    Unreadable {
        /// What it can read.
        expected: Option<&'static str>,
    },
    /// It describes something that no Linux host has.
    #[error("{0}")]
    Impossible(String),
}

/// Reads the host that the daemon runs on.
pub(super) fn live() -> Result<Hardware, Error> {
    // The binding stays as it is: hwloc would otherwise visit every CPU in turn, isolated ones too.
    read(Source::Live, BuildFlags::DONT_CHANGE_BINDING, None, Ok)
}

/// Reads an hwloc XML.
pub(super) fn from_xml(xml: &str) -> Result<Hardware, Error> {
    guard::check_xml(xml)?;
    let expected = Some("an hwloc topology, as `lstopo --of xml` writes it");
    read(Source::Xml, BuildFlags::empty(), expected, |builder| builder.from_xml(xml))
}

/// Reads an hwloc synthetic description.
pub(super) fn from_synthetic(text: &str) -> Result<Hardware, Error> {
    guard::check_synthetic(text)?;
    let expected = Some("a synthetic description, such as `pack:2 [numa] l3:8 core:8 pu:2`");
    read(Source::Synthetic, BuildFlags::empty(), expected, |builder| builder.from_synthetic(text))
}

/// The version of the library as loaded; the older of its interface where it does not tell.
pub(super) fn version() -> String {
    let told = Topology::builder().from_synthetic("pu:1").ok().and_then(|builder| builder.build().ok());
    let told = told.and_then(|topology| {
        topology.root_object().info("hwlocVersion").map(|v| v.to_string_lossy().into_owned())
    });
    told.unwrap_or_else(|| {
        let api = hwlocality::hwloc_api_version();
        format!("{}.{}.{}", api >> 16, api >> 8 & 0xff, api & 0xff)
    })
}

fn read(
    source: Source,
    flags: BuildFlags,
    expected: Option<&'static str>,
    describe: impl FnOnce(TopologyBuilder) -> Result<TopologyBuilder, StringInputError>,
) -> Result<Hardware, Error> {
    // CPUs that a cpuset forbids belong to the host too. What memory attributes say is not used.
    let flags = flags | BuildFlags::INCLUDE_DISALLOWED | BuildFlags::IGNORE_MEMORY_ATTRIBUTES;
    let unreadable = |cause: &dyn std::error::Error| {
        // For the daemon's log: it does not help whoever wrote the description.
        eprintln!("{cause}");
        Error::Unreadable { expected }
    };
    let builder = Topology::builder().with_flags(flags).map_err(|error| unreadable(&error))?;
    let builder = describe(builder).map_err(|error| unreadable(&error))?;
    let topology = builder.build().map_err(|error| unreadable(&error))?;
    read::hardware(&topology, source)
}
