//! Ctrl-C and termination while a run is going on.

use notation_engine::Session;
use tokio::signal::unix::{SignalKind, signal};

/// Waits for the next interrupt or request to terminate.
pub async fn next() {
    let (Ok(mut interrupt), Ok(mut terminate)) = (
        signal(SignalKind::interrupt()),
        signal(SignalKind::terminate()),
    ) else {
        // Without handlers the system ends the process itself; state survives that as well.
        return std::future::pending().await;
    };
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
}

/// Passes an interrupt on to a command that only looks; it ends at once, and says so itself.
pub fn pass_on(session: &Session) {
    let interrupt = session.interrupt.clone();
    tokio::spawn(async move {
        next().await;
        interrupt.signal();
    });
}
