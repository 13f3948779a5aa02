//! Certificates that are replaced while the daemon runs.

use crate::{
    program::{berthd, ready, signal},
    support::{
        certificates::{Authority, Signed, over_tls},
        info,
    },
};
use berth_proto::v1::GetInfoRequest;
use std::{
    fs,
    io::{BufRead, BufReader},
    net::SocketAddr,
    process::{Child, Command, Stdio},
    sync::mpsc,
    time::Duration,
};
use tonic::transport::Channel;

/// A daemon whose log is read as it comes.
struct Logged {
    program: Child,
    lines: mpsc::Receiver<String>,
}

impl Logged {
    fn start(mut command: Command) -> Self {
        let mut program = command.stderr(Stdio::piped()).spawn().unwrap();
        let log = BufReader::new(program.stderr.take().unwrap());
        let (tell, lines) = mpsc::channel();
        std::thread::spawn(move || log.lines().map_while(Result::ok).try_for_each(|line| tell.send(line)));
        Self { program, lines }
    }

    /// Reads the configuration again; returns the log until that is done, one way or the other.
    fn reload(&self) -> String {
        signal(&self.program, "HUP");
        let mut log = String::new();
        while !["nothing was changed", "was read again"].iter().any(|end| log.contains(end)) {
            log += &self.lines.recv_timeout(Duration::from_secs(30)).expect("it says that it has read it");
            log.push('\n');
        }
        log
    }
}

impl Drop for Logged {
    fn drop(&mut self) {
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}

/// Whether it is answered over a connection that is made now.
async fn is_answered(address: SocketAddr, server: &Authority, client: Option<&Signed>) -> bool {
    match over_tls(address, server, client).await {
        Ok(channel) => is_alive(&channel).await,
        Err(_) => false,
    }
}

async fn is_alive(channel: &Channel) -> bool {
    info(channel).get_info(GetInfoRequest {}).await.is_ok()
}

#[tokio::test(flavor = "multi_thread")]
async fn sighup_reads_the_files_again() {
    let folder = tempfile::tempdir().unwrap();
    let [old, new, clients, newer_clients] =
        ["old servers", "new servers", "clients", "newer clients"].map(Authority::new);
    let (cert, key) = old.sign("server", &["localhost"]).write(folder.path());
    let ca = folder.path().join("clients.pem");
    fs::write(&ca, &clients.pem).unwrap();
    let mut command = berthd(folder.path());
    command.args(["--tls-cert", &cert, "--tls-key", &key, "--tls-client-ca"]).arg(&ca);
    command.args(["--allow-read", "cert:node"]);
    let mut daemon = Logged::start(command);
    let told = ready(folder.path(), &mut daemon.program);
    let address = told["tcp"].as_str().unwrap().parse().unwrap();
    let [node, newer_node] = [&clients, &newer_clients].map(|authority| authority.sign("node", &[]));
    let before = over_tls(address, &old, Some(&node)).await.unwrap();
    assert!(is_alive(&before).await);
    assert!(!is_answered(address, &new, Some(&node)).await);

    // A key that is not the certificate's, what is no certificate, and nothing at all: those from before stay.
    let signed = new.sign("server", &["localhost"]);
    let is_as_before = async || {
        is_answered(address, &old, Some(&node)).await && !is_answered(address, &new, Some(&node)).await
    };
    fs::write(&cert, &signed.certificate).unwrap();
    let log = daemon.reload();
    assert!(log.contains("ERROR") && log.contains("tls.certificate and key"), "{log}");
    assert!(is_as_before().await, "{log}");
    fs::write(&cert, "-----BEGIN CERTIFICATE-----\nnonsense\n").unwrap();
    let log = daemon.reload();
    assert!(log.contains("tls.certificate: ") && is_as_before().await, "{log}");
    fs::write(&cert, "").unwrap();
    let log = daemon.reload();
    assert!(log.contains("no certificate is in it") && is_as_before().await, "{log}");
    fs::remove_file(&cert).unwrap();
    let log = daemon.reload();
    assert!(log.contains("tls-cert") && is_as_before().await, "{log}");

    // Whole ones count for new connections, and for them alone.
    signed.write(folder.path());
    fs::write(&ca, &newer_clients.pem).unwrap();
    let log = daemon.reload();
    assert!(log.contains("the TLS files were read again"), "{log}");
    assert!(is_answered(address, &new, Some(&newer_node)).await);
    assert!(!is_answered(address, &old, Some(&newer_node)).await);
    assert!(!is_answered(address, &new, Some(&node)).await, "its authority is no longer known");
    assert!(is_alive(&before).await, "a connection that is there goes on");
}
