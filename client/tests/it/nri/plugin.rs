//! The real plugin: `berth kube nri`, and what it says.

use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::{Duration, Instant},
};

use tempfile::TempDir;

/// How long the plugin may take over what nobody waits for, on a busy machine.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

/// A node's folder, with what a kubelet and a runtime have there.
#[derive(Debug)]
pub(super) struct Place(TempDir);

impl Place {
    /// A node whose kubelet has this policy.
    pub(super) fn with_policy(policy: &str) -> Self {
        let place = Self(tempfile::tempdir().expect("there is room"));
        place.set_policy(policy);
        place
    }

    pub(super) fn set_policy(&self, policy: &str) {
        let state = format!(r#"{{"policyName":"{policy}","defaultCpuSet":"","checksum":1353318690}}"#);
        fs::write(self.file("cpu_manager_state"), state).expect("there is room");
    }

    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(super) fn socket(&self) -> PathBuf {
        self.file("nri.sock")
    }
}

/// The running plugin. It ends with its owner.
#[derive(Debug)]
pub(super) struct Plugin {
    child: Child,
    said: Arc<Mutex<String>>,
}

impl Plugin {
    /// On this node, asking the berthd at this address. It has more time than on a machine that does nothing else.
    pub(super) fn start(place: &Place, server: &str) -> Self {
        Self::start_with(place, server, &["--within", "15s"])
    }

    /// The same with these flags, and otherwise as usual.
    pub(super) fn start_with(place: &Place, server: &str, flags: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_berth"))
            .args(["--server", server, "kube", "nri", "--nri-socket"])
            .arg(place.socket())
            .arg("--cpu-manager-state")
            .arg(place.file("cpu_manager_state"))
            .arg("--pod-resources")
            .arg(place.file("kubelet.sock"))
            .args(["--metrics", "127.0.0.1:0", "--timeout", "15s"])
            .args(flags)
            .env_clear()
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("berth starts");
        let said = Arc::new(Mutex::new(String::new()));
        let lines = BufReader::new(child.stderr.take().expect("it is piped")).lines();
        let log = Arc::clone(&said);
        thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
                log.push_str(&line);
                log.push('\n');
            }
        });
        let plugin = Self { child, said };
        plugin.wait_for("/metrics");
        plugin
    }

    /// Where it says that it listens.
    fn address(&self) -> String {
        let said = self.said();
        let (before, _) = said.split_once("/metrics").expect("it has said so");
        before.rsplit_once("http://").expect("it is an address").1.to_owned()
    }

    /// All that it has said.
    pub(super) fn said(&self) -> String {
        self.said.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits until it says something.
    pub(super) fn wait_for(&self, what: &str) {
        wait_until(&format!("it says `{what}`"), || self.said().contains(what), || self.said());
    }

    /// What a page of its HTTP says, status line and all.
    pub(super) fn page(&self, path: &str) -> String {
        let mut stream = TcpStream::connect(self.address()).expect("it listens");
        write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            .expect("it reads");
        let mut page = String::new();
        stream.read_to_string(&mut page).expect("it answers in UTF-8");
        page
    }

    /// The value of a metric. 0: it does not tell of it.
    pub(super) fn metric(&self, name: &str) -> f64 {
        let page = self.page("/metrics");
        let value = page.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
        value.unwrap_or(0.0)
    }

    /// Waits until a metric has a value.
    pub(super) fn wait_for_metric(&self, name: &str, value: f64) {
        let is = || (self.metric(name) - value).abs() < 0.5;
        wait_until(&format!("{name} is {value}"), is, || self.page("/metrics"));
    }

    /// Asks it to stop, and waits until it has. Its exit status.
    pub(super) fn stop(mut self) -> i32 {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").arg(&pid).status().expect("kill runs").success());
        self.child.wait().expect("it ends").code().expect("it ends by itself")
    }

    pub(super) fn kill(mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it ends");
    }

    /// Whether it runs.
    pub(super) fn lives(&mut self) -> bool {
        self.child.try_wait().expect("it can be looked at").is_none()
    }
}

impl Drop for Plugin {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits until something is so.
pub(super) fn wait_until(what: &str, is: impl Fn() -> bool, shown: impl Fn() -> String) {
    let start = Instant::now();
    while !is() {
        assert!(start.elapsed() < PATIENCE, "not yet after {PATIENCE:?}: {what}\n{}", shown());
        thread::sleep(Duration::from_millis(10));
    }
}

/// A file of recorded conversations.
pub(super) fn recording(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/nri").join(name)
}
