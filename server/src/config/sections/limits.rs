//! What a request may cost.

use super::prelude::*;

section! {
    /// Limits.
    Limits "limits";

    /// The longest that a request may take; a caller's own deadline counts if it is shorter.
    deadline: Duration = Setting::new("deadline", "TIME", parse::time(ms(1)..=s(3600))).or("30s").live();

    /// Requests that are answered at a time; more are refused at once and told to try again.
    max_requests: usize = Setting::new("max-requests", "NUMBER", parse::number(1..=100_000)).or("256").live();

    /// How long requests may still take after SIGTERM or SIGINT.
    shutdown_timeout: Duration =
        Setting::new("shutdown-timeout", "TIME", parse::time(ms(0)..=s(3600))).or("5s").live();
}
