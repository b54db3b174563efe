//! Which version answers: worker to active deployment to one version, drawn by weight for
//! every invocation.
//!
//! Source: edge runtime contract, "Choosing a version".

use std::collections::BTreeMap;
use std::sync::Arc;

use arc_swap::ArcSwap;

use crate::life::State;
use crate::plan::{Uid, WorkerPlan};
use crate::traffic::InFlight;
use crate::version::Version;

/// Everything requests are routed by; replaced whole, never changed in place.
#[derive(Default)]
pub(crate) struct RouteTable {
    pub(crate) endpoints: BTreeMap<String, Uid>,
    pub(crate) workers: BTreeMap<Uid, Selection<Arc<Version>>>,
}

/// Weighted versions of one worker; empty when nothing serves.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Selection<V> {
    weights: Vec<(u16, V)>,
}

impl<V> Selection<V> {
    /// Weights in basis points, in a fixed order.
    pub(crate) fn new(weights: Vec<(u16, V)>) -> Selection<V> {
        Selection { weights }
    }

    /// The first version whose cumulative weight exceeds `point`, a number below the sum.
    pub(crate) fn draw(&self, point: u16) -> Option<&V> {
        let mut sum = 0u32;
        self.weights.iter().find_map(|(weight, version)| {
            sum += u32::from(*weight);
            (sum > u32::from(point)).then_some(version)
        })
    }

    /// Every version that may be drawn.
    pub(crate) fn versions(&self) -> impl Iterator<Item = &V> {
        self.weights
            .iter()
            .filter(|(weight, _)| *weight > 0)
            .map(|(_, version)| version)
    }
}

/// The current table.
#[derive(Default)]
pub(crate) struct Router(ArcSwap<RouteTable>);

impl Router {
    /// The table as it is now.
    pub(crate) fn table(&self) -> Arc<RouteTable> {
        self.0.load_full()
    }

    /// New invocations use `table` from here on.
    pub(crate) fn replace(&self, table: RouteTable) {
        self.0.store(Arc::new(table));
    }

    /// Worker behind a canonical host name.
    pub(crate) fn endpoint(&self, hostname: &str) -> Option<Uid> {
        self.0.load().endpoints.get(hostname).cloned()
    }

    /// Draws a version of `worker` and counts the invocation in; none when nothing serves.
    pub(crate) fn enter(&self, worker: &Uid) -> Option<(Arc<Version>, InFlight)> {
        loop {
            let table = self.0.load();
            let version = table.workers.get(worker)?.draw(point())?;
            // A version closes only after the table without it is in place, so a refusal
            // means that there is a newer table.
            if let Some(in_flight) = version.traffic.enter() {
                return Some((version.clone(), in_flight));
            }
        }
    }
}

/// The table for a plan. Code is chosen by the plan and by nothing else: what does not serve yet
/// is not covered for by what had the traffic before. Only a worker whose traffic is as it was
/// keeps the processes it has, until those with its new sensitive values serve.
pub(crate) fn routes(
    plan: &WorkerPlan,
    versions: &BTreeMap<Uid, Arc<Version>>,
    before: &RouteTable,
) -> RouteTable {
    let mut table = RouteTable {
        endpoints: plan.endpoints.clone(),
        workers: BTreeMap::new(),
    };
    for (uid, worker) in &plan.workers {
        let weights: Vec<_> = worker
            .weights
            .iter()
            .filter_map(|(version, weight)| Some((*weight, versions.get(version)?.clone())))
            .collect();
        let serves =
            |version: &Arc<Version>| matches!(version.phase.borrow().state, State::Warm { .. });
        let next = Selection::new(weights);
        let ready = next.versions().all(serves);
        let selection = match before.workers.get(uid) {
            Some(previous) if !ready && divides(previous, &worker.weights) => previous.clone(),
            Some(_) | None => next,
        };
        table.workers.insert(uid.clone(), selection);
    }
    table
}

/// Whether a selection divides the traffic among the same versions in the same way.
fn divides(selection: &Selection<Arc<Version>>, weights: &[(Uid, u16)]) -> bool {
    let has = selection.weights.iter();
    has.map(|(weight, version)| (&version.uid, *weight))
        .eq(weights.iter().map(|(uid, weight)| (uid, *weight)))
}

/// A random number below 10 000.
fn point() -> u16 {
    let random = getrandom::u32().expect("the system has random numbers");
    ((u64::from(random) * 10_000) >> 32) as u16
}

/// Host name as it is compared: no port, no trailing dot, lower case.
pub(crate) fn canonical(host: &str) -> String {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_cut_where_their_sums_are() {
        let selection = Selection::new(vec![(2_500, 'a'), (0, 'b'), (7_500, 'c')]);
        let drawn: Vec<_> = [0, 2_499, 2_500, 9_999]
            .map(|point| selection.draw(point).copied())
            .to_vec();
        assert_eq!(drawn, [Some('a'), Some('a'), Some('c'), Some('c')]);
        assert_eq!(Selection::<char>::new(Vec::new()).draw(0), None);
        assert_eq!(selection.versions().collect::<String>(), "ac");
    }

    #[test]
    fn host_names_are_compared_without_port_dot_and_case() {
        for host in [
            "App.Example.com",
            "app.example.com.",
            "app.example.com:8080",
            "APP.example.com.:80",
        ] {
            assert_eq!(canonical(host), "app.example.com");
        }
        assert_eq!(canonical("[::1]"), "[::1]");
    }

    #[test]
    fn points_stay_below_the_sum() {
        assert!((0..10_000).all(|_| point() < 10_000));
    }
}
