//! Deploying: observe, recover, run, settle, report. The only async part of it.
//!
//! A Rust program uses it without the command line: make a [`Session`], build a
//! `DesiredGraph`, then [`plan`], [`deploy`], [`destroy`]. `examples/pair.rs` shows all of it.

mod aim;
mod anew;
mod answer;
mod asked;
mod board;
mod books;
mod call;
mod clock;
mod commit;
mod draft;
mod error;
mod event;
mod exports;
mod given;
mod hold;
mod import;
mod interrupt;
mod job;
mod limits;
mod line;
mod look;
mod mask;
mod observe;
mod planned;
mod play;
mod prepare;
mod recover;
mod references;
mod report;
mod rounds;
mod run;
mod sensitive;
mod session;
mod settle;
mod step;
mod step_end;
mod unread;
mod unrecorded;
mod verbs;
mod world;

pub use clock::{Clock, SystemClock};
pub use error::{AmbiguousCreate, EngineError, LostTags, ObserveFailure};
pub use event::{EngineEvent, EventSink, NoEvents, StepEvent, TakenUp};
pub use import::import;
pub use interrupt::Interrupt;
pub use planned::{ExportChange, Planned};
pub use prepare::{Started, begin, deploy, destroy, plan};
pub use report::{Blocked, BlockedStep, DoneStep, FailedStep, Report, RunStatus, StepError};
pub use session::{DriftCheck, HoldWait, OnFailure, RunOptions, Session};
pub use verbs::{Answer, LeftBehind, Refreshed, There, forget, refresh, resolve};
