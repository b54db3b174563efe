//! The key in the data directory: there, made, or not the one that the stored values need.

use crate::config::OpenError;
use crate::secret::{Keys, place};
use crate::store::Loaded;
use notation_edge::Uid;
use std::path::Path;
use std::sync::Arc;

/// The key of the folder. A new one is made only where nothing was encrypted with another.
///
/// Errors: `OtherKey` when none of the stored values opens.
pub fn keys(path: &Path, loaded: &Loaded) -> Result<Keys, OpenError> {
    let io = |source| OpenError::DataDir {
        path: path.to_owned(),
        source,
    };
    let other = |count, missing| OpenError::OtherKey {
        path: path.to_owned(),
        count,
        missing,
    };
    let values = || {
        loaded.tenants.iter().flat_map(|(tenant, rows)| {
            let place_of = |(worker, name, _): &(Uid, Arc<str>, _)| place(tenant, worker, name);
            rows.sealed.iter().map(move |row| (place_of(row), &row.2))
        })
    };
    let count = values().count();
    let Some(keys) = Keys::read(path).map_err(io)? else {
        return match count {
            0 => Keys::make(path).map_err(io),
            _ => Err(other(count, true)),
        };
    };
    let opens = |(place, value): (String, &Vec<u8>)| keys.unseal(&place, value).is_some();
    // One that does not open is damaged; all of them are another key's.
    if count > 0 && !values().any(opens) {
        return Err(other(count, false));
    }
    Ok(keys)
}
