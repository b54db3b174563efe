//! Judges declared resources against their types: fields, kinds, references, identities.

use std::collections::BTreeMap;

use indexmap::IndexMap;
use notation_model::{
    Collector, Desired, Expr, Field, FieldKind, NoOutput, Origin, OutputRef, Presence, ResourceId,
    ResourceType, Role, Segment, Value,
};

use crate::{
    call_index::Part,
    codes,
    convert::{expression, is_refused},
    declared::{Declarations, Declared, Program, key},
    locate,
    nearest::suggestion,
    problem::Problem,
    raw::RawStep,
    source::Place,
};

/// One value for one field: from the config or from a contribution.
pub(crate) struct Given<'a> {
    pub field: &'a str,
    pub value: &'a Expr,
    pub origin: &'a Origin,
    by: By,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    Config,
    Contribution,
}

impl Given<'_> {
    /// The way to the value in what the call is given.
    pub fn path(&self) -> Vec<RawStep> {
        match self.by {
            By::Config => vec![key("config"), key(self.field)],
            By::Contribution => vec![key(self.field)],
        }
    }

    fn place(&self, program: &Program<'_>, part: Part) -> Option<Place> {
        locate::member(program.sources, self.origin, &self.path(), part)
    }
}

/// Everything that is wrong with one resource by itself.
pub(crate) fn resource(
    desired: &Desired,
    ty: &ResourceType,
    program: &Program<'_>,
    all: &Declarations<'_>,
    problems: &mut Vec<Problem>,
) {
    let given: Vec<Given<'_>> = given(desired);
    for given in &given {
        match ty.fields.get(given.field) {
            Some(field) if field.role == Role::Param => {
                kind(given, field, ty, program, all, problems);
            }
            Some(_) => problems.push(
                Problem::new(
                    codes::COMPUTED_FIELD,
                    format!("`{}` of {} is set by the provider", given.field, ty.name),
                )
                .help("it can be read as a property of the resource, not given")
                .at(given.place(program, Part::Key)),
            ),
            None => {
                let params: Vec<&str> = ty.params().map(|(name, _)| name).collect();
                problems.push(
                    Problem::new(
                        codes::UNKNOWN_FIELD,
                        format!("{} has no field `{}`", ty.name, given.field),
                    )
                    .help(suggestion(given.field, &params))
                    .at(given.place(program, Part::Key)),
                );
            }
        }
        references(given, program, all, problems);
    }
    for (name, field) in ty.params() {
        let values: Vec<&Given<'_>> = given.iter().filter(|given| given.field == name).collect();
        counted(desired, ty, name, field, &values, program, problems);
    }
}

/// Every value of a resource, in the order in which it is given.
pub(crate) fn given(desired: &Desired) -> Vec<Given<'_>> {
    let config = desired.config.iter().map(|(field, value)| Given {
        field,
        value,
        origin: &desired.origin,
        by: By::Config,
    });
    let contributed = desired.contributions.iter().map(|contribution| Given {
        field: &contribution.field,
        value: &contribution.value,
        origin: &contribution.origin,
        by: By::Contribution,
    });
    config.chain(contributed).collect()
}

/// How often a field is given: required at least once, at most once without `collect`.
fn counted(
    desired: &Desired,
    ty: &ResourceType,
    name: &str,
    field: &Field,
    values: &[&Given<'_>],
    program: &Program<'_>,
    problems: &mut Vec<Problem>,
) {
    if values.is_empty() && field.presence == Presence::Required {
        let place = locate::member(
            program.sources,
            &desired.origin,
            &[key("config")],
            Part::Key,
        );
        let or = if field.collect.is_some() {
            format!(", or by `contribute({{ {name}: ... }})`")
        } else {
            String::new()
        };
        problems.push(
            Problem::new(
                codes::MISSING_FIELD,
                format!("{} needs `{name}` ({})", desired.id, ty.name),
            )
            .help(format!("give it in `config`{or}: {}", field.doc))
            .at(place),
        );
    }
    if field.collect.is_some() {
        return;
    }
    let mut values = values.iter();
    let Some(first) = values.next() else { return };
    for second in values {
        problems.push(
            Problem::new(
                codes::SECOND_VALUE,
                format!(
                    "`{name}` of {} takes one value and is given two",
                    desired.id
                ),
            )
            .help(format!(
                "{} does not collect `{name}`; keep one of them",
                ty.name
            ))
            .at(second
                .place(program, Part::Key)
                .map(|place| place.with_label("second value")))
            .also("first value", first.place(program, Part::Key)),
        );
    }
}

fn kind(
    given: &Given<'_>,
    field: &Field,
    ty: &ResourceType,
    program: &Program<'_>,
    all: &Declarations<'_>,
    problems: &mut Vec<Problem>,
) {
    let merged = field.collect == Some(Collector::Merge);
    let fits = match field.collect {
        // One item stands for a list of it.
        Some(Collector::Flatten) => !matches!(given.value, Expr::Known(Value::Null)),
        Some(Collector::Merge) => takes(&FieldKind::Map, given.value, all),
        None => takes(&field.kind, given.value, all),
    };
    if fits || is_refused(given.value) {
        return;
    }
    let wanted = if merged { &FieldKind::Map } else { &field.kind };
    let mut problem = Problem::new(
        codes::WRONG_KIND,
        format!(
            "`{}` of {} takes {}, not {}",
            given.field,
            ty.name,
            kind_text(wanted),
            found_text(given.value, all)
        ),
    )
    .at(given.place(program, Part::Value));
    if matches!(given.value, Expr::Known(Value::Null)) {
        problem = problem.help("leave the field out instead of giving null");
    } else if *wanted == FieldKind::Text
        && let Expr::Output(source) = given.value
    {
        problem = problem.help(format!(
            "make it a text: `${{{source}}}` in a template string"
        ));
    }
    problems.push(problem);
}

fn takes(kind: &FieldKind, value: &Expr, all: &Declarations<'_>) -> bool {
    if let Expr::Output(source) = value {
        return match (kind, output_kind(source, all)) {
            (FieldKind::Json, _) | (_, None) => *kind != FieldKind::Module,
            (FieldKind::Module, Some(_)) => false,
            (wanted, Some(found)) => *wanted == found,
        };
    }
    match kind {
        FieldKind::Json => true,
        FieldKind::Text => matches!(
            value,
            Expr::Known(Value::Text(_)) | Expr::Join(_) | Expr::Name | Expr::Secret(_)
        ),
        FieldKind::Number => matches!(value, Expr::Known(Value::Int(_) | Value::Float(_))),
        FieldKind::Bool => matches!(value, Expr::Known(Value::Bool(_))),
        FieldKind::List => matches!(value, Expr::Known(Value::List(_)) | Expr::List(_)),
        FieldKind::Map => matches!(value, Expr::Known(Value::Map(_)) | Expr::Map(_)),
        FieldKind::Module => matches!(value, Expr::Known(Value::Text(_))),
    }
}

/// The kind of a whole property; `None` when it may be anything, or is a part of one.
pub(crate) fn output_kind(source: &OutputRef, all: &Declarations<'_>) -> Option<FieldKind> {
    let [Segment::Key(name)] = source.path.as_slice() else {
        return None;
    };
    let field = all.get(&source.resource)?.ty?.fields.get(name.as_str())?;
    match field.kind {
        FieldKind::Json => None,
        // What a module becomes is a map.
        FieldKind::Module => Some(FieldKind::Map),
        ref kind @ (FieldKind::Text
        | FieldKind::Number
        | FieldKind::Bool
        | FieldKind::List
        | FieldKind::Map) => Some(kind.clone()),
    }
}

fn kind_text(kind: &FieldKind) -> &'static str {
    match kind {
        FieldKind::Text => "a text",
        FieldKind::Number => "a number",
        FieldKind::Bool => "true or false",
        FieldKind::List => "a list",
        FieldKind::Map => "an object",
        FieldKind::Json => "any data",
        FieldKind::Module => "the path of a module file",
    }
}

fn found_text(value: &Expr, all: &Declarations<'_>) -> String {
    match value {
        Expr::Known(Value::Null) => "null".into(),
        Expr::Known(Value::Bool(truth)) => truth.to_string(),
        Expr::Known(Value::Int(_) | Value::Float(_)) => "a number".into(),
        Expr::Known(Value::List(_)) | Expr::List(_) => "a list".into(),
        Expr::Known(Value::Map(_)) | Expr::Map(_) => "an object".into(),
        Expr::Known(Value::Text(_)) => "a text".into(),
        Expr::Known(Value::Asset(_) | Value::Secret(_) | Value::Unknown(_)) => "that".into(),
        Expr::Join(_) => "a text with references".into(),
        Expr::Secret(name) => format!("the secret {name}"),
        Expr::Name => "a name".into(),
        Expr::Output(source) => match output_kind(source, all) {
            Some(kind) => format!("`{source}`, which is {}", kind_text(&kind)),
            None => format!("`{source}`"),
        },
    }
}

/// References of a value to properties that do not exist.
fn references(
    given: &Given<'_>,
    program: &Program<'_>,
    all: &Declarations<'_>,
    problems: &mut Vec<Problem>,
) {
    for (_, source) in given.value.references() {
        if let Some((problem, name)) = unknown_output(source, program, all) {
            problems.push(problem.at(locate::property(program.sources, given.origin, &name)));
        }
    }
}

fn unknown_output(
    source: &OutputRef,
    program: &Program<'_>,
    all: &Declarations<'_>,
) -> Option<(Problem, String)> {
    let target = all.get(&source.resource)?;
    let ty = target.ty?;
    let read = ty.reads(&source.path);
    if let Ok((name, _)) | Err(NoOutput::NoParts { name, .. }) = &read
        && let Some(field) = ty.fields.get(name.as_str())
        && let Some(problem) = absent(target, ty, name, field, program)
    {
        return Some((problem, name.to_string()));
    }
    match read {
        Ok(_) | Err(NoOutput::Empty) => None,
        Err(NoOutput::NoParts { name, kind, part }) => {
            let problem = Problem::new(
                codes::UNKNOWN_OUTPUT,
                format!(
                    "`{}.{name}` is {}, so it has no `{part}`",
                    spoken(target),
                    kind_text(&kind)
                ),
            )
            .help("hand it on as a whole, or put it into a template string: its value is only known while deploying");
            Some((problem, part.to_string()))
        }
        Err(NoOutput::Unknown { name }) => {
            let known: Vec<&str> = ty.fields.keys().map(String::as_str).collect();
            let problem = Problem::new(
                codes::UNKNOWN_OUTPUT,
                format!("{} ({}) has no property `{name}`", spoken(target), ty.name),
            )
            .help(suggestion(&name, &known));
            Some((problem, name.to_string()))
        }
    }
}

/// An output that is not there, because of a parameter whose value is known.
fn absent(
    target: &Declared<'_>,
    ty: &ResourceType,
    name: &str,
    field: &Field,
    program: &Program<'_>,
) -> Option<Problem> {
    let (param, wanted) = field.only_with.as_ref()?;
    let config = target.raw.config.iter().find(|(field, _)| field == param);
    let contributed = target.raw.contributions.iter().find(|c| c.field == *param);
    let given = match (config, contributed, &ty.fields.get(*param)?.presence) {
        (Some((_, value)), _, _) => expression(value, &[]),
        (None, Some(contribution), _) => expression(&contribution.value, &[]),
        (None, None, Presence::Default(value)) => Expr::Known(value.clone()),
        (None, None, Presence::Required | Presence::Optional) => return None,
    };
    let Expr::Known(given) = given else {
        return None;
    };
    if given == *wanted {
        return None;
    }
    let place = locate::member(
        program.sources,
        &target.origin,
        &[key("config"), key(param)],
        Part::Key,
    );
    let id = spoken(target);
    let problem = Problem::new(
        codes::UNKNOWN_OUTPUT,
        format!(
            "{id} ({}) has no `{name}`, because its `{param}` is {}",
            ty.name,
            given.to_display_json()
        ),
    )
    .help(format!(
        "give {id} `{param}: {}`, or do without `{name}`",
        wanted.to_display_json()
    ));
    Some(problem.also("given here", place))
}

/// The id as it was written, also when it could not be kept.
fn spoken<'d>(resource: &'d Declared<'_>) -> &'d str {
    resource.raw.id.as_deref().unwrap_or(resource.id.as_str())
}

/// References of exports to properties that do not exist.
pub(crate) fn exports(
    exports: &BTreeMap<String, Expr>,
    program: &Program<'_>,
    all: &Declarations<'_>,
    problems: &mut Vec<Problem>,
) {
    for (export, value) in exports {
        for (_, source) in value.references() {
            if let Some((problem, name)) = unknown_output(source, program, all) {
                let place = program
                    .sources
                    .get(program.entry)
                    .and_then(|file| locate::export_property(&file, export, &name));
                problems.push(problem.at(place));
            }
        }
    }
}

/// Two resources that claim one object: the same key in the same space (`engine.md` §1).
pub(crate) fn identities(
    resources: &IndexMap<ResourceId, Desired>,
    program: &Program<'_>,
    problems: &mut Vec<Problem>,
) {
    let mut owners: BTreeMap<(&str, &str), &Desired> = BTreeMap::new();
    for desired in resources.values() {
        let Some(ty) = program.types.get(&desired.ty) else {
            continue;
        };
        let Some((field, _)) = ty.key_field() else {
            continue;
        };
        let Some(Expr::Known(Value::Text(name))) = desired.config.get(field) else {
            continue;
        };
        if let Some(first) = owners.insert((&ty.identity_space, name), desired) {
            let place = |desired: &Desired| {
                let path = [key("config"), key(field)];
                locate::member(program.sources, &desired.origin, &path, Part::Value)
            };
            problems.push(
                Problem::new(
                    codes::DUPLICATE_IDENTITY,
                    format!("{} and {} are both named {name}", first.id, desired.id),
                )
                .help(
                    "one name is one object; choose another, or leave it out to have it generated",
                )
                .at(place(desired).map(|place| place.with_label("again here")))
                .also("first here", place(first)),
            );
        }
    }
}
