//! The store of holds where it cannot be trusted or written: questions are answered, holds are refused, and the file is
//! left as it is.

use crate::{
    admin::{ADMIN, http, value},
    holds::{HOST, create, lease, list},
    support::{PROGRAM, Random, Served, config, holds, info, new_seed, over_unix, placement, try_unix},
};
use berth_proto::v1;
use berth_server::{Daemon, Error};
use std::{
    fs,
    os::unix::fs::{MetadataExt, chown, symlink},
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    time::{Duration, Instant},
};
use tempfile::TempDir;
use tonic::{Code, transport::Channel};
use tonic_health::pb::{
    HealthCheckRequest, health_check_response::ServingStatus, health_client::HealthClient,
};
use tonic_types::StatusExt;

async fn daemon(folder: &Path) -> (Daemon, Channel) {
    let mut daemon = Daemon::start(config(folder, &HOST)).await.unwrap();
    daemon.ready().await.unwrap();
    let channel = over_unix(daemon.uds().unwrap()).await;
    (daemon, channel)
}

async fn serves_holds(channel: &Channel) -> bool {
    let request = HealthCheckRequest { service: "berth.v1.HoldService".to_owned() };
    let status = HealthClient::new(channel.clone()).check(request).await.unwrap().into_inner().status();
    status == ServingStatus::Serving
}

/// Questions are answered, and what does not work is said wherever one would look.
async fn is_degraded(channel: &Channel, reason: &str, code: Code) {
    let request = v1::PredictRequest { tasks: 1, ..Default::default() };
    placement(channel).predict(request).await.unwrap();
    let request = v1::AdviseRequest { tasks: 1, ..Default::default() };
    placement(channel).advise(request).await.unwrap();
    let status = create(channel, lease(5), "0").await.unwrap_err();
    assert_eq!(status.code(), code, "{status:?}");
    let details = status.get_error_details();
    assert_eq!(details.error_info().unwrap().reason, reason);
    assert_eq!(details.retry_info().is_some(), code == Code::Unavailable);
    let told = info(channel).get_info(v1::GetInfoRequest {}).await.unwrap().into_inner();
    assert!(told.degraded.iter().any(|warning| warning.reason == "HOLDS_NOT_KEPT"), "{:?}", told.degraded);
    assert!(!serves_holds(channel).await);
}

/// A folder with a store of a few holds.
async fn with_holds() -> (TempDir, Vec<v1::Hold>) {
    let folder = tempfile::tempdir().unwrap();
    let (daemon, channel) = daemon(folder.path()).await;
    for cpu in 0..8 {
        let labels = [("text".to_owned(), "x".repeat(200))].into();
        let spec = v1::HoldSpec { labels, request_id: format!("r{cpu}"), ..lease(3600) };
        create(&channel, spec, &cpu.to_string()).await.unwrap();
    }
    let all = list(&channel).await;
    daemon.stop().await;
    (folder, all)
}

fn store(folder: &Path) -> PathBuf {
    folder.join("state/holds.redb")
}

fn ids(holds: &[v1::Hold]) -> Vec<(String, String)> {
    holds.iter().map(|hold| (hold.id.clone(), hold.cpus.clone())).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_store_is_left_as_it_is() {
    for (what, bytes) in [
        ("nothing", Vec::new()),
        ("a text", b"These are my holds.\n".to_vec()),
        ("noise", (0..100_000u32).flat_map(|i| i.wrapping_mul(2_654_435_761).to_le_bytes()).collect()),
    ] {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("state")).unwrap();
        fs::write(store(folder.path()), &bytes).unwrap();
        let (daemon, channel) = daemon(folder.path()).await;
        is_degraded(&channel, "STORE_NOT_USABLE", Code::FailedPrecondition).await;
        daemon.stop().await;
        assert_eq!(fs::read(store(folder.path())).unwrap(), bytes, "{what}");
    }
}

/// Says what a database of redb's holds besides.
fn rewrite(file: &Path, table: &str, format: &str) {
    let meta: redb::TableDefinition<'_, &str, &str> = redb::TableDefinition::new(table);
    let database = redb::Database::create(file).unwrap();
    let change = database.begin_write().unwrap();
    change.open_table(meta).unwrap().insert("format", format).unwrap();
    change.commit().unwrap();
}

/// Another program's database, and one that a newer berthd wrote, are sound files that are not ours to change.
#[tokio::test(flavor = "multi_thread")]
async fn a_store_of_another_kind_is_left_as_it_is() {
    let (kept, _) = with_holds().await;
    let foreign = tempfile::tempdir().unwrap();
    fs::create_dir(foreign.path().join("state")).unwrap();
    for (folder, table, format) in [(&foreign, "settings", "1"), (&kept, "berth", "2")] {
        rewrite(&store(folder.path()), table, format);
        let before = fs::read(store(folder.path())).unwrap();
        let (daemon, channel) = daemon(folder.path()).await;
        is_degraded(&channel, "STORE_NOT_USABLE", Code::FailedPrecondition).await;
        daemon.stop().await;
        assert!(fs::read(store(folder.path())).unwrap() == before, "{table}");
    }
}

/// Whoever watches the metrics is told.
#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_cannot_be_used_is_counted() {
    let reason = "berth_degraded{reason=\"HOLDS_NOT_KEPT\"}";
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("state")).unwrap();
    for (expected, text) in [(Some(1.0), Some("no store")), (None, None)] {
        match text {
            Some(text) => fs::write(store(folder.path()), text).unwrap(),
            None => fs::remove_file(store(folder.path())).unwrap(),
        }
        let flags = [&HOST[..], &ADMIN[..]].concat();
        let mut daemon = Daemon::start(config(folder.path(), &flags)).await.unwrap();
        daemon.ready().await.unwrap();
        let (_, metrics) = http(daemon.admin().unwrap(), "GET", "/metrics", "").await;
        assert_eq!(value(&metrics, reason).filter(|set| *set > 0.0), expected, "{metrics}");
        daemon.stop().await;
    }
}

/// Cut off or written over anywhere, a store has all its holds still, or is not used and not touched.
#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_store_is_whole_or_left_as_it_is() {
    let (kept, all) = with_holds().await;
    let sound = fs::read(store(kept.path())).unwrap();
    let seed = new_seed();
    let mut random = Random(seed);
    let mut below = |bound: usize| usize::try_from(random.below(bound as u64)).unwrap();
    let mut left = 0;
    for round in 0..24 {
        let mut damaged = sound.clone();
        let at = if round % 3 == 0 { below(40_000.min(sound.len())) } else { below(sound.len()) };
        if round % 2 == 0 {
            damaged.truncate(at);
        } else {
            let end = (at + 1 + below(4096)).min(damaged.len());
            damaged[at..end].iter_mut().for_each(|byte| *byte ^= 0x5a);
        }
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("state")).unwrap();
        fs::write(store(folder.path()), &damaged).unwrap();
        let (daemon, channel) = daemon(folder.path()).await;
        if serves_holds(&channel).await {
            assert_eq!(ids(&list(&channel).await), ids(&all), "round {round}, at {at}, seed {seed}");
            daemon.stop().await;
        } else {
            left += 1;
            is_degraded(&channel, "STORE_NOT_USABLE", Code::FailedPrecondition).await;
            daemon.stop().await;
            assert!(
                fs::read(store(folder.path())).unwrap() == damaged,
                "round {round}, at {at}, seed {seed}"
            );
        }
    }
    assert!(left > 0, "no damage was found");
}

/// However long the requests are, little of them is kept, and they are known when they come again.
#[tokio::test(flavor = "multi_thread")]
async fn long_requests_do_not_fill_the_store() {
    let folder = tempfile::tempdir().unwrap();
    let (served, channel) = daemon(folder.path()).await;
    let spec = |id: usize| v1::HoldSpec { request_id: format!("r{id}"), ..lease(3600) };
    let long = format!("0{}", " ".repeat(1_000_000));
    let mut made = Vec::new();
    for id in 0..6 {
        made.push(create(&channel, spec(id), &long).await.unwrap().id);
    }
    for too_long in [format!("0{}", " ".repeat(2 << 20)), format!("0{}", ",0".repeat(1 << 20))] {
        assert_eq!(create(&channel, spec(9), &too_long).await.unwrap_err().code(), Code::InvalidArgument);
    }
    let forms = vec![v1::form::Value::Mask.into(); 1 << 20];
    let request = v1::AdviseRequest { tasks: 1, hold: Some(spec(9)), can_apply: forms, ..Default::default() };
    let refused = placement(&channel).advise(request).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
    served.stop().await;
    let bytes = fs::metadata(store(folder.path())).unwrap().len();
    assert!(bytes < 5 << 20, "{bytes} bytes");
    let (served, channel) = daemon(folder.path()).await;
    for (id, before) in made.iter().enumerate() {
        assert_eq!(create(&channel, spec(id), &long).await.unwrap().id, *before);
    }
    let other = create(&channel, spec(0), &format!("{long} ")).await.unwrap_err();
    assert_eq!(other.code(), Code::AlreadyExists, "{other:?}");
    served.stop().await;
}

/// What cannot be read whole is not read in part.
#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_too_long_is_left_as_it_is() {
    let (kept, _) = with_holds().await;
    let longer = 800 << 20;
    fs::File::options().write(true).open(store(kept.path())).unwrap().set_len(longer).unwrap();
    let (served, channel) = daemon(kept.path()).await;
    is_degraded(&channel, "STORE_NOT_USABLE", Code::FailedPrecondition).await;
    let told = info(&channel).get_info(v1::GetInfoRequest {}).await.unwrap().into_inner();
    assert!(told.degraded.iter().any(|warning| warning.message.contains("longer than")), "{told:?}");
    served.stop().await;
    assert_eq!(fs::metadata(store(kept.path())).unwrap().len(), longer);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_folder_holds_are_refused() {
    let served = Served::start(&[&HOST[..], &["--no-state-dir"]].concat()).await;
    let channel = over_unix(served.daemon.uds().unwrap()).await;
    is_degraded(&channel, "STORE_NOT_USABLE", Code::FailedPrecondition).await;
    assert!(list(&channel).await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn one_daemon_keeps_the_holds_of_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    let (first, channel) = daemon(folder.path()).await;
    let elsewhere = folder.path().join("other.sock");
    let mut second = config(folder.path(), &HOST);
    second.sections.listen.uds = Some(elsewhere);
    let refused = Daemon::start(second.clone()).await.unwrap().ready().await.unwrap_err();
    assert!(matches!(refused, Error::Locked(_)), "{refused}");
    let said = refused.to_string();
    assert!(said.contains(&std::process::id().to_string()) && said.contains("--state-dir"), "{said}");
    create(&channel, lease(60), "0").await.unwrap();
    first.stop().await;
    let mut second = Daemon::start(second).await.unwrap();
    second.ready().await.unwrap();
    assert_eq!(list(&over_unix(second.uds().unwrap()).await).await.len(), 1);
    second.stop().await;
}

/// A daemon as a process of its own, under a limit on the size of its files: what is written beyond it fails as on a full
/// disk.
struct Limited(std::process::Child);

impl Limited {
    async fn start(folder: &Path, blocks: u64) -> (Self, Channel) {
        let script = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$@\"");
        let program = Command::new("sh")
            .args(["-c", &script, "sh", PROGRAM, "--config", "none", "--no-tcp", "--log", "off"])
            .args(HOST)
            .arg("--uds")
            .arg(folder.join("berthd.sock"))
            .arg("--state-dir")
            .arg(folder.join("state"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut program = Self(program);
        let begun = Instant::now();
        loop {
            assert!(program.0.try_wait().unwrap().is_none(), "it ended");
            assert!(begun.elapsed() < Duration::from_secs(30), "it does not serve");
            tokio::time::sleep(Duration::from_millis(10)).await;
            let Some(channel) = try_unix(&folder.join("berthd.sock")).await else { continue };
            let health = HealthClient::new(channel.clone()).check(HealthCheckRequest::default()).await;
            if health.is_ok_and(|health| health.into_inner().status() == ServingStatus::Serving) {
                return (program, channel);
            }
        }
    }

    fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Limited {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn on_a_full_disk_nothing_acknowledged_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    // Room for the lock and nothing else.
    let (mut program, channel) = Limited::start(folder.path(), 8).await;
    is_degraded(&channel, "STORE_FAILS", Code::Unavailable).await;
    program.kill();
    assert!(!store(folder.path()).exists(), "half of a store was left");

    let (mut program, channel) = Limited::start(folder.path(), 2_000).await;
    assert!(serves_holds(&channel).await);
    let labels: std::collections::BTreeMap<String, String> =
        (0..16).map(|key| (format!("{key:0>250}"), "x".repeat(256))).collect();
    let refused = async {
        loop {
            let spec = v1::HoldSpec { labels: labels.clone(), ..lease(3600) };
            if let Err(status) = create(&channel, spec, "0").await {
                return status;
            }
        }
    };
    let status = tokio::time::timeout(Duration::from_secs(60), refused).await.unwrap();
    assert_eq!(status.code(), Code::Unavailable, "{status:?}");
    let held = list(&channel).await;
    assert!(!held.is_empty());
    // What is held counts: so many at most, beside CPUs that nobody holds.
    let request = v1::PredictRequest { tasks: 1, allowed: "0".to_owned(), ..Default::default() };
    let answer = placement(&channel).predict(request).await.unwrap().into_inner();
    assert_eq!(answer.prediction.unwrap().cpus[0].before as usize, held.len().min(4));
    program.kill();

    // The disk is full still: it starts, and knows what is held.
    let (mut program, channel) = Limited::start(folder.path(), 2_000).await;
    assert_eq!(ids(&list(&channel).await), ids(&held));
    program.kill();
    // There is room again.
    let (_program, channel) = Limited::start(folder.path(), 1_000_000).await;
    assert!(serves_holds(&channel).await);
    assert_eq!(ids(&list(&channel).await), ids(&held));
    create(&channel, lease(60), "1").await.unwrap();
    let request = v1::ReleaseHoldRequest { id: held[0].id.clone(), uid: None };
    holds(&channel).release_hold(request).await.unwrap();
    assert_eq!(list(&channel).await.len(), held.len());
}

fn ledger(arguments: &[&str], state: &Path) -> Output {
    Command::new(PROGRAM)
        .args(["ledger", "--config", "none"])
        .args(arguments)
        .arg("--state-dir")
        .arg(state)
        .output()
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_program_that_looks_after_a_store() {
    let (folder, all) = with_holds().await;
    let state = folder.path().join("state");
    let text = |output: &Output| {
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
    };
    let checked = ledger(&["check"], &state);
    assert!(checked.status.success() && text(&checked).contains("holds in force  8"), "{}", text(&checked));
    let exported = ledger(&["export"], &state);
    assert!(exported.status.success(), "{}", text(&exported));
    let export = folder.path().join("export");
    fs::write(&export, &exported.stdout).unwrap();
    let export = export.to_str().unwrap();
    let refused = ledger(&["import", export], &state);
    assert!(!refused.status.success() && text(&refused).contains("move it away"), "{}", text(&refused));

    let other = tempfile::tempdir().unwrap();
    let imported = ledger(&["import", export], &other.path().join("state"));
    assert!(imported.status.success() && text(&imported).contains("8 holds"), "{}", text(&imported));
    let (daemon, channel) = daemon(other.path()).await;
    assert_eq!(ids(&list(&channel).await), ids(&all));
    // A request that comes again is known.
    let labels = all[0].labels.clone();
    let again = v1::HoldSpec { labels, request_id: "r0".to_owned(), ..lease(3600) };
    assert_eq!(create(&channel, again, "0").await.unwrap().id, all[0].id);
    let busy = ledger(&["check"], &other.path().join("state"));
    assert!(!busy.status.success() && text(&busy).contains("another berthd"), "{}", text(&busy));
    daemon.stop().await;

    let damaged = fs::read(store(folder.path())).unwrap();
    fs::write(store(folder.path()), &damaged[..damaged.len() / 3]).unwrap();
    let checked = ledger(&["check"], &state);
    assert_eq!(checked.status.code(), Some(1), "{}", text(&checked));
    assert_eq!(ledger(&["mend"], &state).status.code(), Some(64));
}

/// To look at a store makes and changes nothing, not even where there is none.
#[tokio::test(flavor = "multi_thread")]
async fn looking_at_a_store_makes_nothing() {
    let (folder, _) = with_holds().await;
    let empty = folder.path().join("empty");
    fs::create_dir(&empty).unwrap();
    for absent in [empty.clone(), folder.path().join("absent")] {
        for action in ["check", "export"] {
            let looked = ledger(&[action], &absent);
            let said = String::from_utf8_lossy(&looked.stderr);
            assert_eq!((looked.status.code(), said.contains("there is no store")), (Some(1), true), "{said}");
        }
    }
    assert!(!folder.path().join("absent").exists());
    assert_eq!(fs::read_dir(&empty).unwrap().count(), 0);
    // Nor where the lock is gone.
    let state = folder.path().join("state");
    fs::remove_file(state.join("lock")).unwrap();
    for action in ["check", "export"] {
        assert!(ledger(&[action], &state).status.success());
    }
    let names: Vec<_> = fs::read_dir(&state).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["holds.redb"]);
}

#[test]
fn a_wrong_configuration_of_the_program_that_looks() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("berthd.toml");
    fs::write(&file, "[limits]\nmax_requests = \"many\"\n[nothing]\nof = 1\n").unwrap();
    let run = |before: &[&str]| {
        let mut command = Command::new(PROGRAM);
        command.args(before).arg("--config").arg(&file).output().unwrap()
    };
    let (looked, served) = (run(&["ledger", "check"]), run(&[]));
    assert_eq!((looked.status.code(), served.status.code()), (Some(64), Some(64)));
    assert_eq!(String::from_utf8_lossy(&looked.stderr), String::from_utf8_lossy(&served.stderr));
}

/// Root makes a store for berthd, which is another user.
#[tokio::test(flavor = "multi_thread")]
async fn an_imported_store_is_its_folders_owners() {
    if !rustix::process::geteuid().is_root() {
        return eprintln!("skipped: only root can make files that are another's");
    }
    let (folder, _) = with_holds().await;
    let export = folder.path().join("export");
    fs::write(&export, ledger(&["export"], &folder.path().join("state")).stdout).unwrap();
    let theirs = folder.path().join("theirs");
    fs::create_dir(&theirs).unwrap();
    chown(&theirs, Some(65_534), Some(65_533)).unwrap();
    let imported = ledger(&["import", export.to_str().unwrap()], &theirs);
    assert!(imported.status.success(), "{}", String::from_utf8_lossy(&imported.stderr));
    for name in ["lock", "holds.redb"] {
        let about = fs::metadata(theirs.join(name)).unwrap();
        assert_eq!((about.uid(), about.gid(), about.mode() & 0o777), (65_534, 65_533, 0o600), "{name}");
    }
    // Also the lock alone, where nothing is made.
    for name in ["lock", "holds.redb"] {
        fs::remove_file(theirs.join(name)).unwrap();
    }
    assert!(!ledger(&["import", "/dev/null"], &theirs).status.success());
    assert_eq!(fs::metadata(theirs.join("lock")).unwrap().uid(), 65_534);
    // What that user puts in place of the lock leads nowhere.
    let (lock, other) = (theirs.join("lock"), folder.path().join("other"));
    fs::write(&other, "theirs not\n").unwrap();
    fs::remove_file(&lock).unwrap();
    symlink(&other, &lock).unwrap();
    ledger(&["check"], &theirs);
    assert!(!ledger(&["import", export.to_str().unwrap()], &theirs).status.success());
    assert_eq!(fs::read_to_string(&other).unwrap(), "theirs not\n");
    assert_eq!(fs::metadata(&other).unwrap().uid(), 0);
}
