//! The plugin's life: connection after connection, until it is told to stop.

use std::time::Duration;

use tokio::{
    signal::unix::{SignalKind, signal},
    time::sleep,
};

use super::{
    counts::Counts,
    given,
    keeper::Keeper,
    manager::Manager,
    plugin::Plugin,
    say,
    session::{self, End, Name},
};
use crate::{Error, cli::KubeNri, command::Asker, kube::metrics::Admin};

/// The pauses before the runtime is dialled again: the first, and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));

/// Runs until a signal ends it.
///
/// # Errors
///
/// What it needs from the start cannot be had.
pub(super) async fn run(args: &KubeNri, asker: &Asker) -> Result<(), Error> {
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate()), signal(SignalKind::interrupt()));
    let admin = Admin::bind(args.metrics.as_ref()).await?;
    let (counts, admin) = admin.with(Counts::new);
    if let Some(Ok(address)) = admin.address() {
        say!("what is counted is told at http://{address}/metrics");
    }
    let keeper = Keeper::new(asker.connection.clone());
    // A pod waits: what comes too late needs no answer.
    let hurried = Keeper::new(asker.connection.within(asker.connection.limit().min(args.within)));
    let manager_state = args.node.cpu_manager_state.clone();
    let manager = Manager::read(&manager_state);
    counts.policy(manager);
    say!("CPU manager policy {manager}: {}", manager.meaning());
    let mut plugin = Plugin::new(hurried, manager_state.clone(), args.within, counts.clone());
    let name = Name { index: args.index.clone(), name: args.name.clone() };
    let ready = {
        let (counts, manager_state) = (counts.clone(), manager_state.clone());
        move || readiness(&counts, Manager::read(&manager_state))
    };
    tokio::select! {
        () = connections(args, &name, &mut plugin, &counts) => {}
        () = given::follow(keeper, &args.pod_resources, &manager_state, &counts) => {}
        () = admin.serve(ready) => {}
        () = received(&mut terminate) => say!("told to stop: containers keep their CPUs"),
        () = received(&mut interrupt) => say!("told to stop: containers keep their CPUs"),
    }
    Ok(())
}

async fn received(signal: &mut std::io::Result<tokio::signal::unix::Signal>) {
    match signal {
        Ok(signal) => _ = signal.recv().await,
        Err(_) => std::future::pending().await,
    }
}

/// Whether the plugin is in the runtime, in a line, and what else there is to know.
fn readiness(counts: &Counts, manager: Manager) -> Result<String, String> {
    let said = format!("CPU manager policy {manager}: {}\n", manager.meaning());
    match counts.connected.get() {
        0 => Err(format!("no runtime has taken the plugin in\n{said}")),
        _ => Ok(format!("a runtime has taken the plugin in\n{said}")),
    }
}

/// Connects again and again, each time from the start.
async fn connections(args: &KubeNri, name: &Name, plugin: &mut Plugin, counts: &Counts) {
    let (first, longest) = PAUSES;
    let (mut pause, mut said) = (first, String::new());
    loop {
        let end = session::run(&args.node.nri_socket, name, plugin).await;
        counts.connected.set(0);
        if plugin.is_synchronized() {
            (pause, said) = (first, String::new());
        }
        let now = end.to_string();
        if now != said {
            say!("{now}; tried again");
            said = now;
        }
        // Who is refused will be so at once again.
        if matches!(end, End::Refused(_)) {
            pause = longest;
        }
        sleep(pause).await;
        pause = (pause * 2).min(longest);
    }
}
