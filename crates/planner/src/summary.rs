//! What a plan amounts to, in numbers (`spec/cli.md`, *JSON*).

use std::collections::BTreeSet;

use notation_model::{Incarnation, ResourceId};

use crate::{Plan, Subject, Transition, Why};

/// Writes of a plan, each counted once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Summary {
    /// Creates that replace nothing.
    pub create: usize,
    /// Updates, those that complete a placeholder included.
    pub update: usize,
    /// Updates back to a placeholder.
    pub revert: usize,
    /// Resources replaced; their create and delete are counted here alone.
    pub replace: usize,
    /// Deletes that no successor of this plan asks for.
    pub delete: usize,
    /// Resources with nothing to do.
    pub unchanged: usize,
    /// Steps that only a value known later decides.
    pub unknown: usize,
    /// Resources of which ids or marks are recorded otherwise, whatever else is done with them.
    pub recorded: usize,
}

impl Plan {
    /// Counts the writes.
    pub fn summary(&self) -> Summary {
        let replaced = self.replaced();
        let mut summary = Summary {
            replace: replaced.len(),
            unchanged: self.unchanged,
            recorded: self.recorded.len(),
            ..Summary::default()
        };
        let mut creates = replaced.clone();
        let mut deletes = replaced;
        for step in &self.steps {
            let resource = match &step.key.subject {
                Subject::Incarnation(incarnation) => &incarnation.resource,
                Subject::Cycle(_) => continue,
            };
            match step.forecast.transition {
                Transition::Create if !creates.remove(resource) => summary.create += 1,
                Transition::Delete if !deletes.remove(resource) => summary.delete += 1,
                Transition::Create | Transition::Delete => {}
                Transition::Update => summary.update += 1,
                Transition::Revert => summary.revert += 1,
                Transition::Unknown => summary.unknown += 1,
                Transition::None | Transition::Settle => {}
            }
        }
        summary
    }

    /// Resources whose present incarnation this plan replaces.
    pub fn replaced(&self) -> BTreeSet<&ResourceId> {
        self.steps
            .iter()
            .filter(|step| matches!(step.why, Why::Replaces { .. }))
            .filter_map(|step| match &step.key.subject {
                Subject::Incarnation(Incarnation { resource, .. }) => Some(resource),
                Subject::Cycle(_) => None,
            })
            .collect()
    }

    /// True when running the plan would call no provider.
    pub fn is_quiet(&self) -> bool {
        self.steps.is_empty()
    }
}
