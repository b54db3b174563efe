//! Ctrl-C and termination while a run is going on.

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
