//! A daemon in a process of its own, and callers that are other users.

use super::PROGRAM;
use crate::relay;
use hyper_util::rt::TokioIo;
use rustix::process::{Pid, Resource, Rlimit, Signal};
use serde_json::Value;
use std::{
    fs,
    net::SocketAddr,
    os::{fd::OwnedFd, unix::fs::PermissionsExt},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};
use tempfile::TempDir;
use tokio::net::UnixStream;
use tonic::transport::{Channel, Endpoint};
use tower::service_fn;

/// A folder that other users can look into.
pub(crate) fn shared_folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    folder
}

/// A running program, killed when dropped.
pub(crate) struct Running {
    child: Child,
    pub(crate) tcp: SocketAddr,
    pub(crate) uds: PathBuf,
    pub(crate) admin: Option<SocketAddr>,
    folder: TempDir,
}

impl Running {
    /// The program with these flags, on a free port and on a socket of its own, once it serves.
    pub(crate) fn start(flags: &[&str]) -> Self {
        Self::start_as(None, flags)
    }

    /// The same as another user, which needs to be root.
    pub(crate) fn start_as(uid: Option<u32>, flags: &[&str]) -> Self {
        let folder = shared_folder();
        let program = reachable(Path::new(PROGRAM), folder.path());
        let command = match uid {
            Some(uid) => {
                std::os::unix::fs::chown(folder.path(), Some(uid), Some(uid)).unwrap();
                as_user(uid, uid, &[], &program)
            }
            None => Command::new(&program),
        };
        Self::start_by(command, folder, flags)
    }

    /// The same with few file descriptors.
    pub(crate) fn start_with_descriptors(most: u32, flags: &[&str]) -> Self {
        let mut command = Command::new("/usr/bin/prlimit");
        command.arg(format!("--nofile={most}:{most}")).arg(PROGRAM);
        Self::start_by(command, shared_folder(), flags)
    }

    /// The same where the scheduler's debug file is to be seen. Nothing if this machine does not show it.
    pub(crate) fn start_with_debug_file(flags: &[&str]) -> Option<Self> {
        let within = |then: &str| {
            let script = format!("mount -t debugfs none /sys/kernel/debug && {then}");
            let mut command = Command::new("/usr/bin/unshare");
            command.args(["--mount", "/bin/sh", "-c", &script]);
            command
        };
        let look = within("test -r /sys/kernel/debug/sched/debug").output();
        if !look.is_ok_and(|look| look.status.success()) {
            return None;
        }
        let mut command = within("exec \"$0\" \"$@\"");
        command.arg(PROGRAM);
        Some(Self::start_by(command, shared_folder(), flags))
    }

    fn start_by(mut command: Command, folder: TempDir, flags: &[&str]) -> Self {
        let uds = folder.path().join("berthd.sock");
        let ready = folder.path().join("ready");
        command.env_clear().args(["--config", "none", "--tcp", "127.0.0.1:0", "--uds"]).arg(&uds);
        command.arg("--state-dir").arg(folder.path().join("state"));
        command.arg("--ready-file").arg(&ready).args(["--log", "error"]).args(flags);
        let mut child = command.stdin(Stdio::null()).spawn().unwrap();
        let begun = Instant::now();
        let told: Value = loop {
            if let Ok(text) = fs::read_to_string(&ready) {
                break serde_json::from_str(&text).unwrap();
            }
            assert!(child.try_wait().unwrap().is_none(), "it ended");
            assert!(begun.elapsed() < Duration::from_secs(60), "it does not serve");
            std::thread::sleep(Duration::from_millis(5));
        };
        let address = |name: &str| Some(told[name].as_str()?.parse().unwrap());
        Self { child, tcp: address("tcp").unwrap(), uds, admin: address("admin"), folder }
    }

    /// A connection of this user over the unix socket.
    pub(crate) async fn channel(&self) -> Channel {
        super::over_unix(&self.uds).await
    }

    /// A connection of another user, through a process of its own.
    pub(crate) async fn channel_as(&self, uid: u32, gid: u32, groups: &[u32]) -> AsUser {
        let program = reachable(&std::env::current_exe().unwrap(), self.folder.path());
        let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
        let mut command = tokio::process::Command::from(as_user(uid, gid, groups, &program));
        command.args(relay::ARGUMENTS);
        command.env(relay::TO, &self.uds).stdin(OwnedFd::from(theirs));
        command.stdout(Stdio::null()).kill_on_drop(true);
        let process = command.spawn().unwrap();
        ours.set_nonblocking(true).unwrap();
        let mut ours = Some(UnixStream::from_std(ours).unwrap());
        let connect = service_fn(move |_| {
            let ours = ours.take().ok_or_else(|| std::io::Error::other("it was connected already"));
            async move { ours.map(TokioIo::new) }
        });
        let channel = Endpoint::from_static("http://unix").connect_with_connector(connect).await.unwrap();
        AsUser { channel, process }
    }

    /// The most bytes of memory that it has had.
    pub(crate) fn memory(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let resident = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        resident.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
    }

    /// File descriptors that it has open.
    pub(crate) fn descriptors(&self) -> usize {
        fs::read_dir(format!("/proc/{}/fd", self.child.id())).unwrap().count()
    }

    /// Lets it open no more files while something is done.
    pub(crate) async fn without_descriptors<T>(&self, act: impl Future<Output = T>) -> T {
        let limit = |limit| {
            rustix::process::prlimit(Some(Pid::from_child(&self.child)), Resource::Nofile, limit).unwrap()
        };
        let before =
            limit(Rlimit { current: Some(3), maximum: rustix::process::getrlimit(Resource::Nofile).maximum });
        let done = act.await;
        limit(before);
        done
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let pid = Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal).unwrap();
    }

    pub(crate) fn is_alive(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A connection of another user.
pub(crate) struct AsUser {
    pub(crate) channel: Channel,
    process: tokio::process::Child,
}

impl AsUser {
    /// The process that the server sees.
    pub(crate) fn pid(&self) -> u32 {
        self.process.id().expect("it lives")
    }
}

/// A command that runs a program as another user.
fn as_user(uid: u32, gid: u32, groups: &[u32], program: &Path) -> Command {
    let mut command = Command::new("/usr/bin/setpriv");
    command.args([format!("--reuid={uid}"), format!("--regid={gid}")]);
    if groups.is_empty() {
        command.arg("--clear-groups");
    } else {
        let groups: Vec<String> = groups.iter().map(ToString::to_string).collect();
        command.arg(format!("--groups={}", groups.join(",")));
    }
    command.arg(program);
    command
}

/// Whether this machine lets a test act as other users; if not, why.
pub(crate) fn other_users() -> Result<(), &'static str> {
    if !rustix::process::geteuid().is_root() {
        return Err("only root can act as other users");
    }
    if !Path::new("/usr/bin/setpriv").exists() {
        return Err("setpriv (util-linux) is not installed");
    }
    Ok(())
}

/// The program where other users can reach it too: as it is, or copied.
fn reachable(program: &Path, folder: &Path) -> PathBuf {
    let is_open = |folder: &Path| fs::metadata(folder).is_ok_and(|is| is.permissions().mode() & 0o1 != 0);
    if program.ancestors().all(is_open) {
        return program.to_owned();
    }
    let copy = folder.join(program.file_name().unwrap());
    if !copy.exists() {
        fs::copy(program, &copy).unwrap();
    }
    copy
}
