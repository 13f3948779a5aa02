//! The plugin's own socket, in the kubelet's folder.

use std::{
    fs, io,
    os::unix::{
        fs::{FileTypeExt as _, MetadataExt as _},
        net::UnixStream,
    },
    path::{Path, PathBuf},
};

use berth_proto::kubelet::device_plugin::device_plugin_server::DevicePluginServer;
use rustix::time::{ClockId, clock_gettime};
use tokio::{net::UnixListener, sync::oneshot, task::JoinHandle};
use tokio_stream::wrappers::UnixListenerStream;
use tonic::transport::Server;

use super::service::Service;
use crate::cli::Resource;

/// A file, told from one of the same name that takes its place, even where that is given the same inode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Inode {
    device: u64,
    number: u64,
    /// When it was made: nobody writes to a socket's file.
    made: (i64, i64),
}

impl Inode {
    /// That of a socket. `None`: there is none.
    pub(super) fn of(path: &Path) -> Option<Self> {
        let file = fs::symlink_metadata(path).ok().filter(|file| file.file_type().is_socket())?;
        Some(Self { device: file.dev(), number: file.ino(), made: (file.mtime(), file.mtime_nsec()) })
    }
}

/// A socket on which the plugin is served. It ends with its owner.
#[derive(Debug)]
pub(super) struct Socket {
    path: PathBuf,
    inode: Option<Inode>,
    stop: Option<oneshot::Sender<()>>,
    server: JoinHandle<()>,
}

impl Socket {
    /// Serves on a socket of a name that was never used before.
    ///
    /// # Errors
    ///
    /// It cannot be made there.
    pub(super) fn serve(folder: &Path, resource: &Resource, service: Service) -> io::Result<Self> {
        let stem = stem(resource);
        remove_dead(folder, &stem);
        let now = clock_gettime(ClockId::Boottime);
        let path = folder.join(format!(
            "{stem}{:x}-{:x}.sock",
            std::process::id(),
            now.tv_sec * 1_000_000_000 + now.tv_nsec
        ));
        let listener = UnixListener::bind(&path)?;
        let inode = Inode::of(&path);
        let (stop, stopped) = oneshot::channel();
        let server = Server::builder()
            .add_service(DevicePluginServer::new(service))
            .serve_with_incoming_shutdown(UnixListenerStream::new(listener), async { _ = stopped.await });
        let server = tokio::spawn(async { _ = server.await });
        Ok(Self { path, inode, stop: Some(stop), server })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Its name in the folder.
    pub(super) fn name(&self) -> String {
        self.path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
    }

    /// Whether it is in its place still, and served.
    pub(super) fn is_there(&self) -> bool {
        self.inode.is_some() && Inode::of(&self.path) == self.inode && !self.server.is_finished()
    }

    /// Takes it away, and lets calls end that are being answered.
    pub(super) async fn close(mut self) {
        self.remove();
        self.stop.take();
        _ = (&mut self.server).await;
    }

    fn remove(&self) {
        if Inode::of(&self.path) == self.inode {
            let _ = fs::remove_file(&self.path);
        }
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        self.remove();
        self.server.abort();
    }
}

/// What the names of all sockets of a resource begin with.
pub(super) fn stem(resource: &Resource) -> String {
    /// A path of a socket has no more than 107 bytes, the kubelet's folder included.
    const MOST: usize = 24;
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '.' { c } else { '_' };
    let name: String = resource.as_str().chars().map(plain).collect();
    format!("{}-", &name[name.len().saturating_sub(MOST)..])
}

/// Removes sockets of this resource on which nobody listens any more: those of predecessors that were killed.
fn remove_dead(folder: &Path, stem: &str) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let is_ours = name.to_str().is_some_and(|name| name.starts_with(stem) && name.ends_with(".sock"));
        let is_dead = || {
            UnixStream::connect(entry.path())
                .is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
        };
        if is_ours && is_dead() {
            let _ = fs::remove_file(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_is_told_from_the_next_of_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kubelet.sock");
        assert_eq!(Inode::of(&path), None);
        let first = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let before = Inode::of(&path);
        assert!(before.is_some());
        // Who may use it is no matter.
        fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        assert_eq!(Inode::of(&path), before);
        drop(first);
        fs::remove_file(&path).unwrap();
        // A clock of the file system may stand still for a moment, and the inode be the same.
        std::thread::sleep(std::time::Duration::from_millis(20));
        let _second = std::os::unix::net::UnixListener::bind(&path).unwrap();
        assert_ne!(Inode::of(&path), before);
        fs::remove_file(&path).unwrap();
        fs::write(&path, "no socket").unwrap();
        assert_eq!(Inode::of(&path), None);
    }

    #[test]
    fn names_are_short_and_a_resource_has_its_own() {
        let stem = |name: &str| stem(&name.parse().unwrap());
        assert_eq!(stem("berth.dev/cpu"), "berth.dev_cpu-");
        assert_ne!(stem("berth.dev/cpu"), stem("berth.dev/llc"));
        assert_eq!(stem("a-very-long-domain.example.com/with-a-long-name").len(), 25);
    }
}
