//! `notation state list|show|rm`: records of what is deployed.

use std::sync::Arc;

use notation_engine::{LeftBehind, RunOptions, There};
use notation_model::{DeploymentId, Params, Record, Shape, Standing, Text, Value};
use notation_state::{Call, DeploymentState};
use serde_json::{Map, Value as Json, json};

use crate::{
    advice::spelled,
    args::{Global, StateCommand},
    command::run::{self, Wanted},
    consent::Consent,
    event_loop::block_on,
    exit::Exit,
    failure::{Failure, Outcome},
    interrupt,
    printer::Printer,
    progress::Teller,
    project,
    render::{cell, value},
    session::{self, Wiring},
};

/// Lists, shows or forgets records.
pub fn run(global: &Global, command: &StateCommand, printer: &Printer) -> Outcome {
    let config = project::of_recorded(global)?;
    let (entry, verb) = match command {
        StateCommand::List { entry } => (entry, "state list"),
        StateCommand::Show { entry, .. } => (entry, "state show"),
        StateCommand::Rm { entry, .. } => (entry, "state rm"),
    };
    let (deployment, in_config) = project::deployment_or_gone(&config, entry, verb)?;
    let store = session::store(&config)?;
    let state = session::known(store.as_ref(), &deployment, in_config)?;
    match command {
        StateCommand::List { .. } => {
            list(&deployment.to_string(), &state, printer);
            Ok(Exit::Done)
        }
        StateCommand::Show { id, .. } => {
            session::was_deployed(store.as_ref(), &deployment, &state)?;
            let records = of(&deployment, &state, id.as_str())?;
            let shown: Vec<_> = records.iter().map(|record| to_json(record)).collect();
            printer.event(
                "state",
                json!({ "deployment": deployment.to_string(), "resources": shown }),
            );
            for record in records {
                printer.out(to_text(record, printer));
            }
            Ok(Exit::Done)
        }
        StateCommand::Rm { id, yes, .. } => {
            let cut_off: Vec<_> = state
                .open
                .iter()
                .filter(|open| {
                    open.incarnation().resource == *id && open.intent.call == Call::Create
                })
                .collect();
            if cut_off.is_empty() {
                of(&deployment, &state, id.as_str())?;
            }
            let recorded = state.records.values();
            let recorded = recorded.filter(|record| record.incarnation.resource == *id);
            for record in recorded.filter(|record| !record.gone) {
                printer.say(format!("{} is {}", record.incarnation, record.key));
            }
            for open in cut_off {
                printer.say(format!(
                    "{} may have been made by a run that was cut off{}",
                    open.incarnation(),
                    named(&open.intent.draft.key)
                ));
            }
            let question = format!("Forget {id}?");
            Consent::by(*yes).obtain("state rm", &question, "nothing was forgotten", printer)?;
            let wiring = Wiring::of(&config, deployment.clone(), printer)?;
            let session =
                run::session(&wiring, &Wanted::nothing(), &Arc::new(Teller::new(printer)));
            let left = block_on(async {
                interrupt::pass_on(&session);
                notation_engine::forget(&session, id, &RunOptions::default())
                    .await
                    .map_err(|error| wiring.failure(error))
            })?;
            let objects: Vec<_> = left.iter().map(left_json).collect();
            printer.event(
                "state",
                json!({
                    "deployment": deployment.to_string(),
                    "forgotten": id.as_str(),
                    "left": objects,
                }),
            );
            for object in &left {
                printer.say(left_text(object));
            }
            printer.say(format!("{id} is forgotten"));
            Ok(Exit::Done)
        }
    }
}

fn named(key: &str) -> String {
    if key.is_empty() {
        String::new()
    } else {
        format!(": {key}")
    }
}

fn left_text(left: &LeftBehind) -> String {
    let (who, key) = (&left.incarnation, named(&left.key));
    match left.there {
        There::Recorded => format!("{who} stays at its provider and is no longer known{key}"),
        There::Found => format!(
            "{who} was made by a run that was cut off; it stays at its provider and is no longer \
             known{key}"
        ),
        There::Perhaps => format!(
            "{who} may have been made by a run that was cut off, and its provider cannot tell; \
             look for the {}{key}",
            left.ty
        ),
    }
}

fn left_json(left: &LeftBehind) -> Json {
    json!({
        "resource": left.incarnation.resource.as_str(),
        "generation": left.incarnation.generation,
        "type": left.ty.as_str(),
        "key": left.key,
        "there": match left.there {
            There::Recorded => "recorded",
            There::Found => "found",
            There::Perhaps => "perhaps",
        },
    })
}

fn list(deployment: &str, state: &DeploymentState, printer: &Printer) {
    let rows: Vec<_> = state.records.values().map(brief).collect();
    printer.event(
        "state",
        json!({ "deployment": deployment, "resources": rows }),
    );
    if state.records.is_empty() {
        printer.say(format!("{deployment} has no resources"));
    }
    let names: Vec<_> = state.records.keys().map(ToString::to_string).collect();
    let id = names.iter().map(String::len).max().unwrap_or(0);
    let ty = state
        .records
        .values()
        .map(|record| record.ty.as_str().len())
        .max()
        .unwrap_or(0);
    for (name, record) in names.iter().zip(state.records.values()) {
        let marks = standing(record);
        let line = format!(
            "{name:id$}   {:ty$}   {:11}   {}",
            record.ty, marks, record.key
        );
        printer.out(cell::cut(line.trim_end(), printer.width.max(80)));
    }
}

/// What is special about a record, in one word.
fn standing(record: &Record) -> &'static str {
    if record.gone {
        "gone"
    } else if record.in_doubt {
        "in doubt"
    } else if record.standing == Standing::Superseded {
        "superseded"
    } else if record.shape == Shape::Placeholder {
        "placeholder"
    } else {
        "complete"
    }
}

fn of<'a>(
    deployment: &DeploymentId,
    state: &'a DeploymentState,
    id: &str,
) -> Result<Vec<&'a Record>, Failure> {
    let found: Vec<_> = state
        .records
        .values()
        .filter(|record| record.incarnation.resource.as_str() == id)
        .collect();
    if found.is_empty() {
        return Err(Failure::new(
            Exit::Fixable,
            "state::unknown_resource",
            format!("nothing is recorded under the id {id}"),
        )
        .help(spelled(
            "`notation state list ENTRY` shows the ids",
            deployment,
        )));
    }
    Ok(found)
}

fn brief(record: &Record) -> Json {
    json!({
        "resource": record.incarnation.resource.as_str(),
        "generation": record.incarnation.generation,
        "type": record.ty.as_str(),
        "key": record.key,
        "shape": match record.shape { Shape::Placeholder => "placeholder", Shape::Complete => "complete" },
        "standing": match record.standing { Standing::Current => "current", Standing::Superseded => "superseded" },
        "gone": record.gone,
        "in_doubt": record.in_doubt,
    })
}

fn to_json(record: &Record) -> Json {
    let params = |params: &Params| -> Map<String, Json> {
        params
            .iter()
            .map(|(name, value)| (name.to_string(), value.to_display_json()))
            .collect()
    };
    let mut object = brief(record);
    if let Json::Object(object) = &mut object {
        object.insert("applied".into(), Json::Object(params(&record.applied)));
        object.insert("config".into(), Json::Object(params(&record.config)));
        object.insert("outputs".into(), Json::Object(params(&record.outputs)));
        let edges: Vec<_> = record
            .edges
            .iter()
            .map(|edge| json!({ "to": edge.to.to_string(), "via": edge.via.to_string(), "holds": edge.holds }))
            .collect();
        object.insert("edges".into(), json!(edges));
        object.insert("protect".into(), record.marks.protect.into());
        object.insert("version".into(), record.version.into());
    }
    object
}

fn to_text(record: &Record, printer: &Printer) -> String {
    let mut text = format!(
        "{}   {}   {}   {}\n",
        cell::paint(cell::BOLD, &record.incarnation.to_string()),
        record.ty,
        standing(record),
        record.key
    );
    if record.marks.protect {
        text.push_str("  protected\n");
    }
    let room = if printer.verbose {
        usize::MAX
    } else {
        printer.width
    };
    let mut section = |title: &str, params: Vec<(&Text, &Value)>| {
        if params.is_empty() {
            return;
        }
        text.push_str(&format!("  {title}\n"));
        let width = params.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        for (name, value) in params {
            let room = room.saturating_sub(width + 6);
            text.push_str(&format!(
                "    {name:width$}  {}\n",
                value::folded(value, room)
            ));
        }
    };
    section("parameters", record.applied.iter().collect());
    let only_outputs = record
        .outputs
        .iter()
        .filter(|(name, _)| !record.applied.contains_key(name))
        .collect();
    section("outputs", only_outputs);
    if !record.edges.is_empty() {
        text.push_str("  refers to\n");
        for edge in &record.edges {
            let holds = if edge.holds { ", holds it" } else { "" };
            text.push_str(&format!("    {} (by {}{holds})\n", edge.to, edge.via));
        }
    }
    text
}
