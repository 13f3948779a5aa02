//! Who may do what.

use super::prelude::*;

section! {
    /// Who may do what.
    Roles "roles";
}
