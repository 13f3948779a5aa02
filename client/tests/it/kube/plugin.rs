//! Runs `berth kube device-plugin`.

use std::{
    ffi::{OsStr, OsString},
    io::{BufRead as _, BufReader},
    process::{Child, Command, ExitStatus, Stdio},
    sync::{Arc, Mutex, PoisonError},
    thread,
};

use super::kubelet::{Kubelet, wait};

/// A running plugin. It ends with its owner.
#[derive(Debug)]
pub(super) struct Plugin {
    child: Child,
    log: Arc<Mutex<Vec<String>>>,
}

impl Plugin {
    /// A plugin of this kubelet that asks berthd at this address, looks after pods ten times a second, lets go soon what they do not
    /// have, and has further flags.
    pub(super) fn start(
        kubelet: &Kubelet,
        berthd: &str,
        flags: impl IntoIterator<Item = impl AsRef<OsStr>>,
    ) -> Self {
        let flags: Vec<_> = flags.into_iter().map(|flag| flag.as_ref().to_owned()).collect();
        let mut child = Command::new(env!("CARGO_BIN_EXE_berth"))
            .args(["kube", "device-plugin", "--every", "100ms", "--server", berthd])
            .args(unless_given(&flags, "--grace", "1s"))
            // A busy machine is no reason to do without berthd.
            .args(unless_given(&flags, "--deadline", "30s"))
            .args(["--timeout", "30s"])
            .arg("--plugin-dir")
            .arg(kubelet.plugin_dir())
            .arg("--pod-resources")
            .arg(kubelet.pod_resources())
            .args(&flags)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("berth starts");
        let log = Arc::new(Mutex::new(Vec::new()));
        let lines = BufReader::new(child.stderr.take().expect("it is piped")).lines();
        let keep = Arc::clone(&log);
        thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                keep.lock().unwrap_or_else(PoisonError::into_inner).push(line);
            }
        });
        Self { child, log }
    }

    /// All that it has said.
    pub(super) fn log(&self) -> Vec<String> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits until it says a line with this in it, beyond the first so many lines; gives the line.
    pub(super) fn says(&self, after: usize, what: &str) -> String {
        wait(|| self.log().into_iter().skip(after).find(|line| line.contains(what)))
    }

    pub(super) fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill").args([&format!("-{name}"), &*pid]).status().expect("kill runs");
        assert!(sent.success());
    }

    /// Waits until it has ended.
    pub(super) fn ended(&mut self) -> ExitStatus {
        wait(|| self.child.try_wait().expect("it is ours"))
    }

    /// Whether it runs.
    pub(super) fn is_alive(&mut self) -> bool {
        self.child.try_wait().expect("it is ours").is_none()
    }
}

impl Drop for Plugin {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A flag that the test does not give itself.
fn unless_given<'a>(flags: &[OsString], flag: &'a str, value: &'a str) -> Vec<&'a str> {
    if flags.iter().any(|given| given == flag) { Vec::new() } else { vec![flag, value] }
}
