//! What a run records of resources beside what its calls do, as far as people wrote it: ids and
//! marks. Edges and whatever else is kept for planning are nobody's concern.

use std::collections::{BTreeMap, BTreeSet};

use notation_model::ResourceId;

use crate::{Recorded, outlook::Survey, writing::Writing};

/// By id. A record moves to its new id whatever the plan is about; marks are those of resources
/// that go on with what they have, as a new incarnation has its own from its creation.
pub(crate) fn recorded(survey: &Survey<'_, '_>, writing: &Writing) -> Vec<Recorded> {
    let mut all: BTreeMap<&ResourceId, Recorded> = BTreeMap::new();
    if !survey.history.renamed.is_empty() {
        for past in &survey.history.past {
            let (today, before) = (&past.incarnation.resource, &past.original.incarnation);
            if before.resource != *today {
                let of = all.entry(today).or_insert_with(|| Recorded::of(today));
                of.formerly = Some(before.resource.clone());
            }
        }
    }
    for (number, outlook) in survey.outlooks.iter().enumerate() {
        if !writing.records[number] {
            continue;
        }
        let wanted = &survey.program.wanted[number];
        let Some(kept) = outlook.kept() else { continue };
        let (id, now) = (&wanted.desired.id, wanted.desired.marks);
        let before = survey.history.past[kept].original.marks;
        if now != before {
            let of = all.entry(id).or_insert_with(|| Recorded::of(id));
            of.protect = (now.protect != before.protect).then_some(now.protect);
            of.never_bare = (now.never_bare != before.never_bare).then_some(now.never_bare);
        }
    }
    all.into_values().collect()
}

/// Whose they are.
pub(crate) fn whose(recorded: &[Recorded]) -> BTreeSet<&ResourceId> {
    recorded.iter().map(|one| &one.resource).collect()
}
