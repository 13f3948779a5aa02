//! The table of `docs/security.md`, cell by cell: every method, called by every kind of caller over a real connection.

use crate::support::{
    certificates::{Authority, Signed, over_tls},
    process::{Running, other_users, shared_folder},
};
use berth_proto::{
    FILE_DESCRIPTOR_SETS,
    v1::{self, placement_service_client::PlacementServiceClient},
};
use http::uri::PathAndQuery;
use prost::Message;
use prost_types::FileDescriptorSet;
use std::{collections::BTreeMap, fs, path::Path, time::Duration};
use tonic::{Code, Request, Status, client::Grpc, transport::Channel};
use tonic_health::pb::{HealthCheckRequest, health_client::HealthClient};
use tonic_prost::ProstCodec;
use tonic_types::StatusExt;

/// Users of the tests' own: nobody has them.
const DAEMON: u32 = 61_001;
const MEMBER: u32 = 61_002;
const OTHER: u32 = 61_003;
const GROUP: u32 = 61_010;

/// The lists that the table is written for.
const LISTS: [&str; 6] = [
    "--allow-read",
    "unix,loopback,certificate",
    "--allow-hold",
    "gid:61010,cert:holder=61002",
    "--allow-admin",
    "uid:0,daemon,cert:operator=0",
];

/// The table as it is written: for each row its cells by the name of their column.
fn table() -> BTreeMap<String, BTreeMap<String, String>> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/security.md");
    let page = fs::read_to_string(page).unwrap();
    let cells = |line: &str| -> Vec<String> {
        line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect()
    };
    let mut lines = page.lines().skip_while(|line| !line.starts_with("| Method |"));
    let head = cells(lines.next().expect("the table"));
    let rows = lines.skip(1).take_while(|line| line.starts_with('|')).map(cells);
    rows.map(|row| {
        assert_eq!(row.len(), head.len(), "{row:?}");
        let named = head.iter().cloned().zip(row.iter().cloned()).skip(1).collect();
        (row[0].clone(), named)
    })
    .collect()
}

/// Every method of the contract, with what streams.
fn methods() -> Vec<(String, bool, bool)> {
    let sets = FILE_DESCRIPTOR_SETS.iter().map(|set| FileDescriptorSet::decode(*set).unwrap());
    let files = sets.flat_map(|set| set.file).filter(|file| file.package() == "berth.v1");
    let services = files.flat_map(|file| file.service);
    let methods = services.flat_map(|service| {
        let name = service.name().to_owned();
        let named = move |method: prost_types::MethodDescriptorProto| {
            let path = format!("{name}/{}", method.name());
            (path, method.client_streaming(), method.server_streaming())
        };
        service.method.into_iter().map(named)
    });
    methods.collect()
}

/// Calls a method with an empty request. Of a stream, its beginning.
async fn call(channel: &Channel, method: &(String, bool, bool)) -> Result<(), Status> {
    let (name, asks_many, answers_many) = method;
    let path = PathAndQuery::try_from(format!("/berth.v1.{name}")).unwrap();
    let codec = ProstCodec::<(), ()>::default();
    let mut client = Grpc::new(channel.clone());
    client.ready().await.map_err(|error| Status::from_error(error.into()))?;
    let called = async {
        match (asks_many, answers_many) {
            (false, false) => client.unary(Request::new(()), path, codec).await.map(drop),
            (false, true) => client.server_streaming(Request::new(()), path, codec).await.map(drop),
            (true, false) => {
                client.client_streaming(Request::new(tokio_stream::iter([()])), path, codec).await.map(drop)
            }
            (true, true) => panic!("{name} streams both ways: write down how it is called"),
        }
    };
    tokio::time::timeout(Duration::from_secs(60), called).await.expect("no answer")
}

/// What became of a call, as the table has it.
fn cell(called: Result<(), Status>) -> String {
    let Err(status) = called else { return "yes".to_owned() };
    let details = status.get_error_details();
    let Some(told) = details.error_info() else {
        let broken = [Code::Unavailable, Code::Unknown, Code::Internal, Code::Cancelled];
        assert!(broken.contains(&status.code()), "{status:?}");
        return "no connection".to_owned();
    };
    assert_eq!(told.domain, "berth");
    let cell = match (status.code(), told.reason.as_str()) {
        (Code::Unauthenticated, "CREDENTIALS_MISSING") => "unknown",
        (Code::PermissionDenied, "ROLE_TOO_LOW") => "denied",
        // It reached the service, which had something else to say about an empty request.
        _ => "yes",
    };
    cell.to_owned()
}

/// Asks every row of one column.
async fn column(channel: &Channel) -> BTreeMap<String, String> {
    let mut column = BTreeMap::new();
    for method in methods() {
        column.insert(format!("`{}`", method.0), cell(call(channel, &method).await));
    }
    let held = v1::AdviseRequest { tasks: 1, hold: Some(v1::HoldSpec::default()), ..Default::default() };
    let called = PlacementServiceClient::new(channel.clone()).advise(held).await.map(drop);
    column.insert("`PlacementService/Advise` with `hold`".to_owned(), cell(called));
    let request = HealthCheckRequest { service: String::new() };
    let called = HealthClient::new(channel.clone()).check(request).await.map(drop);
    column.insert("health, reflection".to_owned(), cell(called));
    column
}

async fn compare(name: &str, channel: &Channel) {
    let written = table();
    let found = column(channel).await;
    assert_eq!(written.keys().collect::<Vec<_>>(), found.keys().collect::<Vec<_>>(), "the rows");
    for (row, found) in found {
        let expected = written[&row].get(name).unwrap_or_else(|| panic!("no column {name}"));
        assert_eq!(*expected, found, "{row}, {name}");
    }
}

fn column_names() -> Vec<String> {
    table().into_values().next().unwrap().into_keys().collect()
}

const ON_THIS_HOST: [&str; 5] = ["unix: root", "unix: daemon", "unix: member", "unix: other", "loopback TCP"];
const OVER_TLS: [&str; 5] =
    ["TLS: certificate", "TLS: cert:holder", "TLS: cert:operator", "TLS: none", "TLS: other CA"];

#[test]
fn every_column_is_tested() {
    let mut known: Vec<&str> = ON_THIS_HOST.into_iter().chain(OVER_TLS).collect();
    known.sort_unstable();
    assert_eq!(column_names(), known);
}

#[tokio::test(flavor = "multi_thread")]
async fn callers_of_this_host() {
    if let Err(why) = other_users() {
        eprintln!("skipped: other users than this one, and TCP beyond loopback: {why}");
        let running = Running::start(&LISTS);
        compare("unix: daemon", &running.channel().await).await;
        let tcp = Channel::from_shared(format!("http://{}", running.tcp)).unwrap().connect().await.unwrap();
        return compare("loopback TCP", &tcp).await;
    }
    let running = Running::start_as(Some(DAEMON), &LISTS);
    compare("unix: root", &running.channel().await).await;
    // A member by a supplementary group, and by its own.
    let users = [
        ("unix: daemon", running.channel_as(DAEMON, DAEMON, &[]).await),
        ("unix: member", running.channel_as(MEMBER, MEMBER, &[4, GROUP]).await),
        ("unix: member", running.channel_as(MEMBER, GROUP, &[]).await),
        ("unix: other", running.channel_as(OTHER, OTHER, &[4]).await),
    ];
    for (name, user) in &users {
        compare(name, &user.channel).await;
    }
    let tcp = Channel::from_shared(format!("http://{}", running.tcp)).unwrap().connect().await.unwrap();
    compare("loopback TCP", &tcp).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn callers_over_tls() {
    let (servers, clients, others) =
        (Authority::new("servers"), Authority::new("clients"), Authority::new("others"));
    let folder = shared_folder();
    let (certificate, key) = servers.sign("berthd", &["localhost"]).write(folder.path());
    let authority = folder.path().join("clients.pem");
    fs::write(&authority, &clients.pem).unwrap();
    let tls = ["--tls-cert", &certificate, "--tls-key", &key, "--tls-client-ca", authority.to_str().unwrap()];
    let running = Running::start(&[tls.as_slice(), &LISTS].concat());

    let connect = async |client: Option<&Signed>| over_tls(running.tcp, &servers, client).await;
    // A name of either kind.
    let columns = [
        ("TLS: certificate", Some(clients.sign("someone", &[]))),
        ("TLS: cert:holder", Some(clients.sign("holder", &[]))),
        ("TLS: cert:holder", Some(clients.sign("node7", &["holder"]))),
        ("TLS: cert:operator", Some(clients.sign("operator", &[]))),
        ("TLS: none", None),
    ];
    for (name, client) in columns {
        compare(name, &connect(client.as_ref()).await.unwrap()).await;
    }
    // It has the right name, and the handshake ends it: at once, or with the first call.
    for stranger in [others.sign("operator", &[]), servers.sign("operator", &[])] {
        match connect(Some(&stranger)).await {
            Ok(channel) => compare("TLS: other CA", &channel).await,
            Err(_) => {
                assert!(table().values().all(|row| row["TLS: other CA"] == "no connection"));
            }
        }
    }
    // Neither is there another way in.
    let plain = Channel::from_shared(format!("http://{}", running.tcp)).unwrap().connect().await;
    if let Ok(channel) = plain {
        assert_eq!(cell(call(&channel, &methods()[0]).await), "no connection");
    }
}

/// An address that other hosts reach: without TLS it tells nobody.
#[tokio::test(flavor = "multi_thread")]
async fn callers_beyond_loopback() {
    let Some(address) = own_address() else {
        return eprintln!("skipped: this host has no address but loopback ones");
    };
    let beyond = ["--tcp", "0.0.0.0:0", "--allow-plaintext-beyond-loopback"];
    for (lists, expected) in [("loopback", "unknown"), ("tcp", "yes")] {
        let running = Running::start(&[beyond.as_slice(), &["--allow-read", lists]].concat());
        let address = format!("http://{address}:{}", running.tcp.port());
        let channel = Channel::from_shared(address).unwrap().connect().await.unwrap();
        let info = ("InfoService/GetInfo".to_owned(), false, false);
        assert_eq!(cell(call(&channel, &info).await), expected);
        let create = ("HoldService/CreateHold".to_owned(), false, false);
        assert_ne!(cell(call(&channel, &create).await), "yes");
    }
}

/// The address that this host would send from. Nothing is sent.
pub(crate) fn own_address() -> Option<std::net::IpAddr> {
    let socket = std::net::UdpSocket::bind("0.0.0.0:0").ok()?;
    socket.connect("192.0.2.1:9").ok()?;
    let address = socket.local_addr().ok()?.ip();
    (!address.is_loopback() && !address.is_unspecified()).then_some(address)
}
