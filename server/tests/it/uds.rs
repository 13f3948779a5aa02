//! The unix socket: taken over from a dead server, never from a live one.

use crate::support::{config, info, over_unix};
use berth_proto::v1;
use berth_server::{Daemon, Error, ListenError};
use std::{fs, os::unix::fs::PermissionsExt, os::unix::net::UnixListener, path::Path};

async fn start(folder: &Path) -> Result<Daemon, Error> {
    Daemon::start(config(folder, &["--no-tcp"])).await
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_dead_server_left_is_taken_over() {
    let folder = tempfile::tempdir().unwrap();
    // Dropped without being removed, as by a kill.
    drop(UnixListener::bind(folder.path().join("berthd.sock")).unwrap());
    let mut daemon = start(folder.path()).await.unwrap();
    daemon.ready().await.unwrap();
    let path = daemon.uds().unwrap().to_owned();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o666);
    info(&over_unix(&path).await).get_info(v1::GetInfoRequest {}).await.unwrap();
    daemon.stop().await;
    assert!(!path.exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_live_server_keeps_its_socket() {
    let folder = tempfile::tempdir().unwrap();
    let mut daemon = start(folder.path()).await.unwrap();
    daemon.ready().await.unwrap();
    let refused = start(folder.path()).await.unwrap_err();
    assert!(matches!(&refused, Error::Listen(ListenError::InUse { .. })), "{refused}");
    assert!(refused.to_string().contains("--uds"), "{refused}");
    let path = daemon.uds().unwrap().to_owned();
    info(&over_unix(&path).await).get_info(v1::GetInfoRequest {}).await.unwrap();
    daemon.stop().await;
    start(folder.path()).await.unwrap().stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_programs_socket_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let _listens = UnixListener::bind(folder.path().join("berthd.sock")).unwrap();
    assert!(matches!(start(folder.path()).await, Err(Error::Listen(ListenError::InUse { .. }))));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_socket_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("berthd.sock");
    fs::write(&path, "precious").unwrap();
    assert!(matches!(start(folder.path()).await, Err(Error::Listen(ListenError::NoSocket { .. }))));
    assert_eq!(fs::read_to_string(&path).unwrap(), "precious");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_folder_is_made() {
    let folder = tempfile::tempdir().unwrap();
    let daemon = start(&folder.path().join("a/b")).await.unwrap();
    assert!(daemon.uds().unwrap().exists());
    daemon.stop().await;
}
