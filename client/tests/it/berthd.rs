//! Builds and runs the real `berthd`.

use std::{
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::LazyLock,
    thread,
    time::{Duration, Instant},
};

use tempfile::TempDir;

use crate::berth::{Said, berth};

/// How long a server may take until it serves, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// The program, built once. `cargo test` builds programs only for the tests of their own package.
static PROGRAM: LazyLock<PathBuf> = LazyLock::new(|| {
    let folder = Path::new(env!("CARGO_BIN_EXE_berth")).parent().expect("it lies in a folder");
    let profile = match folder.file_name().and_then(OsStr::to_str) {
        Some("debug") | None => "dev",
        Some(name) => name,
    };
    let target = folder.parent().expect("the folder of a profile lies in the target folder");
    let mut cargo = Command::new(env!("CARGO"));
    // What this test was run with is not what its programs were built with: some build scripts look at it, and crates would
    // be built anew each time.
    for (name, _) in std::env::vars_os() {
        if name
            .to_str()
            .is_some_and(|name| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_"))
        {
            cargo.env_remove(name);
        }
    }
    let built = cargo
        .args(["build", "--quiet", "--package", "berthd", "--profile", profile, "--target-dir"])
        .arg(target)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .status()
        .expect("cargo runs");
    assert!(built.success(), "berthd does not build");
    folder.join("berthd")
});

/// The program.
pub(crate) fn program() -> &'static Path {
    &PROGRAM
}

/// A running server with a socket of its own. It ends with its owner.
#[derive(Debug)]
pub(crate) struct Berthd {
    child: Child,
    folder: TempDir,
}

impl Berthd {
    /// A server that serves, on a unix socket alone.
    pub(crate) fn start() -> Self {
        Self::start_with(["--no-tcp"])
    }

    /// A server that serves, on a unix socket and as its flags say.
    pub(crate) fn start_with(flags: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Self {
        Self::start_as(Path::to_owned, flags)
    }

    /// The same through a program that starts it.
    pub(crate) fn start_as(
        starter: impl FnOnce(&Path) -> PathBuf,
        flags: impl IntoIterator<Item = impl AsRef<OsStr>>,
    ) -> Self {
        let folder = tempfile::tempdir().expect("there is room for a socket");
        let child = Self::spawn(&starter(&PROGRAM), &folder, flags);
        let server = Self { child, folder };
        server.wait();
        server
    }

    /// Kills it, and starts it anew on its unix socket alone. It does not serve yet.
    pub(crate) fn start_anew(&mut self) {
        self.stop();
        self.begin(["--no-tcp"]);
    }

    /// Kills it.
    pub(crate) fn stop(&mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it ends");
    }

    /// Starts it again where it was, as its flags say. It does not serve yet.
    pub(crate) fn begin(&mut self, flags: impl IntoIterator<Item = impl AsRef<OsStr>>) {
        self.child = Self::spawn(&PROGRAM, &self.folder, flags);
    }

    /// It keeps its connections, and answers nothing any more.
    pub(crate) fn halt(&self) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-STOP", &pid]).status().expect("kill runs").success());
    }

    fn spawn(program: &Path, folder: &TempDir, flags: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Child {
        Command::new(program)
            .arg("--uds")
            .arg(folder.path().join("berthd.sock"))
            .arg("--state-dir")
            .arg(folder.path().join("state"))
            .arg("--ready-file")
            .arg(folder.path().join("ready.json"))
            .arg("--state-dir")
            .arg(folder.path().join("state"))
            .args(flags)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("berthd starts")
    }

    /// Waits until it serves.
    pub(crate) fn wait(&self) {
        let start = Instant::now();
        while self.berth(["info"]).status != 0 || !self.folder.path().join("ready.json").exists() {
            assert!(start.elapsed() < PATIENCE, "berthd does not serve: {:?}", self.berth(["info"]));
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits until it knows what runs here: nothing is called safe before.
    pub(crate) fn measured(&self) {
        let start = Instant::now();
        while self.berth(["load", "-o", "json"]).json()["load"]["known"] != true {
            assert!(start.elapsed() < PATIENCE, "the load is not known");
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Its unix socket.
    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.path().join("berthd.sock")
    }

    /// Its TCP address, such as `127.0.0.1:43210`.
    pub(crate) fn tcp(&self) -> String {
        self.listens("tcp")
    }

    /// The address of its admin listener.
    pub(crate) fn admin(&self) -> String {
        self.listens("admin")
    }

    fn listens(&self, what: &str) -> String {
        let ready =
            fs::read_to_string(self.folder.path().join("ready.json")).expect("it serves, and has said so");
        let ready: serde_json::Value = serde_json::from_str(&ready).expect("one JSON document");
        ready[what].as_str().expect("it listens there").to_owned()
    }

    /// Its address as it is typed.
    pub(crate) fn address(&self) -> String {
        format!("unix:{}", self.socket().display())
    }

    /// Asks this server.
    pub(crate) fn berth<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Said {
        let args = args.into_iter().map(|arg| arg.as_ref().to_owned());
        berth(["--server".into(), self.address().into()].into_iter().chain(args))
    }
}

impl Drop for Berthd {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
