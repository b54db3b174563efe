//! The local host: this binary in the background, one per project, on loopback, with its data in
//! the project's `.notation/host/`.

mod answers;
pub mod control;
pub mod folder;
mod log;
pub mod problem;
pub mod serve;
mod setup;
pub mod start;
mod word;
pub mod workerd;

mod plane;
