//! What it costs to measure the load: with 20,000 live threads on this host, and, by a calculation that is printed, with
//! as many on a host of 640 CPUs. `make load-cost` runs it.
//!
//! CPU time is that of the whole daemon, kernel time included, while nobody asks it anything.

#![allow(clippy::print_stdout, reason = "it is what this program is for")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a measurement that cannot go on has failed")]

use berth_server::{Daemon, config::Config, ingest::load::stat};
use std::{
    fs,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

const THREADS: usize = 20_000;
const PROCESSES: usize = 10;
const CPUS: usize = 640;
/// The budget that is kept to, as a share of one CPU: the default of `--load-cost-limit`.
const LIMIT: f64 = 0.005;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    match arguments.get(1).map(String::as_str) {
        Some("threads") => return threads(arguments[2].parse().unwrap(), &arguments[3]),
        // The daemon starts this program to read topologies.
        Some(first) if first == berth_server::ingest::child::ARGUMENT => {
            berth_server::ingest::child::main(arguments.get(2).map(String::as_str));
            return;
        }
        _ => {}
    }
    let seconds: u64 = arguments.get(1).map_or(120, |text| text.parse().expect("seconds"));
    let time = Duration::from_secs(seconds);
    println!(
        "CPU time of an idle berthd over {seconds} s each, as a share of one CPU; the limit is {:.2} %.",
        LIMIT * 100.0
    );
    let mut kept = true;
    let none = this_host(time, None);
    println!("  {:>6.3} %  with the host's own threads ({})", none * 100.0, live_threads());
    for (kind, what) in [
        ("asleep", "asleep but for one thread that runs"),
        ("restless", "asleep, and one thread of each process wakes 20 times a second"),
    ] {
        let share = this_host(time, Some(kind));
        kept &= share <= LIMIT;
        let verdict = if share <= LIMIT { "kept" } else { "EXCEEDED" };
        println!(
            "  {:>6.3} %  with {THREADS} more in {PROCESSES} processes, {what}: {verdict}",
            share * 100.0
        );
    }
    kept &= large_host(seconds);
    if !kept {
        std::process::exit(1);
    }
}

/// The daemon on this host, with more threads.
fn this_host(time: Duration, kind: Option<&str>) -> f64 {
    let mut helpers: Vec<Child> = kind.map(helpers).unwrap_or_default();
    let folder = tempfile::tempdir().unwrap();
    let ready = folder.path().join("ready");
    let program = std::env::current_exe().unwrap().ancestors().nth(2).unwrap().join("berthd");
    let mut daemon = Command::new(program)
        .args(["--config", "none", "--tcp", "127.0.0.1:0", "--log", "warn", "--uds"])
        .arg(folder.path().join("socket"))
        .arg("--state-dir")
        .arg(folder.path().join("state"))
        .arg("--ready-file")
        .arg(&ready)
        .spawn()
        .expect("berthd has to be built in the same folder");
    while !ready.exists() {
        assert!(daemon.try_wait().unwrap().is_none(), "berthd ended");
        std::thread::sleep(Duration::from_millis(10));
    }
    let (begun, before) = (Instant::now(), cpu_time(daemon.id()));
    std::thread::sleep(time);
    let share = (cpu_time(daemon.id()) - before) / begun.elapsed().as_secs_f64();
    for child in helpers.iter_mut().chain([&mut daemon]) {
        let _ = child.kill();
        let _ = child.wait();
    }
    share
}

/// Processes with many threads, once all are there.
fn helpers(kind: &str) -> Vec<Child> {
    let start = |i: usize| {
        let kind = if kind == "asleep" && i == 0 { "runs" } else { kind };
        let threads = (THREADS / PROCESSES).to_string();
        let mut command = Command::new(std::env::current_exe().unwrap());
        let mut child = command.args(["threads", &threads, kind]).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        child
    };
    (0..PROCESSES).map(start).collect()
}

/// Is such a process.
fn threads(threads: usize, kind: &str) {
    for _ in 1..threads {
        let sleeper = std::thread::Builder::new().stack_size(16 << 10);
        sleeper
            .spawn(|| {
                loop {
                    std::thread::park()
                }
            })
            .expect("no more threads can be started");
    }
    println!("ready");
    loop {
        match kind {
            "runs" => std::hint::spin_loop(),
            "restless" => {
                let begun = Instant::now();
                while begun.elapsed() < Duration::from_millis(1) {}
                std::thread::sleep(Duration::from_millis(50));
            }
            _ => std::thread::park(),
        }
    }
}

/// What each sample costs on a large host: our own part measured on a `/proc/stat` of that size, the kernel's part
/// calculated from what it needs for this host's.
fn large_host(seconds: u64) -> bool {
    let here = fs::read_to_string("/proc/stat").unwrap();
    let cpus = here.lines().filter(|line| line.starts_with("cpu")).count() - 1;
    let root = tempfile::tempdir().unwrap();
    write_stat(root.path(), 1);
    let kernel = per_read(|| {
        fs::read_to_string("/proc/stat").unwrap();
    });
    // All of it is taken to grow with the CPUs, although a part does not.
    #[allow(clippy::cast_precision_loss, reason = "small numbers")]
    let kernel = kernel * CPUS as f64 / cpus as f64;
    let (sampler, others) = own_part(root.path(), seconds.min(20));
    let fixed = kernel + sampler + others;
    println!("Calculated for {CPUS} CPUs, each second:");
    println!(
        "  {:>6.3} %  /proc/stat, in the kernel ({cpus} CPUs here, times {CPUS}/{cpus})",
        kernel * 100.0
    );
    println!("  {:>6.3} %  the sampler with a file of {CPUS} CPUs", sampler * 100.0);
    println!("  {:>6.3} %  the other threads: publish, look after holds", others * 100.0);
    println!("  {:>6.3} %  in all; what is left to the limit pays for looks at threads", fixed * 100.0);
    let mut scanner = berth_server::ingest::load::scan::Scanner::new(Path::new("/"), 0);
    let helpers = helpers("restless");
    let before = cpu_time(std::process::id());
    for _ in 0..5 {
        scanner.scan().unwrap();
    }
    let scan = (cpu_time(std::process::id()) - before) / 5.0;
    for mut child in helpers {
        let _ = child.kill();
        let _ = child.wait();
    }
    // Of what is not for masks, nor left to the other threads.
    let pause = scan / (LIMIT * 0.7 - kernel - sampler).max(f64::EPSILON);
    println!(
        "  {:>6.1} ms for a look at {THREADS} threads that all have to be read: one each {pause:.0} s",
        scan * 1e3
    );
    // The sampler keeps to nine tenths, whatever a look costs.
    let kept = kernel + sampler < LIMIT * 0.7 && others <= LIMIT * 0.1;
    let verdict = if kept { "kept" } else { "EXCEEDED" };
    println!("The limit of {:.2} % is {verdict}.", LIMIT * 100.0);
    kept
}

/// CPU time for each second of a daemon in this process that reads the large file: of its sampler, and of its other
/// threads.
fn own_part(root: &Path, seconds: u64) -> (f64, f64) {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("socket");
    let arguments = ["berthd", "--config", "none", "--no-tcp", "--load-source", "estimate", "--uds"];
    let flags = ["--topology-synthetic", "pack:2 [numa] l3:20 core:8 pu:2", "--kernel", "6.12.95"];
    let arguments = arguments.into_iter().chain([socket.to_str().unwrap()]).chain(flags);
    let mut config = Config::try_from_args(arguments).unwrap();
    config.program = PathBuf::from("/proc/self/exe");
    config.root = root.to_owned();
    config.measure_load = true;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let (folder_of_stat, begun) = (root.to_owned(), Instant::now());
    // Its time is not the daemon's.
    let writer = std::thread::Builder::new().name("writer".to_owned());
    let writer = writer.spawn(move || {
        for step in 2..2 + seconds {
            write_stat(&folder_of_stat, step);
            std::thread::sleep(Duration::from_secs(1));
        }
    });
    let writer = writer.unwrap();
    runtime.block_on(async {
        let mut daemon = Daemon::start(config).await.unwrap();
        daemon.ready().await.unwrap();
        let (time, before) = (seconds.saturating_sub(begun.elapsed().as_secs() + 1), times());
        tokio::time::sleep(Duration::from_secs(time)).await;
        let after = times();
        daemon.stop().await;
        writer.join().unwrap();
        #[allow(clippy::cast_precision_loss, reason = "small numbers")]
        let time = time as f64;
        ((after.0 - before.0) / time, (after.1 - before.1) / time)
    })
}

/// Seconds of CPU time of the sampler of this process, and of its other threads but the writer.
fn times() -> (f64, f64) {
    let (mut sampler, mut others) = (0.0, 0.0);
    for thread in fs::read_dir("/proc/self/task").unwrap() {
        let thread = thread.unwrap().path();
        let read = |file: &str| fs::read_to_string(thread.join(file)).unwrap_or_default();
        let used = read("schedstat").split(' ').next().and_then(|ns| ns.parse::<f64>().ok()).unwrap_or(0.0);
        match read("comm").trim() {
            "sampler" => sampler += used / 1e9,
            "writer" => {}
            _ => others += used / 1e9,
        }
    }
    (sampler, others)
}

fn write_stat(root: &Path, step: u64) {
    let proc = root.join("proc");
    fs::create_dir_all(&proc).unwrap();
    let line = |cpu: usize| {
        let busy = step * 100 * u64::from(cpu.is_multiple_of(3)) + u64::try_from(cpu).unwrap();
        format!("cpu{cpu} {busy} 0 {step} {} 0 0 {step} 0 0 0\n", step * 200 - busy.min(step * 100))
    };
    let text: String = (0..CPUS).map(line).collect();
    fs::write(proc.join("new"), text).unwrap();
    fs::rename(proc.join("new"), proc.join("stat")).unwrap();
    assert_eq!(stat::read(root).unwrap().len(), CPUS);
}

/// Seconds of CPU time.
fn per_read(read: impl Fn()) -> f64 {
    let before = cpu_time(std::process::id());
    let mut reads = 0_u32;
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(2) {
        read();
        reads += 1;
    }
    (cpu_time(std::process::id()) - before) / f64::from(reads)
}

/// Seconds of CPU time that all threads of a process have used so far.
fn cpu_time(pid: u32) -> f64 {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let words: Vec<&str> = text.rsplit_once(')').unwrap().1.split_whitespace().collect();
    let ticks: f64 = words[11].parse::<f64>().unwrap() + words[12].parse::<f64>().unwrap();
    ticks / 100.0
}

fn live_threads() -> String {
    let text = fs::read_to_string("/proc/loadavg").unwrap();
    text.split_whitespace().nth(3).and_then(|word| word.split_once('/')).unwrap().1.to_owned()
}
