//! Where requests come from.

use super::prelude::*;
use crate::{auth, config::parse::Form};
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
    /// Port 0 takes a free one, which the log and --ready-file tell. An address that other hosts reach needs TLS.
    tcp: Option<SocketAddr> =
        Setting::new("tcp", "ADDRESS:PORT", parse::optional(tcp())).or("127.0.0.1:7117").can_be_off();

    /// Listen on this unix socket.
    ///
    /// What a dead server left is replaced; a live server's is not. `auto` is /run/berth/berthd.sock if that folder is
    /// or can be made writable, else berth/berthd.sock in $XDG_RUNTIME_DIR, else none.
    uds: Option<PathBuf> =
        Setting::new("uds", "PATH", socket()).or("auto").can_be_off();

    /// Mode of the unix socket, in octal: whoever may write to it may connect.
    uds_mode: u32 = Setting::new("uds-mode", "MODE", mode()).or("0666");

    /// Group of the unix socket, by name or number.
    uds_group: Option<u32> = Setting::new("uds-group", "GROUP", parse::optional(group()));

    /// Listen on TCP without TLS where other hosts reach it.
    ///
    /// Everyone on the way can then read and change what is said, and nothing tells who asks but the address.
    allow_plaintext_beyond_loopback: bool =
        Setting::new("allow-plaintext-beyond-loopback", "", parse::switch()).or("false");

    /// Write this file once the daemon serves: one JSON object with pid, tcp, uds and admin.
    ready_file: Option<PathBuf> = Setting::new("ready-file", "PATH", parse::optional(parse::path()));
}

/// Where the socket is by default.
const DEFAULT_FOLDER: &str = "/run/berth";
const SOCKET: &str = "berthd.sock";

fn tcp() -> Parser<SocketAddr> {
    Parser::new(Form::Text, move |text| {
        let address = text.to_socket_addrs().ok().and_then(|mut found| found.next());
        address
            .ok_or_else(|| "expected an address and a port, such as 127.0.0.1:7117 or [::1]:7117".to_owned())
    })
}

pub(in crate::config) fn address(text: &str) -> Option<SocketAddr> {
    text.to_socket_addrs().ok()?.next()
}

fn mode() -> Parser<u32> {
    Parser::new(Form::Text, |text| {
        let mode = u32::from_str_radix(text, 8).ok().filter(|mode| (1..=0o777).contains(mode));
        mode.ok_or_else(|| "expected an octal mode, such as 0660".to_owned())
    })
}

fn group() -> Parser<u32> {
    Parser::new(Form::Text, |text| {
        text.parse()
            .ok()
            .or_else(|| auth::group_id(text))
            .ok_or_else(|| "/etc/group has no such name; expected one that it has, or a number".to_owned())
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
pub(super) fn is_writable(folder: &Path) -> bool {
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

    fn parsed<T: 'static>(parser: &Parser<T>, text: &str) -> Option<T> {
        parser.parse(&Raw::One(text.to_owned())).ok()
    }

    #[test]
    fn addresses_and_modes() {
        for good in ["127.0.0.1:0", "[::1]:7117", "0.0.0.0:7117", "localhost:1"] {
            assert!(parsed(&tcp(), good).is_some(), "{good}");
        }
        for bad in ["7117", "127.0.0.1", ""] {
            assert!(parsed(&tcp(), bad).is_none(), "{bad}");
        }
        assert_eq!((parsed(&mode(), "0660"), parsed(&mode(), "600")), (Some(0o660), Some(0o600)));
        for bad in ["", "0", "0888", "1777", "rw"] {
            assert!(parsed(&mode(), bad).is_none(), "{bad}");
        }
        assert_eq!((parsed(&group(), "root"), parsed(&group(), "77")), (Some(0), Some(77)));
        assert!(parsed(&group(), "no-such-group").is_none());
    }
}
