//! What the reader of an answer should know beside it.

use berth_model::cpuset::CpuSet;
use berth_proto::v1;

/// The warnings of one answer, in the order in which they were found.
#[derive(Debug, Default)]
pub(crate) struct Warnings(Vec<v1::Warning>);

impl Warnings {
    /// One that concerns no CPU in particular.
    pub(crate) fn add(&mut self, reason: &str, message: impl Into<String>) {
        self.add_about(reason, message, &CpuSet::new());
    }

    /// One about these CPUs.
    pub(crate) fn add_about(&mut self, reason: &str, message: impl Into<String>, cpus: &CpuSet) {
        self.0.push(v1::Warning {
            reason: reason.to_owned(),
            message: message.into(),
            cpus: cpus.to_string(),
            metadata: Default::default(),
        });
    }

    pub(crate) fn into_wire(self) -> Vec<v1::Warning> {
        self.0
    }
}
