//! What a request may cost.

use super::prelude::*;

section! {
    /// Limits.
    Limits "limits";

    /// The longest that a request may take; a caller's own deadline counts if it is shorter.
    deadline: Duration = Setting::new("deadline", "TIME", parse::time(ms(1)..=s(3600))).or("30s").live();

    /// Requests that are answered at a time; more are refused at once and told to try again.
    max_requests: usize = Setting::new("max-requests", "NUMBER", parse::number(1..=100_000)).or("256").live();

    /// Streams that watch or report at a time; more are refused at once.
    max_streams: usize = Setting::new("max-streams", "NUMBER", parse::number(1..=100_000)).or("1024").live();

    /// Connections at a time; more are closed at once.
    max_connections: usize =
        Setting::new("max-connections", "NUMBER", parse::number(1..=100_000)).or("1024").live();

    /// Connections of one user over the unix socket, or of one address over TCP, at a time.
    ///
    /// So that one alone cannot take them all. Of requests and streams one caller has at most half.
    max_connections_per_peer: usize =
        Setting::new("max-connections-per-peer", "NUMBER", parse::number(1..=100_000)).or("256").live();

    /// A connection that asks nothing from its beginning on is closed after this time.
    silent_timeout: Duration = Setting::new("silent-timeout", "TIME", parse::time(ms(100)..=s(3600))).or("20s").live();

    /// A connection on which nothing is asked any more is closed after this time.
    idle_timeout: Duration = Setting::new("idle-timeout", "TIME", parse::time(ms(100)..=s(86400))).or("10m").live();

    /// A connection whose client takes nothing of what is sent is closed after this time.
    stalled_timeout: Duration =
        Setting::new("stalled-timeout", "TIME", parse::time(ms(100)..=s(3600))).or("30s").live();

    /// How long requests may still take after SIGTERM or SIGINT.
    shutdown_timeout: Duration =
        Setting::new("shutdown-timeout", "TIME", parse::time(ms(0)..=s(3600))).or("5s").live();
}
