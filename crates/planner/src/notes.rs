//! Remarks of a plan for people.

use std::cell::LazyCell;

use indexmap::IndexMap;
use notation_model::{OutputRef, Segment, Shape, Value};

use crate::{
    Change, Note, Plan, Role, Step, StepKey, Subject,
    loopless::Loopless,
    outlook::{Lineage, Survey},
    play::Play,
    problem::list,
    secrecy::{Secrecy, in_clear},
    view::Moment,
    writing::Writing,
};

/// Everything that the plan alone does not say, in declaration order.
pub(crate) fn notes(
    survey: &Survey<'_, '_>,
    play: &Play,
    waypoints: &[bool],
    writing: &Writing,
    plan: &Plan,
) -> Vec<Note> {
    let mut notes = Vec::new();
    let order = LazyCell::new(|| Before::of(plan, play));
    for (number, outlook) in survey.outlooks.iter().enumerate() {
        if !writing.records[number] {
            continue;
        }
        let wanted = &survey.program.wanted[number];
        let id = &wanted.desired.id;
        let mut say = |code, message, about| {
            notes.push(Note {
                code,
                resource: Some(id.clone()),
                message,
                about,
            });
        };
        if let Lineage::Gone(past) = outlook.lineage {
            let past = &survey.history.past[past];
            let key = &past.record.key;
            let message = match past.foreign {
                None => format!("{id} ({key}) is gone at the provider and is made again"),
                Some(owner) => format!(
                    "{id} ({key}) is there, but belongs to {owner} by now: ours is gone and made \
                     again"
                ),
            };
            say("drift", message, Vec::new());
        }
        // What drift replaces is drift too.
        if let Some(past) = outlook
            .kept()
            .or(outlook.replaces())
            .map(|past| &survey.history.past[past])
            && !past.drift.is_empty()
        {
            let found: Vec<String> = past.drift.iter().map(drifted).collect();
            say(
                "drift",
                format!("{id} differs at the provider: {}", found.join(", ")),
                past.drift
                    .iter()
                    .map(|change| field_of(id, &change.path))
                    .collect(),
            );
        }
        if outlook.name_cut
            && let Some(name) = outlook.key.as_ref().and_then(Value::as_text)
        {
            say(
                "name_cut",
                format!("the generated name of {id} does not fit its service and becomes {name}"),
                Vec::new(),
            );
        }
        if !outlook.may_replace.is_empty() {
            say(
                "may_replace",
                format!(
                    "{id} is replaced if {} turns out to change",
                    list(&outlook.may_replace)
                ),
                outlook
                    .may_replace
                    .iter()
                    .map(|field| field_of(id, field))
                    .collect(),
            );
        }
        if survey.is_written(number) {
            let secrecy = Secrecy::of(survey.input.desired, survey.input.types);
            for (field, instead) in in_clear(wanted.desired, wanted.ty, secrecy) {
                say(
                    "secret_in_clear",
                    format!(
                        "`{field}` of {id} is given a secret and is no secret field of {}: it is \
                         kept in clear there; use `{instead}`",
                        wanted.ty.name
                    ),
                    vec![field_of(id, field)],
                );
            }
        }
        if waypoints[number] && outlook.kept().is_none() {
            let bare = survey
                .params(number, Shape::Placeholder, Moment::Step)
                .unwrap_or_default();
            let without: Vec<String> = crate::program::contributed_fields(wanted.desired)
                .into_iter()
                .filter(|field| !bare.contains_key(field))
                .collect();
            let complete = survey
                .params(number, Shape::Complete, Moment::Step)
                .unwrap_or_default();
            if crate::decide::differing(wanted.ty, &bare, &complete).is_empty() {
                continue;
            }
            let without = if without.is_empty() {
                "in its bare shape".to_owned()
            } else {
                format!("without {}", list(&without))
            };
            say(
                "placeholder_live",
                format!("{id} is live {without} until what it refers to exists"),
                Vec::new(),
            );
        }
        if let Some(old) = outlook.replaces().and_then(|past| play.life_of_past[past])
            && order.goes_first(old, number)
        {
            say(
                "unavailable_while_replaced",
                unavailable(play, &order, number, old),
                Vec::new(),
            );
        }
    }
    notes.extend(dropped(survey, play, plan));
    for past in crate::past::unregistered(survey.history) {
        let (id, ty) = (&past.incarnation.resource, &past.record.ty);
        notes.push(Note {
            code: "unknown_type",
            resource: Some(id.clone()),
            message: format!("{id} is recorded with the unknown type {ty} and left in place"),
            about: Vec::new(),
        });
    }
    for (left, holder) in &play.left_in_place {
        let past = &survey.history.past;
        let (id, holder) = (
            &past[*left].incarnation.resource,
            &past[*holder].incarnation.resource,
        );
        notes.push(Note {
            code: "left_in_place",
            resource: Some(id.clone()),
            message: format!("{id} is left in place, since {holder} is and refers to it"),
            about: Vec::new(),
        });
    }
    notes
}

/// Records that are dropped without a call, since what they stood for is not there to remove.
fn dropped<'s>(
    survey: &'s Survey<'_, '_>,
    play: &'s Play,
    plan: &'s Plan,
) -> impl Iterator<Item = Note> + 's {
    let dropped = survey
        .history
        .past
        .iter()
        .enumerate()
        .filter(|(index, past)| {
            past.gone()
                && play.life_of_past[*index].is_none()
                && plan.forgotten.contains(&past.original.incarnation)
        });
    dropped.map(|(_, past)| {
        let (who, key) = (&past.incarnation, &past.record.key);
        let message = match past.foreign {
            None => format!("{who} ({key}) is gone at the provider; its record is dropped"),
            Some(owner) => format!(
                "{who} ({key}) is there, but belongs to {owner} by now: it is left alone, and its \
                 record is dropped"
            ),
        };
        Note {
            code: "drift",
            resource: Some(who.resource.clone()),
            message,
            about: Vec::new(),
        }
    })
}

fn drifted(change: &Change) -> String {
    let secret = |value: &Option<Value>| matches!(value, Some(Value::Secret(_)));
    if secret(&change.after) && secret(&change.before) {
        return format!("{} is another secret value", change.path);
    }
    let shown = |value: &Option<Value>| match value {
        Some(value) => value.to_display_json().to_string(),
        None => "nothing".to_owned(),
    };
    format!(
        "{} is {} instead of {}",
        change.path,
        shown(&change.after),
        shown(&change.before)
    )
}

fn field_of(resource: &notation_model::ResourceId, field: &str) -> OutputRef {
    OutputRef {
        resource: resource.clone(),
        path: [Segment::Key(field.into())].into(),
    }
}

/// What a delete before the creation means, who is reverted for it, and the way out.
fn unavailable(play: &Play, order: &Before<'_>, number: usize, old: usize) -> String {
    let id = &play.lives[number].incarnation.resource;
    let reverted: Vec<String> = play.holders[old]
        .iter()
        .filter(|holder| play.lives[holder.who].stays())
        .filter(|holder| order.at(holder.who, Role::Placeholder).is_some())
        .map(|holder| play.lives[holder.who].incarnation.resource.to_string())
        .collect();
    let peers = match reverted.as_slice() {
        [] => String::new(),
        [one] => format!("; {one} is reverted to a placeholder until then"),
        several => format!(
            "; {} are reverted to placeholders until then",
            list(several)
        ),
    };
    let way_out = if play.slots[number].contains(&old) {
        ". A generated name behind a stable route, alias or CNAME avoids this"
    } else {
        ""
    };
    format!("{id} is deleted before it is made again and unavailable meanwhile{peers}{way_out}")
}

/// Which steps of a plan come before which.
struct Before<'p> {
    play: &'p Play,
    position: IndexMap<&'p StepKey, usize>,
    steps: Loopless,
}

impl<'p> Before<'p> {
    fn of(plan: &'p Plan, play: &'p Play) -> Before<'p> {
        let keys = plan.steps.iter().enumerate();
        let position: IndexMap<&StepKey, usize> =
            keys.map(|(position, step)| (&step.key, position)).collect();
        let after = |step: &'p Step| {
            step.after
                .iter()
                .filter_map(|key| position.get(key).copied())
        };
        let steps = Loopless::new(&plan.steps.iter().map(after).collect());
        Before {
            play,
            position,
            steps,
        }
    }

    /// Where a step is in the plan; `None` when it does nothing.
    fn at(&self, life: usize, role: Role) -> Option<usize> {
        let key = StepKey {
            subject: Subject::Incarnation(self.play.lives[life].incarnation.clone()),
            role,
        };
        self.position.get(&key).copied()
    }

    /// Whether the old incarnation must be gone before the new one is there.
    fn goes_first(&self, old: usize, new: usize) -> bool {
        let placeholder = self.at(new, Role::Placeholder);
        let first = placeholder.or_else(|| self.at(new, Role::Complete));
        let gone = self.at(old, Role::Absent);
        // Thousands may wait for one delete that waits for thousands.
        matches!((first, gone), (Some(first), Some(gone)) if self.steps.waits(first, gone))
    }
}
