//! The admin listener.

use super::prelude::*;

section! {
    /// The admin listener.
    Admin "admin";
}
