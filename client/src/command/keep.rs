//! `berth hold … -- COMMAND`: CPUs are kept while a command runs.

use std::{ffi::OsStr, time::Duration};

use berth_proto::v1::{
    AdoptHoldRequest, Hold as Held, Owner, Process, ReleaseHoldRequest, RenewHoldRequest,
    hold_service_client::HoldServiceClient, owner,
};
use tokio::time::{MissedTickBehavior, interval};

use super::{Answer, Asker, hold};
use crate::{
    Error, Exit,
    address::Address,
    child::{self, Running},
    cli::Hold,
    out,
};

/// Holds, runs, lets go. The command's own output is the only one on stdout.
pub(super) async fn while_running(
    args: &Hold,
    program: &OsStr,
    rest: &[impl AsRef<OsStr>],
    asker: &Asker,
) -> Result<Answer, Error> {
    let made = match hold::make(args, asker).await {
        Ok(made) => made,
        Err(error) if args.or_run => {
            out::complain(&error, asker.talk_in_colour);
            out::say("berth: running the command without a hold");
            let mut running = Running::start(program, rest, [])?;
            return Ok(ended(running.wait().await.map_err(Error::Runtime)?));
        }
        Err(error) => return Err(Error::NotHeld(Box::new(error))),
    };
    asker.warn(&made.warnings);
    let held = Kept { hold: made.hold, ttl: made.ttl, asker };
    let exit = held.run(args, program, rest).await;
    held.release().await;
    exit.map(ended)
}

/// A hold for a command, and whom to tell of it.
struct Kept<'a> {
    hold: Held,
    ttl: Option<Duration>,
    asker: &'a Asker,
}

impl Kept<'_> {
    async fn run(&self, args: &Hold, program: &OsStr, rest: &[impl AsRef<OsStr>]) -> Result<Exit, Error> {
        if self.asker.page.verbose {
            out::say(&format!("berth: CPUs {} are held ({})", self.hold.cpus, self.hold.id));
        }
        if args.bind {
            match child::bind(&self.hold.cpus) {
                Err(error) if args.or_run => _ = self.asker.complain(&error),
                bound => bound?,
            }
        }
        let mut running = Running::start(program, rest, self.variables())?;
        self.hand_over(&running).await;
        tokio::select! {
            exit = running.wait() => exit.map_err(Error::Runtime),
            never = self.keep_alive() => match never {},
        }
    }

    fn variables(&self) -> [(&'static str, String); 3] {
        [
            ("BERTH_CPUS", self.hold.cpus.clone()),
            ("BERTH_MEMORY_NODES", self.hold.memory_nodes.clone()),
            ("BERTH_HOLD", self.hold.id.clone()),
        ]
    }

    /// Makes the command the owner: should this process be killed alone, its CPUs stay held as long as it runs.
    async fn hand_over(&self, running: &Running) {
        let Some(pid) = running.pid() else { return };
        let Some(start_time) = child::start_time(pid) else { return };
        if !matches!(self.asker.connection.address(), Address::Unix(_)) {
            return;
        }
        let owner = Owner { owner: Some(owner::Owner::Process(Process { pid, start_time })) };
        let request = AdoptHoldRequest {
            id: self.hold.id.clone(),
            owner: Some(owner),
            keep_expiry: true,
            ..AdoptHoldRequest::default()
        };
        let adopted = self
            .asker
            .connection
            .ask(request, async |channel, request| HoldServiceClient::new(channel).adopt_hold(request).await)
            .await;
        // It may have ended already, or run as another user: then this process stays the owner.
        if let (Err(error), true) = (adopted, self.asker.page.verbose) {
            out::say(&format!("berth: the hold stays with this process: {error}"));
        }
    }

    /// Renews the hold as long as this is waited for, if it has an expiry.
    async fn keep_alive(&self) -> std::convert::Infallible {
        let Some(ttl) = self.ttl.filter(|_| self.hold.expires_at.is_some()) else {
            return std::future::pending().await;
        };
        let mut clock = interval(ttl / 3);
        clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // The first tick is at once, and it has just been made.
        clock.tick().await;
        let mut told = false;
        loop {
            clock.tick().await;
            let request = RenewHoldRequest {
                id: self.hold.id.clone(),
                ttl: ttl.try_into().ok(),
                ..RenewHoldRequest::default()
            };
            let renewed = self
                .asker
                .connection
                .ask(request, async |channel, request| {
                    HoldServiceClient::new(channel).renew_hold(request).await
                })
                .await;
            match renewed {
                Ok(_) => told = false,
                Err(error) if !told => {
                    out::say(&format!("berth: the hold cannot be renewed, and ends if that lasts: {error}"));
                    told = true;
                }
                Err(_) => {}
            }
        }
    }

    async fn release(&self) {
        let request = ReleaseHoldRequest { id: self.hold.id.clone(), ..ReleaseHoldRequest::default() };
        let released = self
            .asker
            .connection
            .ask(request, async |channel, request| {
                HoldServiceClient::new(channel).release_hold(request).await
            })
            .await;
        if let Err(error) = released {
            let end = if self.hold.expires_at.is_some() { "its time is over" } else { "its process is gone" };
            out::say(&format!("berth: the hold was not released, and ends as {end}: {error}"));
        }
    }
}

fn ended(exit: Exit) -> Answer {
    Answer { document: String::new(), warnings: Vec::new(), exit, asked: false }
}
