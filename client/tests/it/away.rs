//! The server is away, slow, or something else.

use std::{
    io::{Read as _, Write as _},
    net::TcpListener,
    thread,
    time::{Duration, Instant},
};

use crate::berth::{berth, berth_with};

#[test]
fn nobody_listens_at_the_socket() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("berthd.sock");
    let address = format!("unix:{}", socket.display());
    for command in [
        &["info"][..],
        &["health"],
        &["topology"],
        &["load"],
        &["predict", "-n", "1"],
        &["advise", "-n", "1"],
        &["hold", "-n", "1"],
        &["hold", "--cpus", "0"],
        &["hold", "--claim"],
        &["renew", "a"],
        &["release", "a"],
        &["release", "--all-mine"],
        &["holds"],
        &["holds", "a"],
        &["watch", "holds"],
        &["watch", "load"],
        &["watch", "topology"],
    ] {
        let said = berth(["--server", &address].iter().chain(command)).refusal(3);
        let expected = format!(
            "berth: no berthd answers at {address}: No such file or directory (os error 2)\n  \
             Start one with `berthd --uds {}`, or name another address with --server or BERTH_SERVER.\n",
            socket.display()
        );
        assert_eq!(said, expected);
    }
}

#[test]
fn nobody_listens_at_the_port() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let address = format!("127.0.0.1:{port}");
    let said = berth_with(["info"], |command| _ = command.env("BERTH_SERVER", &address), "").refusal(3);
    let expected = format!(
        "berth: no berthd answers at http://{address}: Connection refused (os error 111)\n  \
         Start one with `berthd --tcp {address}`, or name another address with --server or BERTH_SERVER.\n"
    );
    assert_eq!(said, expected);
}

#[test]
fn a_server_that_never_answers_is_not_waited_for() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let start = Instant::now();
    let said = berth(["--server", &address, "--timeout", "300ms", "info"]).refusal(3);
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    assert_eq!(
        said,
        format!("berth: no answer from http://{address} within 300ms\n  --timeout allows more.\n")
    );
}

#[test]
fn a_server_that_is_no_berthd_is_told_apart() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let web = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let _ = stream.read(&mut [0; 1024]);
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n");
    });
    let said = berth(["--server", &address, "info"]).refusal(3);
    web.join().unwrap();
    assert!(said.starts_with(&format!("berth: no berthd answers at http://{address}: ")), "{said}");
}

#[test]
fn an_address_that_cannot_be_read_is_a_usage_error() {
    let said = berth(["--server", "ftp://node7:7117", "info"]).refusal(2);
    assert!(said.contains("ftp:// is not spoken; write unix:/path, host:port, http://host:port"), "{said}");
}

#[test]
fn an_encrypted_connection_needs_its_files() {
    let folder = tempfile::tempdir().unwrap();
    let (text, gone) = (folder.path().join("text.pem"), folder.path().join("gone.pem"));
    std::fs::write(&text, "no certificate").unwrap();
    let (text, gone) = (text.to_str().unwrap(), gone.to_str().unwrap());
    let refused: [(&[&str], &str); 4] = [
        (&[], "https://node7:7117 needs --tls-ca (or BERTH_TLS_CA)"),
        (&["--tls-ca", gone], "--tls-ca: cannot read "),
        (&["--tls-ca", text], "holds no PEM, which starts with -----BEGIN"),
        (&["--tls-ca", "/dev/null"], "--tls-ca: /dev/null holds no PEM"),
    ];
    for (flags, expected) in refused {
        let said = berth(["--server", "https://node7:7117", "info"].iter().chain(flags)).refusal(2);
        assert!(said.contains(expected), "{flags:?}: {said}");
    }
}
