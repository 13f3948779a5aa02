//! The admin listener.

use super::prelude::*;
use crate::config::parse::Form;
use std::net::{SocketAddr, ToSocketAddrs};

section! {
    /// Metrics and probes over HTTP.
    Admin "admin";

    /// Serve /metrics, /livez, /readyz and /log over plain HTTP on this address, such as 127.0.0.1:7118.
    ///
    /// Whoever reaches the address may read them: they tell nothing of what runs on the host or of who asks.
    listen: Option<SocketAddr> = Setting::new("admin", "ADDRESS:PORT", parse::optional(address()));

    /// Let whoever reaches the admin address change what is logged, by PUT /log.
    ///
    /// On loopback that is every user of this host.
    change_log: bool = Setting::new("admin-change-log", "true|false", parse::switch()).or("false").live();
}

fn address() -> Parser<SocketAddr> {
    Parser::new(Form::Text, |text| {
        let address = text.to_socket_addrs().ok().and_then(|mut found| found.next());
        address.ok_or_else(|| "expected an address and a port, such as 127.0.0.1:7118".to_owned())
    })
}
