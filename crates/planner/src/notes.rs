//! Remarks of a plan for people.

use notation_model::{OutputRef, Segment, Shape, Value};

use crate::{
    Change, Note, Plan, Subject, Transition, Why,
    outlook::{Moment, Survey},
    play::Play,
    problem::list,
};

/// Everything that the plan alone does not say, in declaration order.
pub(crate) fn notes(
    survey: &Survey<'_, '_>,
    play: &Play,
    waypoints: &[bool],
    plan: &Plan,
) -> Vec<Note> {
    let mut notes = Vec::new();
    for (number, outlook) in survey.outlooks.iter().enumerate() {
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
        if let Some(past) = outlook.made_again {
            let key = &survey.history.past[past].record.key;
            say(
                "drift",
                format!("{id} ({key}) is gone at the provider and is made again"),
                Vec::new(),
            );
        }
        if let Some(past) = outlook.kept.map(|past| &survey.history.past[past])
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
        if waypoints[number] && outlook.kept.is_none() {
            let bare = survey
                .params(number, Shape::Placeholder, Moment::Step)
                .unwrap_or_default();
            let without: Vec<String> = crate::program::contributed_fields(wanted.desired)
                .into_iter()
                .filter(|field| !bare.contains_key(field))
                .collect();
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
        if !play.lives[number].slots.is_empty() && outlook.replaces.is_some() {
            let reverted: Vec<String> = reverted(plan);
            let peers = if reverted.is_empty() {
                String::new()
            } else {
                format!(
                    "; until then {} {} reverted to a placeholder",
                    list(&reverted),
                    if reverted.len() == 1 { "is" } else { "are" }
                )
            };
            say(
                "unavailable_while_replaced",
                format!(
                    "{id} keeps its name, so it is deleted before it is made again and unavailable meanwhile{peers}. A generated name behind a stable route, alias or CNAME avoids this"
                ),
                Vec::new(),
            );
        }
    }
    for past in crate::past::unregistered(survey.history, survey.input.types) {
        let (id, ty) = (&past.incarnation.resource, &past.record.ty);
        notes.push(Note {
            code: "unknown_type",
            resource: Some(id.clone()),
            message: format!("{id} is recorded with the unknown type {ty} and left in place"),
            about: Vec::new(),
        });
    }
    notes
}

fn drifted(change: &Change) -> String {
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
        path: vec![Segment::Key(field.to_owned())],
    }
}

/// Resources that stay and are reverted.
fn reverted(plan: &Plan) -> Vec<String> {
    plan.steps
        .iter()
        .filter(|step| step.forecast.transition == Transition::Revert && step.why == Why::LetsGo)
        .filter_map(|step| match &step.key.subject {
            Subject::Incarnation(incarnation) => Some(incarnation.resource.to_string()),
            Subject::Cycle(_) => None,
        })
        .collect()
}
