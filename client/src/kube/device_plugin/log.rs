//! What the plugin says on stderr. What stays as it is, is said once.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use crate::out;

/// What was said.
#[derive(Debug, Default)]
pub(super) struct Log(Mutex<HashMap<&'static str, String>>);

impl Log {
    /// Says something that has happened.
    pub(super) fn say(&self, what: &str) {
        out::say(&format!("berth: {what}"));
    }

    /// Says how something is, if that was not the last that was said of it.
    pub(super) fn once(&self, about: &'static str, what: &str) {
        let mut said = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if said.get(about).is_none_or(|before| before != what) {
            said.insert(about, what.to_owned());
            self.say(what);
        }
    }

    /// It is well again: should it fail once more, that will be said. Whether it had failed.
    pub(super) fn is_well(&self, about: &'static str) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(about).is_some()
    }
}
