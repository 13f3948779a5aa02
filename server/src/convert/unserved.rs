//! Fields of the contract that this version does not serve: named, never ignored.

use super::Failure;

/// The fields of one request that are set and not served.
#[derive(Debug, Default)]
pub(crate) struct Unserved(Vec<String>);

impl Unserved {
    /// Notes the field if it is set.
    pub(crate) fn field(&mut self, name: impl Into<String>, is_set: bool) {
        if is_set {
            self.0.push(name.into());
        }
    }

    /// # Errors
    ///
    /// If any is set.
    pub(crate) fn none(self) -> Result<(), Failure> {
        if self.0.is_empty() { Ok(()) } else { Err(Failure::FieldsNotServed(self.0)) }
    }
}
