//! Writes to objects that nobody looked at in this run (`--no-refresh`): what is not ours any
//! more is not written and not deleted (`engine.md` §8, *Ownership*).

use notation_model::{Record, ResourceType};
use notation_provider::{Found, LookFor};

use crate::{
    DriftCheck, StepError,
    look::{is_ours, owner_text},
    observe::is_readable,
    run::Run,
};

/// Looks whose an object is before its first write in a run that believes its records. One that is
/// gone is for the write to find.
///
/// Errors: [`StepError::NotOurs`] when its tags name another owner or none; a read that failed.
pub(crate) async fn still_ours(
    run: &Run,
    ty: &ResourceType,
    record: &Record,
) -> Result<(), StepError> {
    let line = &run.line;
    let tells = ty.tags && is_readable(ty);
    let asked_for = line
        .options
        .plan
        .adopt
        .contains(&record.incarnation.resource);
    let looked =
        line.options.drift == DriftCheck::Read || run.world().written.contains(&record.incarnation);
    if !tells || asked_for || looked {
        return Ok(());
    }
    let owner = line.owner(record);
    let ours = |found: &Found| is_ours(ty, &owner, record, &found.tags);
    // Tags of before are no reason to stop, as long as reads lag.
    let expected = |found: &Option<Found>| found.as_ref().is_none_or(ours);
    let found = line
        .looker()
        .until_lag(ty, &owner, LookFor::Key(&record.key), &expected)
        .await
        .map_err(StepError::from)?;
    match found {
        Some(found) if !ours(&found) => Err(StepError::NotOurs {
            key: record.key.to_string(),
            owner: owner_text(&found.tags),
        }),
        Some(_) | None => Ok(()),
    }
}
