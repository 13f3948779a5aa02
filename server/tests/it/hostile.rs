//! A running server among callers that mean harm: it keeps answering the others, and rightly.
//!
//! `BERTH_HOSTILE=long` (`make hostile`) does each of it many times over.

use crate::support::{
    info, load, over_tcp_at, placement,
    process::{Running, other_users},
    topology,
    wire::{self, BOTH, Noise, Over, connect, frame, greeting, is_ended, send_and_look},
};
use berth_proto::v1;
use prost::bytes::Bytes;
use std::time::Duration;
use tokio::{io::AsyncWriteExt, task::JoinSet};
use tonic::{Code, transport::Channel};
use tonic_types::StatusExt;

const GET_INFO: &str = "/berth.v1.InfoService/GetInfo";
const PROFILES: &str = "/berth.v1.InfoService/ListProfiles";
const HEALTH: &str = "/grpc.health.v1.Health/Check";
const PREDICT: &str = "/berth.v1.PlacementService/Predict";

/// Several times what the server needs here (81 MiB were seen, most of them the messages of one caller, of which 64 MiB are
/// let in), and less than what attackers send.
const MEMORY: u64 = 400 << 20;

/// How many times over.
fn rounds() -> usize {
    if std::env::var_os("BERTH_HOSTILE").is_some_and(|how| how == "long") { 20 } else { 1 }
}

/// Someone who means no harm, and knows the right answers from before.
struct Bystander {
    channel: Channel,
    right: v1::PredictResponse,
}

impl Bystander {
    async fn new(channel: Channel) -> Self {
        let right = Self::ask(&channel).await;
        Self { channel, right }
    }

    async fn ask(channel: &Channel) -> v1::PredictResponse {
        // Of this host as if it were idle: what runs on it changes meanwhile.
        let host = Some(v1::Host { idle: true, ..Default::default() });
        let request = v1::PredictRequest { tasks: 6, host, ..Default::default() };
        let answer = placement(channel).predict(request).await.unwrap().into_inner();
        v1::PredictResponse { snapshot: None, ..answer }
    }

    /// It is answered as before, on this connection.
    async fn is_answered(&self) {
        assert_eq!(Self::ask(&self.channel).await, self.right);
        info(&self.channel).get_info(v1::GetInfoRequest {}).await.unwrap();
    }
}

/// The bystanders of an attack over one listener come by the other.
async fn bystander(running: &Running, attack: Over) -> Bystander {
    let channel = match attack {
        Over::Tcp => running.channel().await,
        Over::Unix => over_tcp_at(running.tcp).await,
    };
    Bystander::new(channel).await
}

async fn stands(running: &mut Running, bystander: &Bystander) {
    bystander.is_answered().await;
    assert!(running.is_alive());
    let memory = running.memory();
    assert!(memory < MEMORY, "{} MiB", memory >> 20);
    eprintln!("at most {} MiB so far", memory >> 20);
}

/// Waits until the server has closed what it is to close.
async fn settles(running: &Running, most: usize) {
    for _ in 0..400 {
        if running.descriptors() <= most {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("{} descriptors are open; expected at most {most}", running.descriptors());
}

#[tokio::test(flavor = "multi_thread")]
async fn noise() {
    let mut running = Running::start(&[]);
    let mut noise = Noise(7);
    for over in BOTH {
        let bystander = bystander(&running, over).await;
        for round in 0..100 * rounds() {
            let mut wire = connect(&running, over).await.unwrap();
            let length = usize::try_from(noise.next() % 20_000).unwrap();
            let mut bytes = noise.bytes(length);
            if round % 2 == 0 {
                // Past the greeting.
                bytes.splice(0..0, greeting());
            }
            send_and_look(&mut wire, &bytes, Duration::from_millis(1)).await;
        }
        stands(&mut running, &bystander).await;
    }
}

/// Frames and messages that are cut off, too long, out of place, or lie.
#[tokio::test(flavor = "multi_thread")]
async fn broken_frames() {
    let mut running = Running::start(&[]);
    let call = wire::call(GET_INFO);
    let asks = |data: &[u8]| [frame(1, 4, 1, &call), frame(0, 1, 1, data)].concat();
    let mut too_long = frame(0, 0, 1, &[]);
    too_long[..3].copy_from_slice(&[0xff; 3]);
    let cut = asks(&[0, 0, 0, 0, 0]);
    let broken: Vec<Vec<u8>> = vec![
        cut[..cut.len() - 3].to_vec(),
        frame(1, 4, 1, &call[..20]),
        frame(1, 4, 1, &[0xff; 64]),
        frame(1, 4, 2, &call),
        frame(1, 4, 0, &call),
        too_long,
        frame(4, 0, 0, &[0, 4, 0xff, 0xff, 0xff, 0xff]),
        frame(4, 0, 0, &[1, 2, 3]),
        frame(6, 0, 0, b"short"),
        frame(8, 0, 0, &[0; 4]),
        frame(9, 4, 1, b"x"),
        frame(5, 4, 1, &[0, 0, 0, 2]),
        frame(0, 1, 0, b"x"),
        frame(0, 1, 99, b"x"),
        frame(2, 0, 1, &[0, 0, 0, 1, 9]),
        frame(0xfe, 0xff, 1, &[7; 100]),
        // A message that says it has 4 GiB, one that has less than it says, one that is compressed, three in one.
        asks(&[0, 0xff, 0xff, 0xff, 0xff, 1, 2, 3]),
        asks(&[0, 0, 0, 0, 9, 1]),
        asks(&[1, 0, 0, 0, 1, 1]),
        asks(&[0; 15]),
        asks(&[0, 0, 0, 0, 2, 0xff, 0xff]),
        [frame(1, 5, 1, &wire::call("/")), frame(1, 5, 3, &wire::call("/a/b/c")), frame(1, 5, 5, &call)]
            .concat(),
        frame(1, 5, 1, &wire::headers(&[(":method", "GET"), (":path", "/")])),
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n".to_vec(),
    ];
    for over in BOTH {
        let bystander = bystander(&running, over).await;
        for _ in 0..rounds() {
            for bytes in &broken {
                let mut wire = connect(&running, over).await.unwrap();
                let bytes = [greeting(), bytes.clone()].concat();
                send_and_look(&mut wire, &bytes, Duration::from_millis(20)).await;
            }
            stands(&mut running, &bystander).await;
        }
    }
}

/// Headers without end, many small ones, and calls that are taken back as soon as they are made.
#[tokio::test(flavor = "multi_thread")]
async fn floods_of_headers() {
    let mut running = Running::start(&[]);
    let call = wire::call(GET_INFO);
    let long = "x".repeat(120);
    let many = [call.clone(), wire::headers(&vec![("x-flood", long.as_str()); 400])].concat();
    let chunks = |stream: u32| {
        let mut chunks = many.chunks(16_000).peekable();
        let mut bytes = Vec::new();
        let mut kind = 1;
        while let Some(chunk) = chunks.next() {
            bytes.extend(frame(kind, if chunks.peek().is_none() { 5 } else { 1 }, stream, chunk));
            kind = 9;
        }
        bytes
    };
    let never_ends: Vec<u8> = std::iter::once(frame(1, 1, 1, &call))
        .chain((0..2000).map(|_| frame(9, 0, 1, &wire::headers(&[("x-flood", long.as_str()); 100]))))
        .flatten()
        .collect();
    let taken_back: Vec<u8> = (0..20_000_u32)
        .flat_map(|call_number| {
            let stream = 2 * call_number + 1;
            [frame(1, 5, stream, &call), frame(3, 0, stream, &[0, 0, 0, 8])].concat()
        })
        .collect();
    for over in BOTH {
        let bystander = bystander(&running, over).await;
        for _ in 0..rounds() {
            for (bytes, must_end) in [
                (never_ends.clone(), true),
                ((0..200).flat_map(|number| chunks(2 * number + 1)).collect(), false),
                (taken_back.clone(), true),
            ] {
                let mut wire = connect(&running, over).await.unwrap();
                let wait = Duration::from_secs(if must_end { 20 } else { 1 });
                let bytes = [greeting(), bytes].concat();
                let ended = send_and_look(&mut wire, &bytes, wait).await;
                assert!(ended || !must_end, "it goes on listening");
                stands(&mut running, &bystander).await;
            }
        }
    }
}

/// Messages that are longer than accepted, and many that are just short enough and never end.
#[tokio::test(flavor = "multi_thread")]
async fn giant_messages() {
    let mut running = Running::start(&["--deadline", "5s"]);
    for over in BOTH {
        let bystander = bystander(&running, over).await;
        for _ in 0..rounds() {
            let attacker = match over {
                Over::Tcp => over_tcp_at(running.tcp).await,
                Over::Unix => running.channel().await,
            };
            let giant = v1::PredictRequest { allowed: " ".repeat(20 << 20), ..Default::default() };
            let refused = placement(&attacker).predict(giant).await.unwrap_err();
            assert_eq!(refused.code(), Code::InvalidArgument, "{refused:?}");
            drop(attacker);

            let mut calls = JoinSet::new();
            for _ in 0..4 {
                let (mut send, connection) = wire::client(&running, over).await;
                calls.spawn(async move {
                    tokio::select! {
                        _ = connection => {}
                        () = async {
                            let mut calls = JoinSet::new();
                            for _ in 0..16 {
                                send = send.ready().await.unwrap();
                                let (answer, body) = send.send_request(wire::request(PREDICT), false).unwrap();
                                calls.spawn(never_ends(answer, body));
                            }
                            calls.join_all().await;
                        } => {}
                    }
                });
            }
            // 64 calls, of up to 16 MiB each.
            for _ in 0..10 {
                stands(&mut running, &bystander).await;
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            drop(calls);
            stands(&mut running, &bystander).await;
        }
    }
}

/// Sends almost all of a long message, and then nothing, until it is answered.
async fn never_ends(answer: h2::client::ResponseFuture, mut body: h2::SendStream<Bytes>) {
    let length: u32 = 16 << 20;
    let first = [&[0_u8], length.to_be_bytes().as_slice()].concat();
    let send = async {
        let _ = body.send_data(first.into(), false);
        let piece = Bytes::from(vec![b' '; 64 << 10]);
        for _ in 0..250 {
            body.reserve_capacity(piece.len());
            loop {
                match std::future::poll_fn(|context| body.poll_capacity(context)).await {
                    Some(Ok(_)) if body.capacity() >= piece.len() => break,
                    Some(Ok(_)) => {}
                    _ => return,
                }
            }
            if body.send_data(piece.clone(), false).is_err() {
                return;
            }
        }
        std::future::pending::<()>().await;
    };
    tokio::select! {
        () = send => {}
        _ = answer => {}
    }
}

/// Connections that say nothing, say it slowly, or have said it: each is closed, others are not.
#[tokio::test(flavor = "multi_thread")]
async fn slow_writers_and_silence() {
    let limits = ["--silent-timeout", "1s", "--idle-timeout", "1s", "--deadline", "4s"];
    let mut running = Running::start(&limits);
    for over in BOTH {
        let bystander = bystander(&running, over).await;
        let before = running.descriptors();
        let mut attackers = JoinSet::new();
        for number in 0..60 {
            let mut wire = connect(&running, over).await.unwrap();
            attackers.spawn(async move {
                let greeting = greeting();
                match number % 3 {
                    // Nothing at all.
                    0 => is_ended(&mut wire, Duration::from_secs(30)).await,
                    // A byte from time to time, without end.
                    1 => {
                        for byte in greeting.iter().chain(std::iter::repeat_n(&0, 500)) {
                            if wire.write_all(&[*byte]).await.is_err() {
                                return true;
                            }
                            tokio::time::sleep(Duration::from_millis(60)).await;
                        }
                        false
                    }
                    // The greeting, and then pings, which ask nothing.
                    _ => {
                        wire.write_all(&greeting).await.unwrap();
                        for _ in 0..300 {
                            if wire.write_all(&frame(6, 0, 0, &[0; 8])).await.is_err() {
                                return true;
                            }
                            tokio::time::sleep(Duration::from_millis(100)).await;
                        }
                        false
                    }
                }
            });
        }
        while let Some(ended) = attackers.join_next().await {
            assert!(ended.unwrap(), "a connection that asks nothing is kept");
        }
        // A call whose message comes a byte at a time is given up.
        let (mut send, connection) = wire::client(&running, over).await;
        tokio::spawn(connection);
        let (answer, mut body) = send.send_request(wire::request(GET_INFO), false).unwrap();
        let dribble = tokio::spawn(async move {
            while body.send_data(Bytes::from_static(&[0]), false).is_ok() {
                tokio::time::sleep(Duration::from_millis(400)).await;
            }
        });
        let answer = tokio::time::timeout(Duration::from_secs(30), answer).await.unwrap().unwrap();
        assert_eq!(answer.headers()["grpc-status"], "4", "DEADLINE_EXCEEDED");
        dribble.abort();
        drop((send, answer));
        // The bystander's own connection has been idle too: it connects anew, without a word.
        stands(&mut running, &bystander).await;
        settles(&running, before + 2).await;
    }
}

/// Callers that ask for much and take none of it.
#[tokio::test(flavor = "multi_thread")]
async fn slow_readers() {
    let mut running =
        Running::start(&["--deadline", "4s", "--stalled-timeout", "1s", "--max-requests", "4096"]);
    for over in BOTH {
        let bystander = bystander(&running, over).await;
        let before = running.descriptors();
        for _ in 0..rounds() {
            // By the rules of HTTP/2: the window of each answer stays shut.
            let mut attackers = JoinSet::new();
            for path in [PROFILES, HEALTH].repeat(4) {
                let (mut send, connection) = wire::client(&running, over).await;
                attackers.spawn(async move {
                    let asks = async {
                        let mut answers = Vec::new();
                        while let Ok(ready) = send.ready().await {
                            send = ready;
                            let Ok((answer, mut body)) = send.send_request(wire::request(path), false) else {
                                break;
                            };
                            let _ = body.send_data(Bytes::from_static(&[0; 5]), true);
                            answers.push(answer);
                            if answers.len() == 200 {
                                std::future::pending::<()>().await;
                            }
                        }
                    };
                    tokio::select! {
                        _ = connection => true,
                        () = asks => true,
                        () = tokio::time::sleep(Duration::from_secs(60)) => false,
                    }
                });
            }
            // And against them: nothing is read from the socket.
            let mut deaf = Vec::new();
            for _ in 0..8 {
                let mut wire = connect(&running, over).await.unwrap();
                let call = wire::call(PROFILES);
                let asks = (0..2000_u32).flat_map(|number| {
                    let stream = 2 * number + 1;
                    [frame(1, 4, stream, &call), frame(0, 1, stream, &[0; 5])].concat()
                });
                let window = frame(4, 0, 0, &[0, 4, 0x7f, 0xff, 0xff, 0xff]);
                let open = frame(8, 0, 0, &[0x7f, 0, 0, 0]);
                let bytes = [greeting(), window, open, asks.collect()].concat();
                let _ = tokio::time::timeout(Duration::from_secs(2), wire.write_all(&bytes)).await;
                deaf.push(wire);
            }
            stands(&mut running, &bystander).await;
            while let Some(ended) = attackers.join_next().await {
                assert!(ended.unwrap(), "a connection that takes no answer is kept");
            }
            settles(&running, before + 2).await;
            stands(&mut running, &bystander).await;
        }
    }
}

/// Watchers that never read what they are told. They may stay, and cost little.
#[tokio::test(flavor = "multi_thread")]
async fn watchers_that_never_read() {
    let mut running = Running::start(&["--sample-interval", "100ms", "--max-streams", "64"]);
    for over in BOTH {
        let bystander = bystander(&running, over).await;
        let mut attackers = JoinSet::new();
        for _ in 0..4 {
            let (mut send, connection) = wire::client(&running, over).await;
            attackers.spawn(connection);
            for number in 0..100 {
                let path = match number % 3 {
                    0 => "/berth.v1.LoadService/WatchLoad",
                    1 => "/berth.v1.TopologyService/WatchTopology",
                    _ => "/grpc.health.v1.Health/Watch",
                };
                send = send.ready().await.unwrap();
                let (answer, mut body) = send.send_request(wire::request(path), false).unwrap();
                let _ = body.send_data(Bytes::from_static(&[0; 5]), true);
                tokio::spawn(async move {
                    let _answer = answer.await;
                    std::future::pending::<()>().await;
                });
            }
        }
        for _ in 0..20 * rounds() {
            stands(&mut running, &bystander).await;
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        // Whoever reads is told all the same.
        let told = load(&bystander.channel).watch_load(v1::WatchLoadRequest::default()).await;
        assert!(told.unwrap().into_inner().message().await.unwrap().is_some());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_connections() {
    const MANY: u64 = 10_000;
    let mut limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    limit.current = limit.maximum;
    rustix::process::setrlimit(rustix::process::Resource::Nofile, limit).unwrap();
    if limit.current.is_some_and(|most| most < MANY + 500) {
        return eprintln!("skipped: this machine gives a process {:?} file descriptors", limit.current);
    }
    let mut running = Running::start(&["--max-connections", "400", "--max-connections-per-peer", "200"]);
    for over in BOTH {
        let bystander = bystander(&running, over).await;
        let before = running.descriptors();
        let mut kept = Vec::new();
        for number in 0..MANY {
            let mut wire = loop {
                match connect(&running, over).await {
                    Ok(wire) => break wire,
                    // More wait to be taken than the kernel keeps.
                    Err(_) => tokio::time::sleep(Duration::from_millis(1)).await,
                }
            };
            let _ = wire.write_all(&greeting()).await;
            kept.push(wire);
            if number % 1000 == 0 {
                stands(&mut running, &bystander).await;
            }
        }
        // One that comes only now gets in too.
        let late = self::bystander(&running, over).await;
        stands(&mut running, &late).await;
        settles(&running, before + 202).await;
        drop(kept);
        settles(&running, before + 2).await;
        stands(&mut running, &bystander).await;
    }
}

/// More connections than the daemon can have file descriptors for: what it needs itself is not theirs to take.
#[tokio::test(flavor = "multi_thread")]
async fn few_descriptors() {
    if !std::path::Path::new("/usr/bin/prlimit").exists() {
        return eprintln!("skipped: prlimit (util-linux) is not installed");
    }
    let mut running = Running::start_with_descriptors(192, &[]);
    let (over_unix, over_tcp) = (bystander(&running, Over::Tcp).await, bystander(&running, Over::Unix).await);
    let mut kept = Vec::new();
    for _ in 0..200 {
        for over in BOTH {
            kept.extend(connect(&running, over).await);
        }
    }
    for bystander in [&over_unix, &over_tcp] {
        stands(&mut running, bystander).await;
        // This one needs a process with three pipes.
        let text = "pack:1 [numa] l3:2 core:4 pu:1".to_owned();
        let host = Some(v1::Host { source: Some(v1::host::Source::Synthetic(text)), ..Default::default() });
        let request = v1::PredictRequest { tasks: 3, host, ..Default::default() };
        placement(&bystander.channel).predict(request).await.unwrap();
    }
}

/// An ordinary user who asks as much as it can, for what is not its own.
#[tokio::test(flavor = "multi_thread")]
async fn an_ordinary_user() {
    if let Err(why) = other_users() {
        return eprintln!("skipped: {why}");
    }
    let mut running = Running::start(&["--max-requests", "16"]);
    let bystander = Bystander::new(running.channel().await).await;
    let user = running.channel_as(65_534, 65_534, &[]).await;
    let denied = load(&user.channel)
        .report_load(tokio_stream::iter([v1::ReportLoadRequest {
            agent: "mine".to_owned(),
            cpus: vec![v1::CpuLoad { cpus: "0".to_owned(), runnable: Some(60_000), ..Default::default() }],
            ..Default::default()
        }]))
        .await
        .unwrap_err();
    assert_eq!(denied.code(), Code::PermissionDenied, "{denied:?}");
    // As much work as it can ask for, over and over.
    let mut attack = JoinSet::new();
    for _ in 0..64 {
        let channel = user.channel.clone();
        attack.spawn(async move {
            let heavy = v1::PredictRequest {
                tasks: 20_000,
                host: Some(v1::Host {
                    source: Some(v1::host::Source::Synthetic("pack:8 [numa] l3:8 core:16 pu:2".to_owned())),
                    ..Default::default()
                }),
                ..Default::default()
            };
            let mut refused = 0_u32;
            loop {
                match placement(&channel).predict(heavy.clone()).await {
                    Err(status) if status.code() == Code::Unavailable => {
                        let details = status.get_error_details();
                        let info = details.error_info().unwrap_or_else(|| panic!("{status:?}"));
                        assert_eq!(info.reason, "OVERLOADED");
                        assert!(details.retry_info().is_some());
                        refused += 1;
                        tokio::time::sleep(Duration::from_millis(5)).await;
                    }
                    // Some are answered, and those that take too long are told so.
                    Ok(answer) => {
                        let prediction = answer.into_inner().prediction.unwrap();
                        assert_eq!(prediction.cpus.len(), 2048);
                    }
                    Err(status) => assert_eq!(status.code(), Code::DeadlineExceeded, "{status:?}"),
                }
                if refused > 100 {
                    return;
                }
            }
        });
    }
    // Meanwhile no request of another is refused: half of the places are not the attacker's to take.
    for _ in 0..30 * rounds() {
        info(&bystander.channel).get_info(v1::GetInfoRequest {}).await.unwrap();
        let here = v1::PredictRequest { tasks: 1, ..Default::default() };
        placement(&bystander.channel).predict(here).await.unwrap();
        topology(&bystander.channel).get_topology(v1::GetTopologyRequest::default()).await.unwrap();
        assert!(running.is_alive());
    }
    // What was refused was the attacker's own.
    assert!(attack.join_next().await.unwrap().is_ok());
    attack.abort_all();
    while let Some(ended) = attack.join_next().await {
        assert!(!ended.is_err_and(|error| error.is_panic()));
    }
    stands(&mut running, &bystander).await;
}
