//! Two ways to drive a server: as fast as it answers, and at a rate that does not care.

use super::{
    ask::{Ask, Clients},
    server::Server,
};
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::{sync::Semaphore, task::JoinSet};
use tonic::{Code, Status};
use tonic_types::StatusExt;

/// Connections. Callers on each wait for their answer before they ask again.
const CONNECTIONS: usize = 4;
/// The most that is asked and not answered at a time, at a rate. More than the server takes.
const MAX_OPEN: usize = 1024;

/// As fast as it answers.
#[derive(Clone, Copy)]
pub(crate) struct Closed {
    pub(crate) time: Duration,
    pub(crate) rounds: usize,
}

/// How fast that was.
pub(crate) struct Rate {
    pub(crate) ask: Ask,
    pub(crate) rate: f64,
    /// CPU time of client and server for one answer, but for computing it, in microseconds.
    pub(crate) carrying_us: f64,
    /// CPU time that computing one answer took, in microseconds.
    computing_us: f64,
    pub(crate) requests: u64,
}

pub(crate) struct Rates(pub(crate) Vec<Rate>);

impl Closed {
    /// Each kind in turn, several rounds, so that what else goes on meets all of them; the medians.
    pub(crate) async fn beside(self, server: &Server, asks: &[Ask]) -> Rates {
        let mut rounds: Vec<Vec<Rate>> = asks.iter().map(|_| Vec::new()).collect();
        for ask in asks {
            Self { time: Duration::from_millis(500), ..self }.once(server, *ask).await;
        }
        for _ in 0..self.rounds {
            for (ask, rounds) in asks.iter().zip(&mut rounds) {
                rounds.push(self.once(server, *ask).await);
            }
        }
        Rates(rounds.into_iter().map(median).collect())
    }

    pub(crate) async fn once(self, server: &Server, ask: Ask) -> Rate {
        let (computed, spent) = (server.computing().await, server.cpu());
        let number = Arc::new(AtomicU64::new(0));
        let mut callers = JoinSet::new();
        let begun = Instant::now();
        for _ in 0..CONNECTIONS {
            let clients = Clients::new(server.channel().await);
            for _ in 0..ask.callers() {
                let (mut clients, number) = (clients.clone(), Arc::clone(&number));
                callers.spawn(async move {
                    let mut n = number.fetch_add(1, Ordering::Relaxed);
                    while begun.elapsed() < self.time {
                        match clients.ask(ask, n).await {
                            Ok(()) => n = number.fetch_add(1, Ordering::Relaxed),
                            // More than it takes of one kind at a time: again, a little later.
                            Err(status) if status.code() == Code::Unavailable => {
                                tokio::time::sleep(Duration::from_millis(1)).await;
                            }
                            Err(status) => panic!("{status:?}"),
                        }
                    }
                });
            }
        }
        while let Some(caller) = callers.join_next().await {
            caller.unwrap();
        }
        let seconds = begun.elapsed().as_secs_f64();
        // Each caller has a number that it did not get to.
        let asked = number.load(Ordering::Relaxed).saturating_sub((CONNECTIONS * ask.callers()) as u64);
        let requests = asked * u64::from(ask.requests());
        let spent = server.cpu() - spent;
        let computing = server.computing().await - computed;
        #[allow(clippy::cast_precision_loss, reason = "small")]
        let asked = requests as f64;
        Rate {
            ask,
            rate: asked / seconds,
            carrying_us: (spent - computing) / asked * 1e6,
            computing_us: computing / asked * 1e6,
            requests,
        }
    }
}

fn median(mut rounds: Vec<Rate>) -> Rate {
    let requests = rounds.iter().map(|rate| rate.requests).sum();
    rounds.sort_by(|a, b| a.rate.total_cmp(&b.rate));
    Rate { requests, ..rounds.swap_remove(rounds.len() / 2) }
}

impl Rates {
    pub(crate) fn print(&self) {
        for Rate { ask, rate, computing_us, carrying_us, .. } in &self.0 {
            println!(
                "  {ask:12} {rate:>8.0} a second; CPU each: computing {computing_us:.0} µs, the rest {carrying_us:.0} µs"
            );
        }
    }
}

/// At a rate that does not care whether answers come.
#[derive(Clone, Copy)]
pub(crate) struct Open {
    /// Requests a second.
    pub(crate) rate: f64,
    pub(crate) time: Duration,
}

/// What became of it.
#[derive(Default)]
pub(crate) struct Ran {
    /// Milliseconds from when each was due to its answer, sorted.
    latencies: Vec<f64>,
    pub(crate) shed: usize,
    pub(crate) failed: usize,
    /// Not asked: so many were open.
    pub(crate) held_back: usize,
}

impl Open {
    /// CPU time of the server alone for one request, but for computing its answer, in microseconds.
    pub(crate) async fn carrying_us(self, server: &Server, ask: Ask) -> f64 {
        let (computed, spent) = (server.computing().await, server.own_cpu());
        let answered = self.run(server, ask).await.answered() * ask.requests() as usize;
        let carrying = server.own_cpu() - spent - (server.computing().await - computed);
        #[allow(clippy::cast_precision_loss, reason = "small")]
        let answered = answered as f64;
        carrying / answered * 1e6
    }

    pub(crate) async fn run(self, server: &Server, ask: Ask) -> Ran {
        let mut clients = Vec::new();
        for _ in 0..CONNECTIONS {
            clients.push(Clients::new(server.channel().await));
        }
        let free = Arc::new(Semaphore::new(MAX_OPEN));
        let mut asked = JoinSet::new();
        let mut ran = Ran::default();
        let begun = tokio::time::Instant::now();
        let mut ticks = tokio::time::interval(Duration::from_millis(1));
        let mut n: u64 = 0;
        let rate = self.rate / f64::from(ask.requests());
        while begun.elapsed() < self.time {
            ticks.tick().await;
            #[allow(clippy::cast_precision_loss, reason = "small")]
            while (n as f64) < begun.elapsed().as_secs_f64() * rate {
                let due = begun + Duration::from_secs_f64(n as f64 / rate);
                n += 1;
                let Ok(place) = Arc::clone(&free).try_acquire_owned() else {
                    ran.held_back += 1;
                    continue;
                };
                let index = usize::try_from(n).unwrap() % clients.len();
                let mut clients = clients[index].clone();
                asked.spawn(async move {
                    let answer = clients.ask(ask, n).await;
                    drop(place);
                    (answer, due.elapsed().as_secs_f64() * 1e3)
                });
            }
            while let Some(done) = asked.try_join_next() {
                ran.take(done.unwrap());
            }
        }
        while let Some(done) = asked.join_next().await {
            ran.take(done.unwrap());
        }
        ran.latencies.sort_by(f64::total_cmp);
        ran
    }
}

impl Ran {
    fn take(&mut self, (answer, latency): (Result<(), Status>, f64)) {
        match answer {
            Ok(()) => self.latencies.push(latency),
            // A shed says when to come again; a connection that breaks is unavailable too.
            Err(status)
                if status.code() == Code::Unavailable
                    && status.get_error_details().retry_info().is_some() =>
            {
                self.shed += 1;
            }
            Err(status) => {
                if self.failed == 0 {
                    println!("  the first failure: {status:?}");
                }
                self.failed += 1;
            }
        }
    }

    pub(crate) fn answered(&self) -> usize {
        self.latencies.len()
    }

    /// The latency that this part of the answers did not exceed, in milliseconds.
    pub(crate) fn p(&self, part: f64) -> f64 {
        #[allow(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "an index"
        )]
        let index = ((self.latencies.len().saturating_sub(1)) as f64 * part).round() as usize;
        self.latencies.get(index).copied().unwrap_or(f64::NAN)
    }

    pub(crate) fn print(&self) {
        println!(
            "  answered {}, p50 {:.2} ms, p99 {:.2} ms, p99.9 {:.2} ms; shed {}; failed {}; not even asked {}",
            self.answered(),
            self.p(0.5),
            self.p(0.99),
            self.p(0.999),
            self.shed,
            self.failed,
            self.held_back
        );
    }
}
