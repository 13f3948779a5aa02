//! The word that the daemon is to stop, for whoever has to end then.

use tokio::sync::watch;

/// Hears that the daemon is to stop.
#[derive(Debug, Clone)]
pub(crate) struct Ending(watch::Receiver<bool>);

/// Tells it. Being dropped tells it too.
#[derive(Debug)]
pub(crate) struct End(watch::Sender<bool>);

/// Both sides.
pub(crate) fn ending() -> (End, Ending) {
    let (sender, receiver) = watch::channel(false);
    (End(sender), Ending(receiver))
}

impl End {
    pub(crate) fn tell(&self) {
        self.0.send_replace(true);
    }
}

impl Ending {
    /// Whether it has been told.
    pub(crate) fn has_begun(&self) -> bool {
        *self.0.borrow() || self.0.has_changed().is_err()
    }

    /// Returns once it has been told.
    pub(crate) async fn begun(mut self) {
        // The teller being gone is the word too.
        let _ = self.0.wait_for(|told| *told).await;
    }
}

#[cfg(test)]
mod tests {
    use super::ending;

    #[tokio::test]
    async fn told_by_a_word_or_by_the_end_of_who_would_say_it() {
        let (end, hears) = ending();
        assert!(!hears.has_begun());
        end.tell();
        assert!(hears.has_begun());
        hears.begun().await;
        let (end, hears) = ending();
        drop(end);
        assert!(hears.has_begun());
        hears.begun().await;
    }
}
