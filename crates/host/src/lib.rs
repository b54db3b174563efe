//! The host's control plane: HTTP, commit, operations, replay records, artifacts, sealed values
//! and the durable store. What is right and wrong is decided in `notation-edge`; here it is
//! translated, stored and answered.

mod admin;
mod artifacts;
mod blobs;
mod clock;
mod commit;
mod config;
mod contracts;
mod data_plane;
mod document;
mod error;
mod host;
mod http;
mod literal;
mod metrics;
mod mutation;
mod operations;
mod plane;
mod review;
mod sealed;
mod secret;
mod snapshot;
mod status_page;
mod store;
mod support;
mod tls;
mod token;

pub use blobs::Blobs;
pub use clock::{Clock, FixedClock, SystemClock};
pub use config::{HostConfig, OpenError, Tls};
pub use contracts::{ContractError, ContractErrors, Contracts};
pub use data_plane::{BundleSource, ConvergeError, DataPlane, NoDataPlane};
pub use host::{Host, HostError, ServeError};
pub use http::{API_ROUTES, RouteName};
pub use literal::exports_of;
pub use snapshot::{SecretBytes, Snapshot, TenantSnapshot};
pub use store::StoreError;
pub use token::{Grant, Scope, TokenRecord, fresh_token};
