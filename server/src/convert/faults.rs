//! What is wrong with a request: collected over all its fields, then answered at once.

use super::Failure;

/// One field that cannot be taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    /// Path of the field, such as `host.load[3].cpus`.
    pub(crate) field: String,
    /// The value and what would be accepted.
    pub(crate) description: String,
}

/// The most faults that are told. Errors travel in headers, of which clients take a few KiB.
const MAX_FAULTS: usize = 24;

/// Every field of a request that cannot be taken, up to [`MAX_FAULTS`].
#[derive(Debug, Default)]
pub(crate) struct Faults(Vec<Fault>);

impl Faults {
    /// Notes one. `description` names the value and what would be accepted.
    pub(crate) fn add(&mut self, field: impl Into<String>, description: impl Into<String>) {
        if !self.are_many() {
            self.0.push(Fault { field: field.into(), description: description.into() });
        }
    }

    /// Whether no more are told: then the rest of a long list need not be looked at.
    pub(crate) fn are_many(&self) -> bool {
        self.0.len() >= MAX_FAULTS
    }

    /// Takes a result's value; its error is a fault of the field.
    pub(crate) fn take<T, E: std::fmt::Display>(&mut self, field: &str, result: Result<T, E>) -> Option<T> {
        result.map_err(|error| self.add(field, error.to_string())).ok()
    }

    /// Goes on only if nothing was wrong.
    ///
    /// # Errors
    ///
    /// Every fault that was noted.
    pub(crate) fn none(self) -> Result<(), Failure> {
        if self.0.is_empty() { Ok(()) } else { Err(Failure::Fields(self.0)) }
    }
}
