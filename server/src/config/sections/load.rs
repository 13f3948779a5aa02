//! How the load is measured.

use super::prelude::*;

section! {
    /// How the load of this host is measured.
    Load "load";

    /// Time between two readings of the load, from 100ms to 1m.
    sample_interval: Duration = Setting::new("sample-interval", "TIME", parse::time(ms(100)..=s(60))).or("1s").live();
}
