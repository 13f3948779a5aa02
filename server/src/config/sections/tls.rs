//! TLS.

use super::prelude::*;

section! {
    /// TLS on TCP.
    Tls "tls";
}
