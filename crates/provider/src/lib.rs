//! The border to whatever makes resources: four verbs and one token.
//!
//! A provider never hears of plans, cycles or placeholders (`architecture.md` §0, 7).

pub mod contract;

mod context;
mod error;
mod provider;
mod registry;

pub use context::{Assets, MemoryAssets, NoAssets, OpContext, Token};
pub use error::{HeldBy, OpError};
pub use provider::{Found, LookFor, Object, Progress, Provider, Update};
pub use registry::{Registry, RegistryError, RegistryErrors};
