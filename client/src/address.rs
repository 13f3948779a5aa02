//! Where the server listens.

use std::{
    env, fmt,
    path::{Path, PathBuf},
    str::FromStr,
};

use tonic::transport::Uri;

/// The socket of a server that the system runs.
const SYSTEM_SOCKET: &str = "/run/berth/berthd.sock";
/// The socket of a user's own server, below `$XDG_RUNTIME_DIR`.
const USER_SOCKET: &str = "berth/berthd.sock";
/// Asked when neither socket exists.
const LOOPBACK: &str = "127.0.0.1:7117";

/// Where a server listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// A unix socket.
    Unix(PathBuf),
    /// A host and a port, without TLS.
    Tcp(String),
    /// A host and a port, with TLS.
    Tls(String),
}

/// Why a text is no address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Nothing, or `unix:` alone.
    #[error("it is empty; write unix:/path, host:port, http://host:port or https://host:port")]
    Empty,
    /// A scheme that is not spoken.
    #[error("{0}:// is not spoken; write unix:/path, host:port, http://host:port or https://host:port")]
    Scheme(String),
    /// No port, or something else than a host and a port.
    #[error("`{0}` is not a host and a port such as 127.0.0.1:7117 or [::1]:7117")]
    NotHostAndPort(String),
}

impl Address {
    /// What is asked when no address is given: the first socket that exists, the system's before the user's own, or else
    /// loopback.
    pub fn default_of_this_host() -> Self {
        let runtime = env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
        Self::first_of(runtime.as_deref(), Path::exists)
    }

    /// The socket of a server that the system runs, whether it is there now or not.
    pub(crate) fn of_the_system() -> Self {
        Self::Unix(SYSTEM_SOCKET.into())
    }

    fn first_of(runtime: Option<&Path>, exists: impl Fn(&Path) -> bool) -> Self {
        let user = runtime.filter(|folder| folder.is_absolute()).map(|folder| folder.join(USER_SOCKET));
        let mut sockets = [Some(PathBuf::from(SYSTEM_SOCKET)), user].into_iter().flatten();
        let found = sockets.find(|socket| exists(socket));
        found.map_or_else(|| Self::Tcp(LOOPBACK.to_owned()), Self::Unix)
    }
}

impl FromStr for Address {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        if let Some(path) = text.strip_prefix("unix:") {
            let path = path.strip_prefix("//").unwrap_or(path);
            return if path.is_empty() { Err(Error::Empty) } else { Ok(Self::Unix(path.into())) };
        }
        match text.split_once("://") {
            Some(("http", rest)) => host_and_port(rest).map(Self::Tcp),
            Some(("https", rest)) => host_and_port(rest).map(Self::Tls),
            Some((scheme, _)) => Err(Error::Scheme(scheme.to_owned())),
            None if text.is_empty() => Err(Error::Empty),
            None if text.starts_with('/') => Ok(Self::Unix(text.into())),
            None => host_and_port(text).map(Self::Tcp),
        }
    }
}

fn host_and_port(text: &str) -> Result<String, Error> {
    let wrong = || Error::NotHostAndPort(text.to_owned());
    let text = text.strip_suffix('/').unwrap_or(text);
    let uri: Uri = format!("http://{text}").parse().map_err(|_| wrong())?;
    let authority = uri.authority().ok_or_else(wrong)?;
    let whole = authority.as_str() == text && !text.contains('@');
    if whole && !authority.host().is_empty() && authority.port_u16().is_some() {
        Ok(text.to_owned())
    } else {
        Err(wrong())
    }
}

/// In the form that [`FromStr`] and gRPC libraries read.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Tcp(host) => write!(f, "http://{host}"),
            Self::Tls(host) => write!(f, "https://{host}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_is_read_and_shown_in_one() {
        for (typed, shown) in [
            ("unix:/run/berth/berthd.sock", "unix:/run/berth/berthd.sock"),
            ("unix:///run/berth/berthd.sock", "unix:/run/berth/berthd.sock"),
            ("/tmp/b.sock", "unix:/tmp/b.sock"),
            ("unix:b.sock", "unix:b.sock"),
            ("http://node7:7117", "http://node7:7117"),
            ("http://node7:7117/", "http://node7:7117"),
            ("https://node7:7117", "https://node7:7117"),
            ("127.0.0.1:7117", "http://127.0.0.1:7117"),
            ("[::1]:7117", "http://[::1]:7117"),
        ] {
            assert_eq!(typed.parse::<Address>().unwrap().to_string(), shown, "{typed}");
        }
    }

    #[test]
    fn what_is_no_address_is_refused() {
        assert_eq!("".parse::<Address>(), Err(Error::Empty));
        assert_eq!("unix://".parse::<Address>(), Err(Error::Empty));
        assert_eq!("ftp://node7:7117".parse::<Address>(), Err(Error::Scheme("ftp".into())));
        for text in [
            "node7",
            "http://node7",
            "node7:",
            ":7117",
            "node7:99999",
            "a b:1",
            "node7:1/x",
            "u@node7:1",
            "https://node7",
        ] {
            assert!(matches!(text.parse::<Address>(), Err(Error::NotHostAndPort(_))), "{text}");
        }
    }

    #[test]
    fn the_first_socket_that_exists_is_the_default() {
        let chosen = |runtime: Option<&str>, there: &[&str]| {
            Address::first_of(runtime.map(Path::new), |path| there.iter().any(|t| Path::new(t) == path))
                .to_string()
        };
        let user = "/run/user/7/berth/berthd.sock";
        assert_eq!(chosen(Some("/run/user/7"), &[SYSTEM_SOCKET, user]), "unix:/run/berth/berthd.sock");
        assert_eq!(chosen(Some("/run/user/7"), &[user]), "unix:/run/user/7/berth/berthd.sock");
        assert_eq!(chosen(None, &[user]), "http://127.0.0.1:7117");
        assert_eq!(chosen(Some(""), &["berth/berthd.sock"]), "http://127.0.0.1:7117");
    }
}
