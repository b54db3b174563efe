//! A cloud in a folder: strict, deterministic, with scripted faults.
//!
//! One implementation serves the engine's tests, the benchmarks, the guide and anyone who wants
//! to check the product from outside. It is stricter than any real cloud on purpose. The files of
//! the folder are its interface: `objects.json` (what lives, may be edited by hand between runs),
//! `calls.ndjson` (what was asked) and `faults.json` (what shall go wrong).

mod account;
mod calls;
mod cloud;
mod fault;
mod folder;
mod in_flight;
mod memory;
mod object;
mod provider;
mod rules;
mod stock;
mod table;

pub use calls::CallLog;
pub use folder::{SimError, dump, reset};
pub use object::SimObject;
pub use provider::SimProvider;
pub use stock::types;
