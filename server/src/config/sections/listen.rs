//! Where requests come from.

use super::prelude::*;
use crate::config::parse::Form;
use std::{
    fs,
    net::{SocketAddr, ToSocketAddrs},
    path::Path,
};

section! {
    /// Where to listen.
    Listen "listen";

    /// Listen on this TCP address.
    ///
    /// A loopback address: there is no TLS yet, so nothing else is accepted. Port 0 takes a free one, which the log
    /// and --ready-file tell.
    tcp: Option<SocketAddr> =
        Setting::new("tcp", "ADDRESS:PORT", parse::optional(tcp())).or("127.0.0.1:7117").can_be_off();

    /// Listen on this unix socket.
    ///
    /// What a dead server left is replaced; a live server's is not. `auto` is /run/berth/berthd.sock if that folder is
    /// or can be made writable, else berth/berthd.sock in $XDG_RUNTIME_DIR, else none.
    uds: Option<PathBuf> =
        Setting::new("uds", "PATH", socket()).or("auto").can_be_off();

    /// Write this file once the daemon serves: one JSON object with pid, tcp and uds.
    ready_file: Option<PathBuf> = Setting::new("ready-file", "PATH", parse::optional(parse::path()));
}

/// Where the socket is by default.
const DEFAULT_FOLDER: &str = "/run/berth";
const SOCKET: &str = "berthd.sock";

fn tcp() -> Parser<SocketAddr> {
    let expected = "expected a loopback address and a port, such as 127.0.0.1:7117 or [::1]:7117";
    Parser::new(Form::Text, move |text| {
        let address = text.to_socket_addrs().ok().and_then(|mut found| found.next());
        let address = address.ok_or_else(|| expected.to_owned())?;
        if address.ip().is_loopback() {
            return Ok(address);
        }
        Err(format!(
            "it can be reached from other hosts, and this version has neither TLS nor authentication; {expected}"
        ))
    })
}

fn socket() -> Parser<Option<PathBuf>> {
    Parser::new(Form::Text, |text| {
        Ok(match text {
            "auto" => default_socket(),
            "" | parse::NONE => None,
            path => Some(PathBuf::from(path)),
        })
    })
}

/// In the first folder that can be written to.
fn default_socket() -> Option<PathBuf> {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").filter(|folder| !folder.is_empty());
    let folders =
        [Some(PathBuf::from(DEFAULT_FOLDER)), runtime.map(|folder| PathBuf::from(folder).join("berth"))];
    folders.into_iter().flatten().find(|folder| is_writable(folder)).map(|folder| folder.join(SOCKET))
}

/// The folder, or if it is not there, the one that it would be made in. Nothing is made to find out.
fn is_writable(folder: &Path) -> bool {
    let made_in = match fs::metadata(folder) {
        Ok(_) => Some(folder),
        Err(_) => folder.parent(),
    };
    let may = rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK;
    made_in.is_some_and(|folder| folder.is_dir() && rustix::fs::access(folder, may).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::parse::Raw;

    #[test]
    fn only_loopback() {
        let parse = |text: &str| tcp().parse(&Raw::One(text.to_owned()));
        assert!(parse("127.0.0.1:0").is_ok() && parse("[::1]:7117").is_ok() && parse("127.9.9.9:1").is_ok());
        for bad in ["0.0.0.0:7117", "[::]:1", "192.0.2.1:7117", "7117", "127.0.0.1", ""] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
