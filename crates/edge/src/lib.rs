//! The law of the host, pure: kinds as data, relations, the world of one tenant, the rules of
//! decision 0016, admission and rendering.
//!
//! A rule is a function from a world to breaches and does not know which request is asking.
//! [`admit`] judges the world as it would be; only it makes an [`Admitted`], so apply, import and
//! the commit of an accepted operation cannot differ. No IO, no clock, no randomness: uids and
//! times are arguments.

mod admit;
mod breach;
mod catalog;
mod change;
mod claim;
mod cron;
mod form;
mod identity;
mod kind;
mod manifest;
mod name;
mod relation;
mod render;
mod resolve;
mod resource;
mod rule;
mod serving;
mod settle;
mod world;

pub use admit::{Admitted, Effect, admit};
pub use breach::{Breach, BreachKind, Missing, Refusal, Why};
pub use catalog::{Binding, Catalog, CatalogError, Interface};
pub use change::{Change, Delete, Fence, Observe, Origin, Put, Removal, Review, Seal, Touch};
pub use claim::{Claim, Dependent, Handler, claims_of};
pub use cron::{Cron, CronError, Instant};
pub use form::{Form, FormError, Role};
pub use identity::{BindingRef, FormRef, InterfaceRef};
pub use kind::{EdgeKind, FAMILY};
pub use manifest::{
    Entry, MAX_BUNDLE_BYTES, MAX_ENTRY_BYTES, MAX_FILES, MAX_MODULES, Manifest, ManifestError,
    ManifestKind,
};
pub use name::{
    Generation, Key, Revision, Uid, is_digest, is_env_name, is_resource_name, is_space,
};
pub use relation::{Contract, Instance, Pin, Relation, instances};
pub use render::{Rendering, endpoint_hostname, outputs, render};
pub use resource::{Condition, Reason, Resource};
pub use rule::{environment_clash, judge, weight_sum};
pub use serving::{Assets, BasisPoints, Consumer, Endpoint, Trigger, Version};
pub use world::{Exports, LedgerEntry, SealedReadiness, World};
