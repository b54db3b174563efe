//! The host resources that make one worker, and what they are called.
//!
//! Every name follows from the worker's own, because the host has no way to list: a part whose
//! name is forgotten could never be found again, and would hold its peers for ever. Versions
//! (and their bundles) therefore take turns in two slots.

use sha2::{Digest as _, Sha256};

/// Kinds of the edge family that a worker is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Worker,
    Bundle,
    Version,
    Deployment,
    Endpoint,
}

impl Kind {
    /// The host's word.
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::Worker => "ModuleWorker",
            Kind::Bundle => "WorkerBundle",
            Kind::Version => "WorkerVersion",
            Kind::Deployment => "WorkerDeployment",
            Kind::Endpoint => "WorkerEndpoint",
        }
    }
}

/// One of the two places for a version and its bundle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Slot {
    A,
    B,
}

impl Slot {
    pub const BOTH: [Slot; 2] = [Slot::A, Slot::B];

    pub fn other(self) -> Slot {
        match self {
            Slot::A => Slot::B,
            Slot::B => Slot::A,
        }
    }

    /// Name of the version and of the bundle in this slot.
    pub fn name(self, script: &str) -> String {
        match self {
            Slot::A => part(script, "a"),
            Slot::B => part(script, "b"),
        }
    }
}

/// Name of the bundle that says to whom the worker belongs.
pub(crate) fn claim_name(script: &str) -> String {
    part(script, "owner")
}

/// Longest resource name (host API §3.3).
const NAME_LIMIT: usize = 63;

/// `<script>-<what>`; a script name without room for that is cut, and told apart by a hash.
fn part(script: &str, what: &str) -> String {
    let whole = format!("{script}-{what}");
    if whole.len() <= NAME_LIMIT {
        return whole;
    }
    let hash = &hex::encode(Sha256::digest(script.as_bytes()))[..8];
    let room = NAME_LIMIT - what.len() - hash.len() - 2;
    let cut: String = script.chars().take(room).collect();
    format!("{cut}-{hash}-{what}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_different_workers_never_share_a_name() {
        let bundles = |script: &str| {
            [
                claim_name(script),
                Slot::A.name(script),
                Slot::B.name(script),
            ]
        };
        let all: Vec<String> = ["x", "x-a", "x-owner", "x-a-b"]
            .into_iter()
            .flat_map(bundles)
            .collect();
        let unique: std::collections::BTreeSet<_> = all.iter().collect();
        assert_eq!(unique.len(), all.len());
    }

    #[test]
    fn a_long_name_leaves_room_for_its_parts() {
        let (one, other) = ("x".repeat(63), format!("{}y", "x".repeat(62)));
        assert_eq!(claim_name(&one).len(), NAME_LIMIT);
        assert_ne!(claim_name(&one), claim_name(&other));
    }
}
