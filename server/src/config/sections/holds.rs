//! Holds and their store.

use super::prelude::*;

section! {
    /// CPUs that are kept for an owner.
    Holds "holds";
}
