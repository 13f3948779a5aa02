//! Runs `berth`.

use std::{
    ffi::OsStr,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// What a call of `berth` said.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) status: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Said {
    /// What it answered; fails if it did not.
    pub(crate) fn answer(self) -> String {
        assert_eq!(self.status, 0, "{}{}", self.stdout, self.stderr);
        self.stdout
    }

    /// Its answer as JSON; fails if it is not one document.
    pub(crate) fn json(self) -> serde_json::Value {
        serde_json::from_str(&self.answer()).expect("one JSON document")
    }

    /// What it said on stderr, nothing being on stdout; fails if it ended otherwise.
    pub(crate) fn refusal(self, status: i32) -> String {
        assert_eq!(self.status, status, "{}{}", self.stdout, self.stderr);
        assert_eq!(self.stdout, "", "stdout is for answers");
        self.stderr
    }
}

/// Runs `berth` with these arguments, in an environment that says nothing about colours, widths and servers.
pub(crate) fn berth(args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Said {
    berth_with(args, |_| {}, "")
}

/// The same with a changed environment and with text on stdin.
pub(crate) fn berth_with(
    args: impl IntoIterator<Item = impl AsRef<OsStr>>,
    change: impl FnOnce(&mut Command),
    stdin: &str,
) -> Said {
    let mut command = Command::new(env!("CARGO_BIN_EXE_berth"));
    command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    for name in [
        "BERTH_SERVER",
        "BERTH_TLS_CA",
        "BERTH_TLS_CERT",
        "BERTH_TLS_KEY",
        "BERTH_TLS_NAME",
        "COLUMNS",
        "NO_COLOR",
        "XDG_RUNTIME_DIR",
    ] {
        command.env_remove(name);
    }
    change(&mut command);
    let mut child = command.spawn().expect("berth starts");
    // It may end without having read all of it.
    let _ = child.stdin.take().expect("its stdin is piped").write_all(stdin.as_bytes());
    let output = child.wait_with_output().expect("berth ends");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("it writes UTF-8");
    Said {
        status: output.status.code().expect("it ends by itself"),
        stdout: text(output.stdout),
        stderr: text(output.stderr),
    }
}

/// A machine of the repository's test data.
pub(crate) fn machine(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/topologies").join(name)
}
