//! What each step is expected to do (`engine.md` §3 *Forecast*, §10 step 7): the same decision
//! as when running, with unknown tokens for what is not known.

use std::collections::BTreeMap;

use notation_model::{Edge, Params, Record, RecordedEdge, ResourceType, Shape, Text, Value};

use crate::{
    Act, Change, Forecast, Goal, Intended, PlanProblem, Transition,
    decide::{decide, differing, reverted},
    outlook::{Differs, Survey},
    play::Life,
    program::contributed_fields,
    view::Moment,
};

/// Expected steps of one incarnation, in order; those with nothing to do are left out.
#[derive(Debug, Default)]
pub(crate) struct Steps {
    pub placeholder: Option<Forecast>,
    pub last: Option<Forecast>,
    /// The record without any call, when it differs from what is recorded.
    pub restated: Option<Record>,
}

/// Those of all lives. Most plans do nothing to most of them, and hardly ever two things: what is
/// rare lies apart.
#[derive(Debug)]
pub(crate) struct Expected {
    pub placeholders: BTreeMap<usize, Forecast>,
    pub last: Vec<Option<Forecast>>,
    pub restated: BTreeMap<usize, Record>,
}

impl Expected {
    pub fn with_room(lives: usize) -> Expected {
        Expected {
            placeholders: BTreeMap::new(),
            last: Vec::with_capacity(lives),
            restated: BTreeMap::new(),
        }
    }

    /// Those of the next life.
    pub fn push(&mut self, steps: Steps) {
        let life = self.last.len();
        self.last.push(steps.last);
        let Steps {
            placeholder,
            restated,
            ..
        } = steps;
        self.placeholders.extend(placeholder.map(|it| (life, it)));
        self.restated.extend(restated.map(|it| (life, it)));
    }

    pub fn writes(&self, life: usize) -> bool {
        self.last[life].is_some() || self.placeholders.contains_key(&life)
    }
}

/// A step that does something.
fn step(transition: Transition, changes: Vec<Change>, leaves_out: Vec<String>) -> Forecast {
    Forecast {
        transition,
        changes,
        leaves_out,
    }
}

/// What the steps of one incarnation are expected to do. Errors: a value that its field cannot take,
/// which the run would refuse.
pub(crate) fn of(
    survey: &Survey<'_, '_>,
    life: &Life,
    waypoint: bool,
) -> Result<Steps, Box<PlanProblem>> {
    match life.wanted() {
        Some(number) => staying(survey, number, life, waypoint),
        None => Ok(leaving(survey, life, waypoint)),
    }
}

fn leaving(survey: &Survey<'_, '_>, life: &Life, waypoint: bool) -> Steps {
    let Some(past) = life.past.map(|past| &survey.history.past[past]) else {
        return Steps::default();
    };
    Steps {
        placeholder: past
            .ty
            .filter(|_| waypoint)
            .and_then(|ty| revert(ty, &past.record)),
        last: Some(step(Transition::Delete, Vec::new(), Vec::new())),
        restated: past.restated().cloned(),
    }
}

fn revert(ty: &ResourceType, record: &Record) -> Option<Forecast> {
    match decide(Some(record), Goal::Placeholder, ty, &reverted(ty, record)) {
        Act::Update { params, changed } => Some(step(
            Transition::Revert,
            changes(changed.clone(), &record.applied, &params),
            changed,
        )),
        Act::Nothing | Act::Create(_) | Act::Delete => None,
    }
}

fn changes(fields: Vec<String>, before: &Params, after: &Params) -> Vec<Change> {
    fields
        .into_iter()
        .map(|path| Change {
            before: before.get(&path).cloned(),
            after: after.get(&path).cloned(),
            path,
        })
        .collect()
}

fn creation(shown: &Params, ty: &ResourceType) -> Vec<Change> {
    changes(differing(ty, &Params::new(), shown), &Params::new(), shown)
}

fn staying(
    survey: &Survey<'_, '_>,
    number: usize,
    life: &Life,
    waypoint: bool,
) -> Result<Steps, Box<PlanProblem>> {
    let wanted = &survey.program.wanted[number];
    let ty = wanted.ty;
    let params = |shape, moment| survey.params(number, shape, moment);
    let Some(past) = life.past.map(|past| &survey.history.past[past]) else {
        let complete = params(Shape::Complete, Moment::Step)?;
        let shown = params(Shape::Complete, Moment::Shown)?;
        if !waypoint {
            return Ok(Steps {
                last: Some(step(Transition::Create, creation(&shown, ty), Vec::new())),
                ..Steps::default()
            });
        }
        let bare = params(Shape::Placeholder, Moment::Step)?;
        let bare_shown = params(Shape::Placeholder, Moment::Shown)?;
        let changed = differing(ty, &bare, &complete);
        let leaves_out = contributed_fields(wanted.desired)
            .into_iter()
            .filter(|field| changed.contains(field))
            .collect();
        return Ok(Steps {
            placeholder: Some(step(
                Transition::Create,
                creation(&bare_shown, ty),
                leaves_out,
            )),
            last: (!changed.is_empty()).then(|| {
                let changes = changes(changed, &bare_shown, &shown);
                step(Transition::Update, changes, Vec::new())
            }),
            restated: None,
        });
    };
    let record: &Record = &past.record;
    let placeholder = waypoint.then(|| revert(ty, record)).flatten();
    let is_reverted = placeholder.is_some();
    let outlook = &survey.outlooks[number];
    let bare = is_reverted.then(|| reverted(ty, record));
    let applied = bare.as_ref().unwrap_or(&record.applied);
    if outlook.change == Differs::No && !is_reverted {
        let now = restated(survey, number, record);
        let as_found = || past.restated().cloned();
        return Ok(Steps {
            placeholder,
            last: None,
            restated: now.or_else(as_found),
        });
    }
    let complete = params(Shape::Complete, Moment::Step)?;
    let changed = differing(ty, applied, &complete);
    let sure = (record.in_doubt && !is_reverted)
        || changed.iter().any(|field| {
            !crate::decide::may_be_same_field(ty, field, applied.get(field), complete.get(field))
        });
    let writes = !changed.is_empty() || (record.in_doubt && !is_reverted);
    let last = match writes {
        true => {
            let transition = match sure {
                true => Transition::Update,
                false => Transition::Unknown,
            };
            let shown = params(Shape::Complete, Moment::Shown)?;
            Some(step(
                transition,
                changes(changed, applied, &shown),
                Vec::new(),
            ))
        }
        false => None,
    };
    Ok(Steps {
        placeholder,
        last,
        restated: past.restated().cloned(),
    })
}

/// The record of a resource whose parameters are as they should be, when it says something else:
/// edges, marks and what its placeholder is are refreshed all the same (`engine.md` §1, *Edges*).
fn restated(survey: &Survey<'_, '_>, number: usize, record: &Record) -> Option<Record> {
    let wanted = &survey.program.wanted[number];
    // Mostly they are the same, one by one.
    let edges = (!edges_are(survey, number, &record.edges))
        .then(|| recorded_edges(survey, number))
        .filter(|edges| *edges != record.edges);
    // Without contributions the placeholder is what is applied.
    let plain = wanted.desired.contributions.is_empty()
        && record.contributions.is_empty()
        && record.config == record.applied;
    let (config, contributions) = if plain {
        (None, Vec::new())
    } else {
        (
            survey.params(number, Shape::Placeholder, Moment::Step).ok(),
            contributions(survey, number),
        )
    };
    let as_recorded = record.shape == Shape::Complete
        && record.marks == wanted.desired.marks
        && record.can_be_bare == wanted.can_be_bare
        && edges.is_none()
        && config
            .as_ref()
            .is_none_or(|config| *config == record.config)
        && contributions == record.contributions;
    if as_recorded {
        return None;
    }
    let mut now = record.clone();
    now.shape = Shape::Complete;
    now.marks = wanted.desired.marks;
    now.can_be_bare = wanted.can_be_bare;
    now.edges = edges.unwrap_or(now.edges);
    now.config = config.unwrap_or(now.config);
    now.contributions = contributions;
    Some(now)
}

fn contributions(survey: &Survey<'_, '_>, number: usize) -> Vec<(Text, Value)> {
    let wanted = &survey.program.wanted[number];
    wanted
        .desired
        .contributions
        .iter()
        .map(|contribution| {
            let value = survey.resolve(number, &contribution.value, Moment::Step);
            let value = crate::params::hide(wanted.ty, &contribution.field, value);
            (contribution.field.clone(), value)
        })
        .collect()
}

/// What a staying incarnation shall be, for the executor.
pub(crate) fn intended(
    survey: &Survey<'_, '_>,
    number: usize,
    cycle: Option<crate::CycleKey>,
    edges: Vec<RecordedEdge>,
) -> Intended {
    let wanted = &survey.program.wanted[number];
    let outlook = &survey.outlooks[number];
    let mut config = wanted.desired.config.clone();
    if let (true, Some(value), Some((field, _))) =
        (outlook.key_given, &outlook.key, wanted.ty.key_field())
    {
        config.insert(field.to_owned(), notation_model::Expr::Known(value.clone()));
    }
    let mut contributions = wanted.desired.contributions.clone();
    if let Some(name @ (Value::Text(_) | Value::Secret(_))) = &outlook.key {
        config.values_mut().for_each(|expr| name_in(expr, name));
        contributions
            .iter_mut()
            .for_each(|contribution| name_in(&mut contribution.value, name));
    }
    let sensitive = |field: &str| {
        let declared = wanted.ty.fields.get(field);
        declared.is_some_and(|declared| declared.sensitive)
    };
    for (field, expr) in config.iter_mut() {
        if sensitive(field) {
            hide_in(expr);
        }
    }
    for contribution in &mut contributions {
        if sensitive(&contribution.field) {
            hide_in(&mut contribution.value);
        }
    }
    let refers: BTreeMap<_, _> = wanted
        .edges
        .iter()
        .map(|(to, edge)| (edge.to.clone(), survey.incarnation(*to)))
        .collect();
    Intended {
        ty: wanted.desired.ty.clone(),
        config,
        contributions,
        edges,
        marks: wanted.desired.marks,
        can_be_bare: wanted.can_be_bare,
        position: number,
        cycle,
        supersedes: outlook
            .replaces()
            .map(|past| survey.history.past[past].incarnation.clone()),
        may_replace: outlook.may_replace.clone(),
        refers,
    }
}

/// Puts the generated name where the program refers to it.
fn name_in(expr: &mut notation_model::Expr, name: &Value) {
    use notation_model::Expr;
    match expr {
        Expr::Name => *expr = Expr::Known(name.clone()),
        Expr::Join(items) | Expr::List(items) => {
            items.iter_mut().for_each(|item| name_in(item, name));
        }
        Expr::Map(members) => members
            .values_mut()
            .for_each(|member| name_in(member, name)),
        Expr::Known(_) | Expr::Output(_) | Expr::Secret(_) => {}
    }
}

/// Wraps what a program wrote in clear into a sensitive field, so that no plan shows it.
fn hide_in(expr: &mut notation_model::Expr) {
    use notation_model::{Expr, SecretValue};
    match expr {
        Expr::Known(value) => {
            let clear = std::mem::replace(value, Value::Null);
            *value = Value::Secret(SecretValue::new(clear));
        }
        Expr::Join(items) | Expr::List(items) => items.iter_mut().for_each(hide_in),
        Expr::Map(members) => members.values_mut().for_each(hide_in),
        Expr::Name | Expr::Output(_) | Expr::Secret(_) => {}
    }
}

/// Whether these are the references of a desired resource, one by one.
fn edges_are(survey: &Survey<'_, '_>, number: usize, recorded: &[RecordedEdge]) -> bool {
    let wanted = &survey.program.wanted[number];
    let is_same = |(now, recorded): (&(usize, Edge<'_>), &RecordedEdge)| {
        let (to, edge) = now;
        recorded.to.resource == *edge.to
            && recorded.to.generation == survey.outlooks[*to].generation
            && recorded.via == edge.via
            && recorded.holds == edge.holds(wanted.ty)
    };
    wanted.edges.len() == recorded.len() && wanted.edges.iter().zip(recorded).all(is_same)
}

/// References of a desired resource as they are recorded, each once.
pub(crate) fn recorded_edges(survey: &Survey<'_, '_>, number: usize) -> Vec<RecordedEdge> {
    let wanted = &survey.program.wanted[number];
    let mut edges: Vec<RecordedEdge> = Vec::with_capacity(wanted.edges.len());
    for (to, edge) in wanted.edges.iter() {
        let edge = RecordedEdge {
            to: survey.incarnation(*to),
            via: edge.via.clone(),
            holds: edge.holds(wanted.ty),
        };
        if wanted.edges.len() > 64 || !edges.contains(&edge) {
            edges.push(edge);
        }
    }
    edges
}
