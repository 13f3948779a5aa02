//! The Berth daemon.

use anyhow::Context as _;
use berth_server::{
    Daemon, Error,
    config::{Config, Stop},
    ingest::child,
    telemetry,
};
use std::process::ExitCode;
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
    let config = match Config::try_from_args(arguments) {
        Ok(config) => config,
        Err(Stop::Said(said)) => {
            let wrong = said.use_stderr();
            let _ = said.print();
            return if wrong { ExitCode::from(USAGE) } else { ExitCode::SUCCESS };
        }
        Err(Stop::Invalid(invalid)) => {
            invalid.0.iter().for_each(|problem| eprintln!("berthd: {problem}"));
            return ExitCode::from(USAGE);
        }
    };
    telemetry::start(&config.log);
    match run(config) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("berthd: {error:#}");
            ExitCode::from(status(&error))
        }
    }
}

fn status(error: &anyhow::Error) -> u8 {
    match error.downcast_ref::<Error>() {
        Some(Error::Described { .. }) => USAGE,
        Some(Error::Listen(_)) => UNAVAILABLE,
        _ => 1,
    }
}

/// Runs the daemon. Computations that are still going on when it has stopped are not waited for.
fn run(config: Config) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Runtime::new().context("no runtime")?;
    let ended = runtime.block_on(serve(config));
    runtime.shutdown_background();
    ended
}

async fn serve(config: Config) -> anyhow::Result<()> {
    let mut terminate = signal(SignalKind::terminate()).context("signals cannot be waited for")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("signals cannot be waited for")?;
    let mut daemon = Daemon::start(config).await?;
    let told = async {
        tokio::select! {
            _ = terminate.recv() => "SIGTERM",
            _ = interrupt.recv() => "SIGINT",
        }
    };
    let run = async {
        daemon.ready().await?;
        daemon.failed().await
    };
    let signal = tokio::select! {
        signal = told => signal,
        ended = run => return ended.context("berthd ended by itself"),
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
