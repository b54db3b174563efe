//! How many clients an ingress has at a time.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use crate::clock;

/// Connections beyond the limit that are told so; further ones are closed at once.
const TURNED_AWAY: usize = 64;
/// Trouble that clients can cause at will is in the log this often at most.
const TOLD_EVERY: Duration = Duration::from_secs(10);

/// The connections of all listeners of one ingress.
pub(crate) struct Crowd {
    most: usize,
    places: Arc<Semaphore>,
    turned_away: Arc<Semaphore>,
    full: Seldom,
    /// About connections that could not be accepted.
    pub(crate) unaccepted: Seldom,
}

/// What a new connection gets, for as long as the permit is held.
pub(crate) enum Place {
    /// Its requests are answered.
    Served(OwnedSemaphorePermit),
    /// Its requests are told that there is no place.
    TurnedAway(OwnedSemaphorePermit),
}

impl Crowd {
    /// Room for `most` connections.
    pub(crate) fn of(most: usize) -> Crowd {
        Crowd {
            most,
            places: Arc::new(Semaphore::new(most)),
            turned_away: Arc::new(Semaphore::new(TURNED_AWAY)),
            full: Seldom::default(),
            unaccepted: Seldom::default(),
        }
    }

    /// A place for one more connection; none when not even a refusal can be told.
    pub(crate) fn enter(&self) -> Option<Place> {
        if let Ok(permit) = self.places.clone().try_acquire_owned() {
            return Some(Place::Served(permit));
        }
        if self.full.is_due() {
            tracing::warn!(
                most = self.most,
                "the ingress has as many connections as it takes: requests on further ones are answered 503"
            );
        }
        let permit = self.turned_away.clone().try_acquire_owned().ok()?;
        Some(Place::TurnedAway(permit))
    }
}

/// Lets a line into the log now and then.
#[derive(Default)]
pub(crate) struct Seldom(Mutex<Option<Instant>>);

impl Seldom {
    /// Whether the line may be written; it counts as written then.
    pub(crate) fn is_due(&self) -> bool {
        self.is_due_at(clock::now())
    }

    fn is_due_at(&self, now: Instant) -> bool {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let due = last.is_none_or(|last| now.duration_since(last) >= TOLD_EVERY);
        if due {
            *last = Some(now);
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_finds_no_place_is_told_so_and_a_place_is_free_again_once_it_is_left() {
        let crowd = Crowd::of(2);
        let first = crowd.enter();
        let _second = crowd.enter();
        assert!(matches!(first, Some(Place::Served(_))));
        let told: Vec<_> = (0..TURNED_AWAY).map(|_| crowd.enter()).collect();
        let told = told.iter();
        assert!(
            told.clone()
                .all(|place| matches!(place, Some(Place::TurnedAway(_))))
        );
        assert!(crowd.enter().is_none());
        drop(first);
        assert!(matches!(crowd.enter(), Some(Place::Served(_))));
    }

    #[test]
    fn a_line_that_clients_cause_is_written_once_in_a_while() {
        let (seldom, start) = (Seldom::default(), clock::now());
        let at = |ms| start + Duration::from_millis(ms);
        let written = [0, 1, 9_999, 10_000, 10_001, 20_000].map(|ms| seldom.is_due_at(at(ms)));
        assert_eq!(written, [true, false, false, true, false, true]);
    }
}
