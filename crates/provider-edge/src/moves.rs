//! The next move, from what is there and what is wanted. Pure: a call that was cut off is
//! continued by looking again and asking again.

use std::collections::BTreeSet;

use crate::{
    parts::Slot,
    seen::{InSlot, Part, Seen},
    wanted::Wanted,
};

/// One change at the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Move {
    /// Say to whom the name belongs.
    Claim,
    /// Take that back.
    Unclaim,
    /// Make the identity.
    MakeWorker,
    /// Hand over all secret values.
    Seal,
    /// Take secret values away.
    Unseal(BTreeSet<String>),
    MakeBundle(Slot),
    MakeVersion(Slot),
    /// Give a slot's version all traffic for the first time.
    MakeDeployment(Slot),
    /// Give a slot's version all traffic.
    Promote(Slot),
    MakeEndpoint,
    DeleteEndpoint,
    DeleteDeployment,
    DeleteVersion(Slot),
    DeleteBundle(Slot),
    DeleteWorker,
}

/// The next move towards what is wanted; `None` when it is there.
///
/// Order: the claim before the worker; a version only in a slot that takes no traffic; the old
/// version goes once the new one has all traffic, since a stored version holds what it binds.
pub(crate) fn towards(seen: &Seen, wanted: &Wanted) -> Option<Move> {
    before_the_code(seen, wanted).or_else(|| match matching(seen, wanted) {
        None => make_version(seen, wanted),
        Some(slot) => promote(seen, wanted, slot),
    })
}

/// The next move until nothing is left.
///
/// Order: what needs others goes before what others need (host API §15.7, §17.8), the claim last.
pub(crate) fn apart(seen: &Seen) -> Option<Move> {
    if seen.endpoint.is_some() {
        return Some(Move::DeleteEndpoint);
    }
    if seen.deployment.is_some() {
        return Some(Move::DeleteDeployment);
    }
    let versions = Slot::BOTH
        .into_iter()
        .find_map(|slot| remove_version(seen, slot, &BTreeSet::new()));
    let bundle = || {
        Slot::BOTH
            .into_iter()
            .find(|slot| seen.slot(*slot).bundle.is_some())
    };
    versions
        .or_else(|| bundle().map(Move::DeleteBundle))
        .or_else(|| seen.worker.as_ref().map(|_| Move::DeleteWorker))
        .or_else(|| seen.claim.as_ref().map(|_| Move::Unclaim))
}

fn before_the_code(seen: &Seen, wanted: &Wanted) -> Option<Move> {
    match &seen.claim {
        None => return Some(Move::Claim),
        Some((_, claim)) if !claim.is_of(&wanted.owner) => return Some(Move::Unclaim),
        Some(_) => {}
    }
    if seen.worker.is_none() {
        return Some(Move::MakeWorker);
    }
    (!wanted.secrets.is_empty() && !seen.sealed).then_some(Move::Seal)
}

/// A slot whose version is exactly what is wanted, rather one that takes traffic.
fn matching(seen: &Seen, wanted: &Wanted) -> Option<Slot> {
    let digest = wanted.manifest().digest();
    let fits = |slot: &Slot| match seen.slot(*slot) {
        InSlot {
            version: Some(version),
            bundle: Some(bundle),
        } => {
            !version.broken
                && version.has(&wanted.version_spec(*slot))
                && bundle.manifest_digest() == digest
        }
        InSlot { .. } => false,
    };
    let mut found: Vec<Slot> = Slot::BOTH.into_iter().filter(fits).collect();
    found.sort_by_key(|slot| !seen.serves(&wanted.script, *slot));
    found.first().copied()
}

fn make_version(seen: &Seen, wanted: &Wanted) -> Option<Move> {
    let serves = |slot: Slot| seen.serves(&wanted.script, slot);
    let spare = match (serves(Slot::A), serves(Slot::B)) {
        // Somebody split the traffic by hand: free a slot first.
        (true, true) => return Some(Move::Promote(Slot::A)),
        (true, false) => Slot::B,
        (false, _) => Slot::A,
    };
    let remove = remove_version(seen, spare, &wanted.secret_names());
    if remove.is_some() {
        return remove;
    }
    Some(match &seen.slot(spare).bundle {
        None => Move::MakeBundle(spare),
        Some(bundle) if bundle.manifest_digest() != wanted.manifest().digest() => {
            Move::DeleteBundle(spare)
        }
        Some(_) => Move::MakeVersion(spare),
    })
}

fn promote(seen: &Seen, wanted: &Wanted, slot: Slot) -> Option<Move> {
    let unusable = |part: &Part| part.broken || !wanted.endpoint;
    if seen.endpoint.as_ref().is_some_and(unusable) {
        return Some(Move::DeleteEndpoint);
    }
    match &seen.deployment {
        None => return Some(Move::MakeDeployment(slot)),
        Some(part) if part.broken || !part.has(&wanted.deployment_spec(slot)) => {
            return Some(Move::Promote(slot));
        }
        Some(_) => {}
    }
    let old = slot.other();
    let endpoint = || (wanted.endpoint && seen.endpoint.is_none()).then_some(Move::MakeEndpoint);
    remove_version(seen, old, &wanted.secret_names())
        .or_else(|| {
            seen.slot(old)
                .bundle
                .as_ref()
                .map(|_| Move::DeleteBundle(old))
        })
        .or_else(endpoint)
}

/// Secret values that only this version needed go before it: they are found through it alone.
fn remove_version(seen: &Seen, slot: Slot, kept: &BTreeSet<String>) -> Option<Move> {
    let version = seen.slot(slot).version.as_ref()?;
    let other = seen.slot(slot.other()).version.as_ref();
    let needed = other
        .map(|version| version.secret_names())
        .unwrap_or_default();
    let stale: BTreeSet<String> = version
        .secret_names()
        .into_iter()
        .filter(|name| {
            !kept.contains(name) && !needed.contains(name) && !seen.unsealed.contains(name)
        })
        .collect();
    Some(if stale.is_empty() || seen.worker.is_none() {
        Move::DeleteVersion(slot)
    } else {
        Move::Unseal(stale)
    })
}

#[cfg(test)]
mod tests;
