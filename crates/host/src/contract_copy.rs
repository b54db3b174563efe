//! The contract set that stored resources were made under, kept beside them: a newer program has
//! newer contracts, and what is stored must go on working under it.

use crate::config::{HostConfig, OpenError};
use crate::contracts::Contracts;
use crate::store::Loaded;
use notation_edge::FormRef;
use std::path::Path;

/// Name of the folder in the data directory.
const FOLDER: &str = "contracts";

/// The set to serve with: `contracts`, if every stored resource was made under it. If not, and
/// nobody asked for a particular set, the one that was kept.
///
/// Errors: `OtherContracts` when neither knows them all.
pub fn suited(
    contracts: Contracts,
    config: &HostConfig,
    loaded: &Loaded,
) -> Result<Contracts, OpenError> {
    let kept = config.data_dir.join(FOLDER);
    let Some(other) = other_contracts(&contracts, loaded) else {
        if config.contracts.is_none() {
            keep(&kept).map_err(|source| OpenError::DataDir { path: kept, source })?;
        }
        return Ok(contracts);
    };
    if config.contracts.is_some() {
        return Err(other);
    }
    match Contracts::load(Some(&kept), config.conformance.as_deref()) {
        Ok(contracts) if other_contracts(&contracts, loaded).is_none() => {
            tracing::warn!(
                %other,
                "the contract set of an earlier version is served on, because stored resources \
                 belong to it; once they are deleted, the next start takes the new one"
            );
            Ok(contracts)
        }
        Ok(_) => Err(other),
        Err(error) => {
            tracing::warn!(%error, "no usable copy of an earlier contract set");
            Err(other)
        }
    }
}

/// A resource whose Form is not installed would hold its name and answer nothing.
fn other_contracts(contracts: &Contracts, loaded: &Loaded) -> Option<OpenError> {
    let unknown: Vec<&FormRef> = loaded
        .tenants
        .values()
        .flat_map(|tenant| &tenant.resources)
        .map(|resource| &resource.form_ref)
        .filter(|form_ref| contracts.catalog.form(form_ref).is_none())
        .collect();
    let first = unknown.first()?;
    Some(OpenError::OtherContracts {
        count: unknown.len(),
        kind: first.kind.to_string(),
        version: first.definition_version.to_string(),
        digest: first.schema_digest.to_string(),
    })
}

/// Makes the kept set equal to the one of this program, whole or not at all.
fn keep(kept: &Path) -> std::io::Result<()> {
    if Contracts::is_embedded_set(kept) {
        return Ok(());
    }
    let aside = kept.with_extension("new");
    remove(&aside)?;
    std::fs::create_dir_all(&aside)?;
    Contracts::extract_embedded(&aside)?;
    // Between the two nothing is kept, and what is stored belongs to the program's own set.
    remove(kept)?;
    std::fs::rename(&aside, kept)
}

fn remove(folder: &Path) -> std::io::Result<()> {
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
