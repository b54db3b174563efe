//! Looking at the provider: whether an object is there, and whose it is (`engine.md` §7, §8).

use std::{collections::BTreeMap, time::Duration};

use notation_model::{DeploymentId, Look, Owner, ResourceId, ResourceType};
use notation_provider::{Found, LookFor, OpError};

use crate::{Session, limits::Limits};

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
    /// the server knows it). An absence counts once the type's reads no longer lag.
    pub(crate) async fn for_created(
        &self,
        ty: &ResourceType,
        owner: &Owner,
        key: &str,
        former: &[ResourceId],
    ) -> Result<Looked, OpError> {
        let found = match ty.look {
            Look::Never | Look::IdempotentCreate => return Ok(Looked::Cannot),
            Look::Owner => self.until_lag(ty, owner, LookFor::Mine(owner)).await?,
            Look::Key if key.is_empty() => return Ok(Looked::Cannot),
            Look::Key => self.until_lag(ty, owner, LookFor::Key(key)).await?,
        };
        Ok(match found {
            None => Looked::Absent,
            Some(found) if !ty.tags || owns(owner, &found.tags, former) => Looked::Ours(found),
            Some(found) => Looked::Foreign(found),
        })
    }

    /// Reads; when nothing is there, again until reads of the type no longer lag.
    pub(crate) async fn until_lag(
        &self,
        ty: &ResourceType,
        owner: &Owner,
        look: LookFor<'_>,
    ) -> Result<Option<Found>, OpError> {
        let mut waited = Duration::ZERO;
        let mut times = 1;
        loop {
            let found = self.read(ty, owner, look.clone()).await?;
            if found.is_some() || waited >= ty.read_lag {
                return Ok(found);
            }
            let delay = backoff(times, None).min(ty.read_lag - waited);
            self.session.clock.sleep(delay).await;
            waited += delay;
            times += 1;
        }
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
            let answer = provider.read(owner, &ty.name, look.clone()).await;
            drop(slot);
            match answer {
                Err(OpError::NotFound) => return Ok(None),
                Err(OpError::Transient { after_ms, .. }) if times < self.max_attempts => {
                    self.session.clock.sleep(backoff(times, after_ms)).await;
                }
                other => return other,
            }
        }
        unreachable!("the attempts are bounded")
    }
}

/// Whether tags name this owner, whatever the generation.
pub(crate) fn owns(owner: &Owner, tags: &BTreeMap<String, String>, former: &[ResourceId]) -> bool {
    owner.owns(|key| tags.get(key).map(String::as_str), former)
}

/// Whether tags name this deployment, whatever the resource.
pub(crate) fn of_deployment(deployment: &DeploymentId, tags: &BTreeMap<String, String>) -> bool {
    let is = |key: &str, value: &str| tags.get(key).is_some_and(|tag| tag == value);
    is("notation:app", deployment.app.as_str())
        && is("notation:stage", deployment.stage.as_str())
        && is("notation:entry", deployment.entry.as_str())
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
