//! The Berth daemon.

use anyhow::Context as _;
use berth_server::{
    Daemon, Error, ListenError, check,
    config::{Asked, Config, Invalid, Stop},
    ingest::child,
    ledger, telemetry,
};
use rustix::process::Resource;
use std::{ffi::OsString, io::Write as _, process::ExitCode};
use tokio::signal::unix::{SignalKind, signal};

/// Told something that cannot be (EX_USAGE).
const USAGE: u8 = 64;
/// Could not listen (EX_UNAVAILABLE).
const UNAVAILABLE: u8 = 69;

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().collect();
    if arguments.get(1).is_some_and(|first| first == child::ARGUMENT) {
        return child::main(arguments.get(2).and_then(|kind| kind.to_str()));
    }
    if arguments.get(1).is_some_and(|first| first == ledger::NAME) {
        return exit(ledger::run(&arguments));
    }
    let ended = match Asked::try_from_args(&arguments) {
        Ok(Asked::Serve(config)) => {
            raise_descriptors();
            telemetry::start(&config.sections.log);
            run(serve(*config, arguments))
        }
        Ok(Asked::Check(config)) => run(async move { Ok(check(&config).await?) }),
        Ok(Asked::Print(text)) => {
            std::io::stdout().write_all(text.as_bytes()).context("stdout cannot be written")
        }
        Err(Stop::Said(said)) => {
            let wrong = said.use_stderr();
            let _ = said.print();
            return if wrong { ExitCode::from(USAGE) } else { ExitCode::SUCCESS };
        }
        Err(Stop::Invalid(invalid)) => Err(invalid.into()),
    };
    exit(ended)
}

fn exit(ended: anyhow::Result<()>) -> ExitCode {
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            if let Some(said) = error.downcast_ref::<clap::Error>() {
                let _ = said.print();
                return ExitCode::from(USAGE);
            }
            if let Some(invalid) = error.downcast_ref::<Invalid>() {
                invalid.0.iter().for_each(|problem| eprintln!("berthd: {problem}"));
                return ExitCode::from(USAGE);
            }
            eprintln!("berthd: {error:#}");
            ExitCode::from(status(&error))
        }
    }
}

fn status(error: &anyhow::Error) -> u8 {
    match error.downcast_ref::<Error>() {
        Some(Error::Described { .. }) => USAGE,
        Some(Error::Listen(ListenError::Tls { .. })) => USAGE,
        Some(Error::Listen(_) | Error::Locked(_)) => UNAVAILABLE,
        _ => 1,
    }
}

/// Runs to the end. Computations that are still going on then are not waited for.
fn run(all: impl Future<Output = anyhow::Result<()>>) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Runtime::new().context("no runtime")?;
    let ended = runtime.block_on(all);
    runtime.shutdown_background();
    ended
}

async fn serve(config: Config, arguments: Vec<OsString>) -> anyhow::Result<()> {
    let wait_for = |kind| signal(kind).context("signals cannot be waited for");
    let mut terminate = wait_for(SignalKind::terminate())?;
    let mut interrupt = wait_for(SignalKind::interrupt())?;
    let mut hangup = wait_for(SignalKind::hangup())?;
    // A description may take long to read.
    let mut daemon = tokio::select! {
        started = Daemon::start(config) => started?,
        _ = terminate.recv() => return Ok(()),
        _ = interrupt.recv() => return Ok(()),
    };
    let signal = loop {
        let run = async {
            daemon.ready().await?;
            daemon.failed().await
        };
        tokio::select! {
            _ = terminate.recv() => break "SIGTERM",
            _ = interrupt.recv() => break "SIGINT",
            _ = hangup.recv() => {}
            ended = run => return ended.context("berthd ended by itself"),
        }
        daemon.reload(Config::try_from_args(&arguments));
    };
    tracing::info!(signal, "stopping");
    tokio::select! {
        () = daemon.stop() => {}
        // Told again: at once.
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    Ok(())
}

/// Each connection needs a file descriptor, of which shells and service managers give 1024 at first. If more cannot be
/// had, connections beyond them wait until others end.
fn raise_descriptors() {
    let mut limit = rustix::process::getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    let _ = rustix::process::setrlimit(Resource::Nofile, limit);
}
