//! Encrypted connections: the server proves its name, and the client who it is.

use std::{fs, path::Path, process::Command};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use tempfile::TempDir;

use crate::{
    berth::{Said, berth, berth_with},
    berthd::Berthd,
};

/// An authority, and the files of those it knows.
struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    folder: TempDir,
}

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).expect("certificates can be made");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer =
            CertifiedIssuer::self_signed(params, KeyPair::generate().expect("certificates can be made"))
                .expect("certificates can be made");
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("ca.pem"), issuer.pem()).expect("it is written");
        Self { issuer, folder }
    }

    /// Writes NAME.pem and NAME.key, for somebody of that common name at these hosts.
    fn issue(&self, name: &str, hosts: &[&str]) {
        let key = KeyPair::generate().expect("certificates can be made");
        let mut params =
            CertificateParams::new(hosts.iter().map(|&host| host.to_owned()).collect::<Vec<_>>())
                .expect("certificates can be made");
        params.distinguished_name.push(DnType::CommonName, name);
        let certificate = params.signed_by(&key, &self.issuer).expect("certificates can be made");
        fs::write(self.folder.path().join(format!("{name}.pem")), certificate.pem()).expect("it is written");
        fs::write(self.folder.path().join(format!("{name}.key")), key.serialize_pem())
            .expect("it is written");
    }

    fn file(&self, name: &str) -> String {
        path(self.folder.path(), name)
    }
}

fn path(folder: &Path, name: &str) -> String {
    folder.join(name).to_str().expect("a path in UTF-8").to_owned()
}

/// A server that knows clients of the authority, and lets one of them hold CPUs.
fn server(authority: &Authority) -> (Berthd, String) {
    server_with(authority, &[])
}

fn server_with(authority: &Authority, flags: &[&str]) -> (Berthd, String) {
    authority.issue("node", &["127.0.0.1", "node7.example"]);
    authority.issue("agent", &[]);
    let (cert, key, ca) = (authority.file("node.pem"), authority.file("node.key"), authority.file("ca.pem"));
    let listen = ["--tcp", "127.0.0.1:0", "--allow-hold", "unix,cert:agent=1000"];
    let tls = ["--tls-cert", &cert, "--tls-key", &key, "--tls-client-ca", &ca];
    let server = Berthd::start_with(listen.iter().chain(&tls).chain(flags));
    let address = format!("https://{}", server.tcp());
    (server, address)
}

fn info(address: &str, flags: &[(&str, String)]) -> Said {
    let flags = flags.iter().flat_map(|(flag, value)| [(*flag).to_owned(), value.clone()]);
    berth(["--server".to_owned(), address.to_owned(), "info".to_owned()].into_iter().chain(flags))
}

#[test]
fn a_certificate_says_who_asks() {
    let authority = Authority::new();
    let (_server, address) = server(&authority);
    let agent = [
        ("--tls-ca", authority.file("ca.pem")),
        ("--tls-cert", authority.file("agent.pem")),
        ("--tls-key", authority.file("agent.key")),
    ];
    let said = info(&address, &agent).answer();
    assert!(said.contains("  you may     ask, and hold CPUs\n"), "{said}");

    // The same from the environment.
    let set = |command: &mut Command| {
        for (flag, file) in &agent {
            command.env(
                flag.trim_start_matches('-').replace('-', "_").to_uppercase().replacen("TLS", "BERTH_TLS", 1),
                file,
            );
        }
    };
    let said = berth_with(["--server", &address, "topology"], set, "").answer();
    assert!(said.starts_with("Host\n"), "{said}");

    let nobody = info(&address, &agent[..1]);
    assert_ne!(nobody.status, 0, "{nobody:?}");
    let half = info(&address, &agent[..2]).refusal(2);
    assert!(half.contains("--tls-cert needs --tls-key"), "{half}");
}

/// Over a network a hold is a lease, which a server may give for less time than is asked for without being told.
#[test]
fn cpus_are_kept_by_leases_as_long_as_the_server_gives_them() {
    let authority = Authority::new();
    let (_server, address) = server_with(&authority, &["--hold-ttl", "1s", "--max-hold-ttl", "1s"]);
    let (ca, cert, key) =
        (authority.file("ca.pem"), authority.file("agent.pem"), authority.file("agent.key"));
    let server = ["--server", &address, "--tls-ca", &ca, "--tls-cert", &cert, "--tls-key", &key];
    let held = |command: &[&str]| berth(server.iter().chain(&["hold", "-n", "1"]).chain(command));
    held(&[]).answer();
    // Renewed twice at least, and there still when the command ends.
    let renewed = held(&["--", "sh", "-c", "sleep 2.5; echo held"]);
    assert_eq!((renewed.status, renewed.stdout.as_str()), (0, "held\n"));
    // Of its own load a server may know nothing yet.
    assert!(renewed.stderr.lines().all(|line| line.starts_with("warning: ")), "{}", renewed.stderr);
}

#[test]
fn a_server_that_does_not_prove_its_name_is_not_asked() {
    let authority = Authority::new();
    let (_server, address) = server(&authority);
    let stranger = info(&address, &[("--tls-ca", Authority::new().file("ca.pem"))]).refusal(3);
    assert!(stranger.contains("invalid peer certificate"), "{stranger}");
    let ca = ("--tls-ca", authority.file("ca.pem"));
    let other = info(&address, &[ca.clone(), ("--tls-name", "node8.example".to_owned())]).refusal(3);
    assert!(other.contains("invalid peer certificate"), "{other}");
    // Neither without TLS where TLS is spoken.
    info(&address.replace("https", "http"), &[]).refusal(3);
}
