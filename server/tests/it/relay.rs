//! Carries a connection on: what other tests start as another user, so that a connection comes from a process of that user.

use std::{
    io::{self, Read as _, Write as _},
    net::Shutdown,
    os::{
        fd::AsFd,
        unix::net::{UnixListener, UnixStream},
    },
    path::Path,
    thread,
};

/// The arguments with which this very program carries what comes on its standard input, a socket, to the socket that
/// [`TO`] names, and back.
pub(crate) const ARGUMENTS: [&str; 3] =
    ["--exact", "relay::what_is_said_on_either_side_is_carried", "--nocapture"];
pub(crate) const TO: &str = "BERTH_TEST_RELAY";

fn carry(near: UnixStream, far: &Path) -> io::Result<()> {
    let far = UnixStream::connect(far)?;
    let (mut from_near, mut to_far) = (near.try_clone()?, far.try_clone()?);
    thread::spawn(move || {
        let _ = io::copy(&mut from_near, &mut to_far);
        let _ = to_far.shutdown(Shutdown::Both);
    });
    let (mut from_far, mut to_near) = (far, near);
    io::copy(&mut from_far, &mut to_near)?;
    to_near.shutdown(Shutdown::Both)
}

#[test]
fn what_is_said_on_either_side_is_carried() {
    if let Some(far) = std::env::var_os(TO) {
        let near = UnixStream::from(io::stdin().as_fd().try_clone_to_owned().unwrap());
        // Whoever asked goes when it is done, and so may the server.
        let _ = carry(near, far.as_ref());
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("far.sock");
    let listener = UnixListener::bind(&path).unwrap();
    let (mut ours, near) = UnixStream::pair().unwrap();
    let relay = thread::spawn(move || carry(near, &path));
    let (mut far, _) = listener.accept().unwrap();

    let mut word = [0; 5];
    ours.write_all(b"there").unwrap();
    far.read_exact(&mut word).unwrap();
    assert_eq!(&word, b"there");
    far.write_all(b"again").unwrap();
    ours.read_exact(&mut word).unwrap();
    assert_eq!(&word, b"again");
    // The end is carried too.
    drop(far);
    assert_eq!(ours.read(&mut word).unwrap(), 0);
    relay.join().unwrap().unwrap();
}
