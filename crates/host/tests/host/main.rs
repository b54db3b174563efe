//! The control plane as a client sees it: a real server on port 0, one test per observation.
//!
//! With `NOTATION_CONTRACTS` naming a directory that holds a published contract set, the same
//! tests run with its exact digests; without, with the set written by this project.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod aggregate;
mod artifacts;
mod bench;
mod claims;
mod collecting;
mod converging;
mod costs;
mod coverage;
mod create;
mod dice;
mod discovery;
mod dismantling;
mod durability;
mod endpoints;
mod failures;
mod forms;
mod fuzz;
mod histories;
mod idempotency;
mod imports;
mod killing;
mod migrating;
mod observe_delete;
mod operations;
mod operator;
mod prepare;
mod properties;
mod relations;
mod rules;
mod sealed;
mod sqlite_assets;
mod support;
mod tenants;
mod typed_client;
mod unread;
mod unseen;
mod upgrades;
mod versions;
