//! Not a test: what other tests start as another user, so that a connection comes from a process of that user.

use std::{
    io,
    net::Shutdown,
    os::{fd::AsFd, unix::net::UnixStream},
    thread,
};

/// Carries what comes on its input, a socket, to the socket that the environment names, and back.
#[test]
#[ignore = "a part of other tests, which start it as another user"]
fn relay() {
    let Some(path) = std::env::var_os("BERTH_TEST_RELAY") else { return };
    let near = UnixStream::from(io::stdin().as_fd().try_clone_to_owned().unwrap());
    let Ok(far) = UnixStream::connect(path) else { return };
    let (mut from_near, mut to_far) = (near.try_clone().unwrap(), far.try_clone().unwrap());
    thread::spawn(move || {
        let _ = io::copy(&mut from_near, &mut to_far);
        let _ = to_far.shutdown(Shutdown::Both);
    });
    let (mut from_far, mut to_near) = (far, near);
    let _ = io::copy(&mut from_far, &mut to_near);
    let _ = to_near.shutdown(Shutdown::Both);
}
