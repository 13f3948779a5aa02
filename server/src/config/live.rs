//! Settings that change while the daemon runs.

use super::{
    Config,
    sections::Sections,
    values::{Given, Values, all},
};
use std::sync::Arc;
use tokio::sync::watch;

/// The settings in effect. Cheap to clone; whoever has one sees each change.
#[derive(Debug, Clone)]
pub struct Live(watch::Receiver<Arc<Sections>>);

impl Live {
    /// As they are now. Keep it for one decision, no longer.
    pub fn now(&self) -> Arc<Sections> {
        Arc::clone(&self.0.borrow())
    }

    /// Waits until some setting has changed. Never returns once the daemon is gone.
    pub async fn changed(&mut self) {
        if self.0.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// Changes the settings in effect.
#[derive(Debug)]
pub(crate) struct Reloader {
    sections: watch::Sender<Arc<Sections>>,
    given: Values,
}

/// What a reload did, a line for each setting.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Reloaded {
    /// These are in effect.
    pub(crate) changed: Vec<String>,
    /// These are not: they need a restart.
    pub(crate) need_restart: Vec<String>,
}

impl Reloader {
    pub(crate) fn new(config: &Config) -> (Self, Live) {
        let (sections, live) = watch::channel(Arc::new(config.sections.clone()));
        (Self { sections, given: config.given.clone() }, Live(live))
    }

    /// Takes what can be changed from a newer configuration.
    pub(crate) fn reload(&mut self, newer: &Config) -> Reloaded {
        let mut reloaded = Reloaded::default();
        let mut given = self.given.clone();
        for (before, now) in self.given.differing(&newer.given) {
            let line = change(before, now);
            if all().any(|(key, about)| key == now.key && about.live) {
                reloaded.changed.push(line);
                given.take(now);
            } else {
                reloaded.need_restart.push(line);
            }
        }
        self.given = given;
        let mut sections = (**self.sections.borrow()).clone();
        sections.take_live(&newer.sections);
        self.sections.send_replace(Arc::new(sections));
        reloaded
    }
}

fn change(before: &Given, now: &Given) -> String {
    format!("{}: {} instead of {}", now.key, now.raw, before.raw)
}
