//! A plan as the `plan` event of `--json` (`spec/cli.md`, *JSON*).

use notation_engine::ExportChange;
use notation_model::{Incarnation, Value};
use notation_planner::{Change, Cycle, Goal, Note, Step, Subject, Why};
use serde_json::{Map, Value as Json, json};

use crate::render::{
    plan_text::{Shown, type_of},
    recorded, transition,
};

/// Fields of the `plan` event.
pub fn plan(shown: Shown<'_>) -> Json {
    let plan = shown.plan;
    let summary = plan.summary();
    json!({
        "deployment": plan.deployment.to_string(),
        "steps": plan.steps.iter().map(|one| step(shown, one)).collect::<Vec<_>>(),
        "cycles": plan.cycles.iter().map(cycle).collect::<Vec<_>>(),
        "notes": shown.notes().map(note).collect::<Vec<_>>(),
        "recorded": recorded::to_json(&plan.recorded),
        "outputs": shown.exports.iter().map(export).collect::<Vec<_>>(),
        "summary": {
            "create": summary.create,
            "update": summary.update,
            "revert": summary.revert,
            "replace": summary.replace,
            "delete": summary.delete,
            "unchanged": summary.unchanged,
            "unknown": summary.unknown,
            "recorded": summary.recorded,
        },
    })
}

fn step(shown: Shown<'_>, step: &Step) -> Json {
    let mut object = Map::new();
    object.insert("key".into(), step.key.to_string().into());
    match &step.key.subject {
        Subject::Incarnation(incarnation) => {
            object.insert("resource".into(), incarnation.resource.to_string().into());
            if let Some(ty) = type_of(shown, step) {
                object.insert("type".into(), ty.into());
            }
            object.insert("generation".into(), incarnation.generation.into());
        }
        Subject::Cycle(key) => {
            object.insert("cycle".into(), key.to_string().into());
        }
    }
    object.insert("goal".into(), goal(step.goal).into());
    if let Some(name) = transition::name(step.forecast.transition) {
        object.insert("transition".into(), name.into());
    }
    let after: Vec<_> = step.after.iter().map(ToString::to_string).collect();
    object.insert("after".into(), json!(after));
    object.insert("why".into(), why(&step.why).into());
    if let Why::Replaces { because } = &step.why {
        object.insert("because".into(), json!(because));
    }
    if !step.forecast.leaves_out.is_empty() {
        object.insert("leaves_out".into(), json!(step.forecast.leaves_out));
    }
    let changes: Vec<_> = step.forecast.changes.iter().map(change).collect();
    object.insert("changes".into(), json!(changes));
    Json::Object(object)
}

fn change(change: &Change) -> Json {
    json!({ "path": change.path, "before": side(&change.before), "after": side(&change.after) })
}

fn export(change: &ExportChange) -> Json {
    json!({ "name": change.name, "before": side(&change.before), "after": side(&change.after) })
}

fn side(value: &Option<Value>) -> Option<Json> {
    value.as_ref().map(Value::to_display_json)
}

fn cycle(cycle: &Cycle) -> Json {
    let names = |incarnations: &[Incarnation]| {
        incarnations
            .iter()
            .map(|incarnation| incarnation.resource.to_string())
            .collect::<Vec<_>>()
    };
    json!({
        "key": cycle.key.to_string(),
        "members": names(&cycle.members),
        "placeholders": names(&cycle.placeholders),
        "passes": cycle.passes,
        "may_write": names(&cycle.may_write),
    })
}

fn note(note: &Note) -> Json {
    let about: Vec<_> = note.about.iter().map(ToString::to_string).collect();
    json!({
        "code": note.code,
        "resource": note.resource.as_ref().map(ToString::to_string),
        "message": note.message,
        "about": about,
    })
}

/// Name of a goal in JSON.
pub fn goal(goal: Goal) -> &'static str {
    match goal {
        Goal::Placeholder => "placeholder",
        Goal::Complete => "complete",
        Goal::Absent => "absent",
        Goal::Settled => "settled",
    }
}

/// Name of a reason in JSON.
fn why(why: &Why) -> &'static str {
    match why {
        Why::New => "new",
        Why::Gone => "gone",
        Why::Changed => "changed",
        Why::Drift => "drift",
        Why::Replaces { .. } => "replaces",
        Why::Replaced => "replaced",
        Why::Removed => "removed",
        Why::OpensLoop => "opens_loop",
        Why::LetsGo => "lets_go",
        Why::InDoubt => "in_doubt",
        Why::Settles => "settles",
        Why::Unchanged => "unchanged",
    }
}
