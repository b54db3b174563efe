//! Ctrl-C and termination: of a command that listens, and of one that does not (yet).

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use notation_engine::Session;
use signal_hook::{
    SigId,
    consts::{SIGINT, SIGTERM},
    flag,
    iterator::Signals,
    low_level::unregister,
};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::{exit::Exit, failure::Failure, printer::Printer};

/// What notes, in the signal handler itself, an interrupt that came while no command listened.
/// Empty from the moment on that one does: what it does with an interrupt is its own business.
static UNHEARD: Mutex<Vec<SigId>> = Mutex::new(Vec::new());

/// Ends the process at an interrupt, with its exit status and a word, as long as no command
/// listens: while a program is evaluated nothing has begun that could be left half done.
pub fn until_heard(printer: &Printer) {
    let unheard = Arc::new(AtomicBool::new(false));
    // Before the thread is woken by the same signal, it is noted.
    let noted = [SIGINT, SIGTERM].map(|signal| flag::register(signal, unheard.clone()));
    let mut ids = UNHEARD.lock().unwrap_or_else(PoisonError::into_inner);
    ids.extend(noted.into_iter().flatten());
    drop(ids);
    // Without handlers the system ends the process itself.
    let Ok(mut signals) = Signals::new([SIGINT, SIGTERM]) else {
        return;
    };
    let printer = *printer;
    let wait = move || {
        for _ in signals.forever() {
            if unheard.load(Ordering::SeqCst) {
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
            let mut ids = UNHEARD.lock().unwrap_or_else(PoisonError::into_inner);
            ids.drain(..).for_each(|id| {
                unregister(id);
            });
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
