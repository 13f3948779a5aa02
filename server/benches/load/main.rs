//! `make load`: a real berthd under load, over its unix socket, with figures beside `Health/Check` in the same run.
//!
//! Each phase prints what was measured, what was promised and whether that was kept. Rates are of two processes that
//! share the machine: the ratios say more than the rates.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a measurement that cannot go on ends"
)]

mod ask;
mod drive;
mod report;
mod server;

use ask::Ask;
use clap::Parser;
use drive::{Closed, Open};
use report::Report;
use server::Server;
use std::{process::ExitCode, time::Duration};

/// Measures berthd.
#[derive(Debug, Parser)]
struct Args {
    /// Seconds of each measurement.
    #[arg(long, default_value_t = 3)]
    seconds: u64,
    /// Rounds of them; the median counts.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Seconds at twice the peak.
    #[arg(long, default_value_t = 60)]
    overload: u64,
    /// Requests before the resident memory is read.
    #[arg(long, default_value_t = 100_000)]
    requests: u64,
    /// Given by cargo.
    #[arg(long, hide = true)]
    bench: bool,
}

/// 256 CPUs in two packages, under a kernel that is known: as on a host where it can be told.
const HOST_256: [&str; 4] =
    ["--topology-synthetic", "pack:2 [numa] l3:8 core:8 pu:2(indexes=2*128:128*1)", "--kernel", "6.12.95"];
/// 640 CPUs, for the start and for large predictions.
const TURIN: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../testdata/topologies/seeds/turin-2s-l3-as-numa.xml");

fn main() -> ExitCode {
    let args = Args::parse();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let report = runtime.block_on(measure(&args));
    report.print_end()
}

async fn measure(args: &Args) -> Report {
    let mut report = Report::default();
    let turin = ["--topology-xml", TURIN, "--kernel", "6.12.95"];
    start(&mut report, &turin).await;
    small(&mut report, args).await;
    large(&mut report, args, &turin).await;
    report
}

/// From the start of the program to SERVING.
async fn start(report: &mut Report, turin: &[&str]) {
    report.title("Start to SERVING, 640 CPUs from XML");
    let mut times = Vec::new();
    for _ in 0..7 {
        let server = Server::start(turin).await;
        times.push(server.took.as_secs_f64() * 1e3);
    }
    times.sort_by(f64::total_cmp);
    let text = format!("median {:.0} ms of 7, from {:.0} to {:.0}", times[3], times[0], times[6]);
    report.bound("start", &text, times[3] <= 300.0, "≤ 300 ms");
}

/// Many small questions.
async fn small(report: &mut Report, args: &Args) {
    let server = Server::start(&HOST_256).await;
    report.title(
        "Advise, and Advise with hold + ReleaseHold; 8 tasks, distinct masks, 256 CPUs; beside Health/Check",
    );
    let closed = Closed { time: Duration::from_secs(args.seconds), rounds: args.rounds };
    let rates = closed.beside(&server, &[Ask::Health, Ask::Advise, Ask::Hold]).await;
    rates.print();
    let [health, advise, hold] = &rates.0[..] else { unreachable!() };
    for (name, of) in [("advise", advise), ("hold", hold)] {
        let (raw, apart) = (of.rate / health.rate, health.carrying_us / of.carrying_us);
        let text =
            format!("{name}: {raw:.3} × Health/Check, each at its own peak; {apart:.2} × but for computing");
        report.say(&text);
    }
    // At its own peak dozens of Health/Check share one wake-up of a thread, which costs more than all else of a request;
    // what computes for longer than that cannot share it. So what carrying costs is compared at the same rate.
    for (ask, peak, least) in [(Ask::Advise, advise.rate, 0.5), (Ask::Hold, hold.rate, 0.3)] {
        let half = Open { rate: peak / 2.0, time: closed.time };
        let (health, carrying) =
            (half.carrying_us(&server, Ask::Health).await, half.carrying_us(&server, ask).await);
        let text = format!(
            "{:.2} × Health/Check, computing apart: {health:.0} and {carrying:.0} µs of CPU at {:.0} requests a second",
            health / carrying,
            half.rate
        );
        report.bound(&ask.to_string(), &text, health / carrying >= least, &format!("≥ {least} ×"));
    }

    report.title("At half of the peak");
    let half = Open { rate: advise.rate / 2.0, time: Duration::from_secs(args.seconds.max(5)) };
    let ran = half.run(&server, Ask::Advise).await;
    ran.print();
    report.bound(
        "latency",
        &format!("p99 {:.2} ms at {:.0} a second", ran.p(0.99), half.rate),
        ran.p(0.99) <= 5.0,
        "≤ 5 ms",
    );

    report.title(&format!("At twice the peak for {} s", args.overload));
    let twice = Open { rate: advise.rate * 2.0, time: Duration::from_secs(args.overload) };
    // What the first overload needs is there before it is measured.
    Open { time: Duration::from_secs(3), ..twice }.run(&server, Ask::Advise).await;
    let before = server.resident_mib();
    let mut series = Vec::new();
    let sampled = async {
        loop {
            series.push(format!("{:.1}", server.resident_mib()));
            tokio::time::sleep(twice.time / 6).await;
        }
    };
    let ran = tokio::select! {
        ran = twice.run(&server, Ask::Advise) => ran,
        () = sampled => unreachable!(),
    };
    let after = server.resident_mib();
    ran.print();
    println!("  resident meanwhile, MiB: {}", series.join(" "));
    let sheds = format!("{} answered, {} shed, {} failed otherwise", ran.answered(), ran.shed, ran.failed);
    let offered = ran.answered() + ran.shed;
    // Else less was asked than twice of what it can answer.
    let kept = ran.failed == 0 && ran.shed > 0 && ran.held_back < offered / 10;
    report.bound("overload", &sheds, kept, "nothing but answers and sheds, and some of each");
    let memory = format!("resident {before:.1} MiB before, {after:.1} MiB after");
    report.bound("memory", &memory, after - before <= 2.0, "flat: within 2 MiB");
}

/// Large questions, and what they leave in memory.
async fn large(report: &mut Report, args: &Args, turin: &[&str]) {
    let server = Server::start(turin).await;
    report.title("Predict, 176 tasks, 640 CPUs, beside Health/Check");
    let closed = Closed { time: Duration::from_secs(args.seconds), rounds: args.rounds };
    let rates = closed.beside(&server, &[Ask::Health, Ask::Predict]).await;
    rates.print();
    let ratio = rates.0[1].rate / rates.0[0].rate;
    let apart = rates.0[0].carrying_us / rates.0[1].carrying_us;
    report.say(&format!("predict: {ratio:.3} × Health/Check; {apart:.2} × with the computing apart"));

    report.title(&format!("Resident after {} requests of every kind, 640 CPUs", args.requests));
    let mut asked = 0;
    while asked < args.requests {
        asked += closed.once(&server, Ask::Mixed).await.requests;
    }
    let resident = server.resident_mib();
    report.bound(
        "resident",
        &format!("{resident:.1} MiB after {asked} requests"),
        resident <= 32.0,
        "≤ 32 MiB",
    );
}
