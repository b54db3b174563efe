//! A person's wish to stop (`engine.md` §7).

use std::sync::Arc;

use tokio::sync::watch;

use crate::EngineError;

/// Tells a run to stop: the first signal starts no new step and waits for running calls, the
/// second stops waiting. Clones are the same interrupt.
#[derive(Debug, Clone)]
pub struct Interrupt(Arc<watch::Sender<u8>>);

impl Default for Interrupt {
    fn default() -> Self {
        Interrupt(Arc::new(watch::channel(0).0))
    }
}

impl Interrupt {
    /// An interrupt that nobody gave yet.
    pub fn new() -> Interrupt {
        Interrupt::default()
    }

    /// Gives it once more.
    pub fn signal(&self) {
        self.0.send_modify(|level| *level = level.saturating_add(1));
    }

    /// True after the first signal.
    pub fn is_given(&self) -> bool {
        *self.0.borrow() > 0
    }

    /// What comes of looking, which a person may break off: whoever only reads leaves nothing
    /// half done.
    pub(crate) async fn or<T>(
        &self,
        looking: impl Future<Output = Result<T, EngineError>>,
    ) -> Result<T, EngineError> {
        tokio::select! {
            // An interrupt from before counts as well.
            biased;
            () = self.given(1) => Err(EngineError::Interrupted),
            found = looking => found,
        }
    }

    /// Returns once it was given so many times.
    pub(crate) async fn given(&self, times: u8) {
        let mut receiver = self.0.subscribe();
        // The sender lives as long as `self`, so waiting cannot fail.
        drop(receiver.wait_for(|level| *level >= times).await);
    }
}
