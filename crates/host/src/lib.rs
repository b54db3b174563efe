//! The host's control plane: HTTP, commit, operations, replay records, artifacts, sealed values
//! and the durable store. What is right and wrong is decided in `notation-edge`; here it is
//! translated, stored and answered.

mod artifact_store;
mod artifacts;
mod clock;
mod collect;
mod commit;
mod config;
mod contract_copy;
mod contracts;
mod data_plane;
mod document;
mod error;
mod exact;
mod failure;
mod head;
mod host;
mod http;
mod inflow;
mod judgement;
mod key_file;
mod literal;
mod metrics;
mod mutation;
mod operations;
mod origin;
mod plane;
mod reading;
mod reply;
mod review;
mod sealed;
mod secret;
mod serving;
mod snapshot;
mod status;
mod store;
mod support;
mod tls;
mod token;

pub use artifact_store::{ArtifactStore, Bucket, BucketError, Folder, Incoming};
pub use clock::{Clock, FixedClock, SystemClock};
pub use collect::Collected;
pub use config::{HostConfig, OpenError, Tls, is_endpoint_domain};
pub use contracts::{ContractError, ContractErrors, Contracts};
pub use data_plane::{Ahead, BundleSource, ConvergeError, DataPlane, NoDataPlane};
pub use failure::{HostError, ServeError};
pub use host::Host;
pub use http::{API_ROUTES, OPEN_ROUTES, RouteName};
pub use literal::exports_of;
pub use origin::{Origin, OriginError};
pub use sealed::SealedAt;
pub use snapshot::{SecretBytes, Snapshot, TenantSnapshot};
pub use store::StoreError;
pub use token::{Grant, Scope, TokenRecord, fresh_token};
