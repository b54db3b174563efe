//! Looking at the provider: whether an object is there, and whose it is (`engine.md` §7, §8).

use std::{collections::BTreeMap, time::Duration};

use notation_model::{DEEPEST_VALUE, Look, Owner, Record, ResourceId, ResourceType, TypeName};
use notation_provider::{Found, LookFor, OpError};

use crate::{Session, asked::asked, limits::Limits, report::deepest, sensitive::Sensitive};

/// Delay before the first repetition; doubles up to [`LONGEST_DELAY`] (`engine.md` §7).
const FIRST_DELAY: Duration = Duration::from_millis(100);
const LONGEST_DELAY: Duration = Duration::from_secs(10);

/// How long to wait before repetition number `times`, from 1.
pub(crate) fn backoff(times: u32, asked_ms: Option<u64>) -> Duration {
    match asked_ms {
        Some(ms) => Duration::from_millis(ms),
        None => LONGEST_DELAY.min(FIRST_DELAY.saturating_mul(1 << times.saturating_sub(1).min(10))),
    }
}

/// What it takes to look.
pub(crate) struct Looker<'a> {
    pub session: &'a Session,
    pub limits: &'a Limits,
    /// What the program makes of secrets.
    pub sensitive: &'a Sensitive,
    pub max_attempts: u32,
}

/// What a look for an object of ours found.
pub(crate) enum Looked {
    /// It is there and ours.
    Ours(Found),
    /// There is none.
    Absent,
    /// There is one, and it is not ours.
    Foreign(Found),
    /// The type cannot be looked up.
    Cannot,
}

impl Looker<'_> {
    /// Looks for the object that a create of `owner` was to make under `key` (empty when only
    /// the server knows it). What is seen counts once the type's reads no longer lag: neither is
    /// what was made missed, nor what was deleted before taken for it.
    pub(crate) async fn for_created(
        &self,
        ty: &ResourceType,
        owner: &Owner,
        key: &str,
        former: &[ResourceId],
    ) -> Result<Looked, OpError> {
        let look = match ty.look {
            Look::Never | Look::IdempotentCreate => return Ok(Looked::Cannot),
            Look::Owner => LookFor::Mine(owner),
            Look::Key if key.is_empty() => return Ok(Looked::Cannot),
            Look::Key => LookFor::Key(key),
        };
        let found = self.steady(ty, owner, look).await?;
        Ok(match found {
            None => Looked::Absent,
            Some(found) if !ty.tags || owns(owner, &found.tags, former) => Looked::Ours(found),
            Some(found) => Looked::Foreign(found),
        })
    }

    /// The object of another type that has a key which excludes keys of `ty`, if one can be seen.
    pub(crate) async fn of_another_type(
        &self,
        ty: &ResourceType,
        owner: &Owner,
        key: &str,
    ) -> Option<(TypeName, Found)> {
        let others = self.session.registry.types().iter().filter(|other| {
            other.name != ty.name
                && other.identity_space == ty.identity_space
                && other.look == Look::Key
        });
        for other in others {
            // A look that fails tells nothing.
            let found = self.read(other, owner, LookFor::Key(key)).await;
            if let Ok(Some(found)) = found {
                return Some((other.name.clone(), found));
            }
        }
        None
    }

    /// Reads; when nothing is there, again until reads of the type no longer lag.
    pub(crate) async fn present(
        &self,
        ty: &ResourceType,
        owner: &Owner,
        look: LookFor<'_>,
    ) -> Result<Option<Found>, OpError> {
        self.until_lag(ty, owner, look, &Option::is_some).await
    }

    /// Reads; when the answer is not what is expected, again until reads of the type no longer
    /// lag: only then it counts.
    pub(crate) async fn until_lag(
        &self,
        ty: &ResourceType,
        owner: &Owner,
        look: LookFor<'_>,
        expected: &(dyn Fn(&Option<Found>) -> bool + Sync),
    ) -> Result<Option<Found>, OpError> {
        let mut waited = Duration::ZERO;
        let mut times = 1;
        loop {
            let found = self.read(ty, owner, look.clone()).await?;
            if expected(&found) || waited >= ty.read_lag {
                return Ok(found);
            }
            let delay = backoff(times, None).min(ty.read_lag - waited);
            self.session.clock.sleep(delay).await;
            waited += delay;
            times += 1;
        }
    }

    /// Reads until whether something is there, and whose it is, was the same for as long as reads
    /// of the type may lag.
    async fn steady(
        &self,
        ty: &ResourceType,
        owner: &Owner,
        look: LookFor<'_>,
    ) -> Result<Option<Found>, OpError> {
        let tags = |found: &Option<Found>| found.as_ref().map(|found| found.tags.clone());
        let mut found = self.read(ty, owner, look.clone()).await?;
        let mut waited = Duration::ZERO;
        for times in 1..self.max_attempts {
            if waited >= ty.read_lag {
                break;
            }
            let delay = backoff(times, None).min(ty.read_lag - waited);
            self.session.clock.sleep(delay).await;
            let now = self.read(ty, owner, look.clone()).await?;
            let same = tags(&now) == tags(&found);
            waited = if same { waited + delay } else { Duration::ZERO };
            found = now;
        }
        Ok(found)
    }

    /// Reads once; transient answers are repeated.
    pub(crate) async fn read(
        &self,
        ty: &ResourceType,
        owner: &Owner,
        look: LookFor<'_>,
    ) -> Result<Option<Found>, OpError> {
        let provider = self
            .session
            .registry
            .provider(&ty.name)
            .expect("the type came from the registry");
        for times in 1.. {
            let slot = self.limits.slot(ty).await;
            let answer = asked(|| provider.read(owner, &ty.name, look.clone())).await;
            drop(slot);
            match answer {
                Err(OpError::NotFound) => return Ok(None),
                Err(OpError::Transient { after_ms, .. }) if times < self.max_attempts => {
                    self.session.clock.sleep(backoff(times, after_ms)).await;
                }
                Ok(found) => {
                    if let Some(error) = found.as_ref().and_then(too_deep) {
                        return Err(error);
                    }
                    let hide = |found| self.sensitive.hide_in(&owner.resource, found);
                    return Ok(found.map(hide));
                }
                Err(error) => return Err(error),
            }
        }
        unreachable!("the attempts are bounded")
    }
}

/// Why what was found cannot be recorded, when it cannot.
fn too_deep(found: &Found) -> Option<OpError> {
    let (name, levels) = deepest(&found.params).or_else(|| deepest(&found.object.outputs))?;
    Some(OpError::Failed {
        message: format!(
            "its provider answers `{name}` nested {levels} levels deep; {DEEPEST_VALUE} are the most"
        ),
    })
}

/// Whether tags name this owner, whatever the generation.
pub(crate) fn owns(owner: &Owner, tags: &BTreeMap<String, String>, former: &[ResourceId]) -> bool {
    owner.owns(|key| tags.get(key).map(String::as_str), former)
}

/// Whether tags name anybody.
pub(crate) fn has_owner(tags: &BTreeMap<String, String>) -> bool {
    tags.keys().any(|tag| tag.starts_with("notation:"))
}

/// Whether the object under a recorded key is still the record's.
pub(crate) fn is_ours(
    ty: &ResourceType,
    owner: &Owner,
    record: &Record,
    tags: &BTreeMap<String, String>,
) -> bool {
    let earlier = record.earlier();
    // Without an update nothing could give back the tags that somebody took off.
    let kept = || !ty.updates && !owner.is_anothers(tags, earlier);
    !ty.tags || owner.owns_object(tags, earlier) || kept()
}

/// Whom tags name, for people.
pub(crate) fn owner_text(tags: &BTreeMap<String, String>) -> String {
    let tag = |key: &str| tags.get(key).map(String::as_str);
    match (
        tag("notation:app"),
        tag("notation:stage"),
        tag("notation:entry"),
        tag("notation:resource"),
    ) {
        (Some(app), Some(stage), Some(entry), Some(resource)) => {
            format!("{app}:{stage}:{entry} (resource {resource})")
        }
        _ => "somebody else (it has no tags of a deployment)".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_from_100_ms_to_10_s_unless_the_provider_asks_for_another() {
        let delays: Vec<u128> = (1..=9)
            .map(|times| backoff(times, None).as_millis())
            .collect();
        assert_eq!(
            delays,
            [100, 200, 400, 800, 1600, 3200, 6400, 10_000, 10_000]
        );
        assert_eq!(backoff(u32::MAX, None), LONGEST_DELAY);
        assert_eq!(backoff(1, Some(700)).as_millis(), 700);
    }
}
