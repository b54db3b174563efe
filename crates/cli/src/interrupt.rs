//! Ctrl-C and termination: of a command that listens, and of one that does not (yet).

use std::{
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

use notation_engine::Session;
use signal_hook::{
    consts::{SIGINT, SIGTERM},
    iterator::Signals,
};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::{exit::Exit, failure::Failure, printer::Printer};

/// A command listens itself; what it does with an interrupt is its own business.
static HEARD: AtomicBool = AtomicBool::new(false);

/// Ends the process at an interrupt, with its exit status and a word, as long as no command
/// listens: while a program is evaluated nothing has begun that could be left half done.
pub fn until_heard(printer: &Printer) {
    // Without handlers the system ends the process itself.
    let Ok(mut signals) = Signals::new([SIGINT, SIGTERM]) else {
        return;
    };
    let printer = *printer;
    let wait = move || {
        for _ in signals.forever() {
            if !HEARD.load(Ordering::SeqCst) {
                let failure = Failure::new(Exit::Interrupted, "run::interrupted", "interrupted");
                failure.tell(&printer);
                std::process::exit(Exit::Interrupted as i32);
            }
        }
    };
    let named = thread::Builder::new().name("interrupt".into());
    // Without a thread, too.
    drop(named.spawn(wait));
}

/// Interrupts and requests to terminate, from now on.
pub struct Interrupts(Option<(Signal, Signal)>);

impl Interrupts {
    /// Listens.
    pub fn listen() -> Interrupts {
        let both = signal(SignalKind::interrupt())
            .and_then(|interrupt| Ok((interrupt, signal(SignalKind::terminate())?)));
        if both.is_ok() {
            HEARD.store(true, Ordering::SeqCst);
        }
        Interrupts(both.ok())
    }

    /// Waits for the next one.
    pub async fn next(&mut self) {
        let Some((interrupt, terminate)) = &mut self.0 else {
            // Nobody listens here, so the process is ended at once; state survives that.
            return std::future::pending().await;
        };
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    }
}

/// Passes an interrupt on to a command that only looks; it ends at once, and says so itself.
pub fn pass_on(session: &Session) {
    let interrupt = session.interrupt.clone();
    let mut interrupts = Interrupts::listen();
    tokio::spawn(async move {
        interrupts.next().await;
        interrupt.signal();
    });
}
