//! The unix socket: taken over from a dead server, never from a live one.

use crate::support::{
    config, info, over_unix,
    process::{Running, other_users},
};
use berth_proto::v1;
use berth_server::{Daemon, Error, ListenError};
use std::{
    fs,
    os::unix::{
        fs::{MetadataExt, PermissionsExt},
        net::UnixListener,
    },
    path::Path,
};

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

/// Who may connect is the socket's mode and group.
#[tokio::test(flavor = "multi_thread")]
async fn mode_and_group_are_as_told() {
    let group = if other_users().is_ok() { 61_010 } else { rustix::process::getegid().as_raw() };
    let running = Running::start(&["--uds-mode", "0660", "--uds-group", &group.to_string()]);
    let told = fs::metadata(&running.uds).unwrap();
    assert_eq!((told.permissions().mode() & 0o777, told.gid()), (0o660, group));
    info(&running.channel().await).get_info(v1::GetInfoRequest {}).await.unwrap();
    if let Err(why) = other_users() {
        return eprintln!("skipped: other users: {why}");
    }
    let member = running.channel_as(61_002, 61_002, &[group]).await;
    info(&member.channel).get_info(v1::GetInfoRequest {}).await.unwrap();
    let other = running.channel_as(61_003, 61_003, &[]).await;
    assert!(info(&other.channel).get_info(v1::GetInfoRequest {}).await.is_err());
}
