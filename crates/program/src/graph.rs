//! The desired graph of what a program declared.

use std::collections::BTreeMap;

use indexmap::IndexMap;
use notation_model::{
    Contribution, DependOn, Desired, DesiredGraph, Expr, FieldKind, Marks, Origin, ResourceId,
    ResourceType, TypeName, Value,
};

use crate::{
    call_index::Part,
    code_names, codes,
    convert::expression,
    declared::{Declarations, Declared, Program, key},
    judge, locate,
    nearest::suggestion,
    problem::Problem,
    raw::{RawProblem, RawResource, RawValue},
    worker_code::ModuleRequest,
};

/// The graph and everything wrong with it. The graph counts only when nothing is.
pub(crate) struct Built {
    pub graph: DesiredGraph,
    /// Module fields in order: resource, field, file.
    pub modules: Vec<(ResourceId, String, ModuleRequest)>,
    pub problems: Vec<Problem>,
}

/// Builds and judges the graph: ids, types, fields, kinds, references, identities.
pub(crate) fn build(program: &Program<'_>) -> Built {
    let mut problems = Vec::new();
    let declared = declare(program, &mut problems);
    let ids: Vec<ResourceId> = declared.0.keys().cloned().collect();
    problems.extend(
        program
            .raw
            .problems
            .iter()
            .map(|problem| raw_problem(problem, program)),
    );

    let mut resources = IndexMap::with_capacity(declared.0.len());
    let mut modules = Vec::new();
    for resource in declared.0.values() {
        let desired = desired(resource, &ids, program, &mut problems);
        if let Some(ty) = resource.ty {
            judge::resource(&desired, ty, program, &declared, &mut problems);
            code_names::judge(&desired, ty, program, &declared, &mut problems);
            problems.extend(assignments(resource, ty, program));
            modules.extend(module_requests(&desired, ty));
        }
        resources.insert(resource.id.clone(), desired);
    }
    judge::identities(&resources, program, &mut problems);

    let exports: BTreeMap<String, Expr> = program
        .raw
        .exports
        .iter()
        .map(|(name, value)| (name.clone(), expression(value, &ids)))
        .collect();
    judge::exports(&exports, program, &declared, &mut problems);
    Built {
        graph: DesiredGraph { resources, exports },
        modules,
        problems,
    }
}

/// Ids and types. A resource whose id is missing or taken goes on under a made-up one, so that
/// everything else about it is still judged.
fn declare<'a>(program: &Program<'a>, problems: &mut Vec<Problem>) -> Declarations<'a> {
    let mut all: IndexMap<ResourceId, Declared<'a>> =
        IndexMap::with_capacity(program.raw.resources.len());
    for raw in &program.raw.resources {
        let origin = program
            .trace
            .call(&raw.stack, program.sources)
            .unwrap_or_default();
        let ty = resource_type(raw, &origin, program, problems);
        let id = match own_id(raw, ty) {
            Some(text) => match text.parse::<ResourceId>() {
                Ok(id) => Some(id),
                Err(error) => {
                    let place = locate::member(program.sources, &origin, &[key("id")], Part::Value);
                    problems.push(Problem::new(codes::INVALID_ID, error.to_string()).at(place));
                    None
                }
            },
            None if raw.bad_id => None,
            None => {
                let written = ty
                    .and_then(ResourceType::key_field)
                    .map(|(field, _)| format!(", or write its `{field}` by hand"))
                    .unwrap_or_default();
                let place = locate::member(program.sources, &origin, &[], Part::Key);
                problems.push(
                    Problem::new(codes::INVALID_ID, format!("this {} has no id", raw.ty))
                        .help(format!(
                            "give it one: `{{ id: \"...\", config: ... }}`{written}"
                        ))
                        .at(place),
                );
                None
            }
        };
        let id = match id {
            Some(id) => match all.get(&id) {
                None => id,
                Some(first) => {
                    let place =
                        |origin| locate::member(program.sources, origin, &[key("id")], Part::Value);
                    problems.push(
                        Problem::new(
                            codes::DUPLICATE_ID,
                            format!("two resources have the id {id}"),
                        )
                        .help("an id is unique in the program; give one of them another")
                        .at(place(&origin).map(|place| place.with_label("again here")))
                        .also("first here", place(&first.origin)),
                    );
                    made_up(&all)
                }
            },
            None => made_up(&all),
        };
        let declared = Declared {
            raw,
            id: id.clone(),
            origin,
            ty,
        };
        all.insert(id, declared);
    }
    Declarations(all)
}

/// An id that nobody has so far: one entry per resource, whatever is wrong with it.
fn made_up(all: &IndexMap<ResourceId, Declared<'_>>) -> ResourceId {
    (all.len()..)
        .map(|index| {
            format!("unnamed-{index}")
                .parse()
                .expect("letters, digits and a hyphen are an id")
        })
        .find(|id| !all.contains_key(id))
        .expect("there are more numbers than resources")
}

/// The id that was given, or the name that the config writes by hand.
fn own_id<'a>(raw: &'a RawResource, ty: Option<&ResourceType>) -> Option<&'a str> {
    if let Some(id) = &raw.id {
        return Some(id);
    }
    let (name, _) = ty?.key_field()?;
    raw.config.iter().find_map(|(field, value)| match value {
        RawValue::Text(text) if field == name => Some(text.as_str()),
        _ => None,
    })
}

fn resource_type<'a>(
    raw: &RawResource,
    origin: &Origin,
    program: &Program<'a>,
    problems: &mut Vec<Problem>,
) -> Option<&'a ResourceType> {
    let found = raw
        .ty
        .parse::<TypeName>()
        .ok()
        .and_then(|name| program.types.get(&name));
    if found.is_none() {
        let known: Vec<&str> = program.types.iter().map(|ty| ty.name.as_str()).collect();
        problems.push(
            Problem::new(
                codes::UNKNOWN_TYPE,
                format!("no provider knows the type {}", raw.ty),
            )
            .help(suggestion(&raw.ty, &known))
            .at(program.sources.place(origin)),
        );
    }
    found
}

fn desired(
    resource: &Declared<'_>,
    ids: &[ResourceId],
    program: &Program<'_>,
    problems: &mut Vec<Problem>,
) -> Desired {
    let raw = resource.raw;
    let origin_of = |stack: &str| {
        program
            .trace
            .call(stack, program.sources)
            .unwrap_or_default()
    };
    for option in &raw.unknown {
        let place = locate::member(program.sources, &resource.origin, &[key(option)], Part::Key);
        let options = ["id", "config", "protect", "placeholder", "formerly"];
        let in_config = resource.ty.is_some_and(|ty| ty.fields.contains_key(option));
        let help = if in_config {
            format!("write it inside `config: {{ {option}: ... }}`")
        } else {
            suggestion(option, &options)
        };
        problems.push(
            Problem::new(
                codes::INVALID_OPTION,
                format!("a resource has no option `{option}`"),
            )
            .help(help)
            .at(place),
        );
    }
    let formerly = raw
        .formerly
        .iter()
        .filter_map(|id| match id.parse() {
            Ok(id) => Some(id),
            Err(error) => {
                let place = locate::member(
                    program.sources,
                    &resource.origin,
                    &[key("formerly")],
                    Part::Value,
                );
                let error: notation_model::NameError = error;
                problems.push(Problem::new(codes::INVALID_ID, error.to_string()).at(place));
                None
            }
        })
        .collect();
    // A type that nobody knows cannot be judged; its name stands in the problem.
    let ty = raw.ty.parse().unwrap_or_else(|_| {
        "unknown/Type"
            .parse()
            .expect("a provider, a slash and a type are a type name")
    });
    Desired {
        id: resource.id.clone(),
        ty,
        config: raw
            .config
            .iter()
            .map(|(field, value)| (field.clone(), expression(value, ids)))
            .collect(),
        contributions: raw
            .contributions
            .iter()
            .map(|contribution| Contribution {
                field: contribution.field.as_str().into(),
                value: expression(&contribution.value, ids),
                origin: origin_of(&contribution.stack),
            })
            .collect(),
        depend_on: raw
            .depend_on
            .iter()
            .map(|depend| DependOn {
                target: ids[depend.target].clone(),
                origin: origin_of(&depend.stack),
            })
            .collect(),
        marks: Marks {
            protect: raw.protect,
            never_bare: raw.never_bare,
        },
        formerly,
        origin: resource.origin.clone(),
    }
}

/// Module files that a resource names, in its config and in contributions.
fn module_requests(
    desired: &Desired,
    ty: &ResourceType,
) -> Vec<(ResourceId, String, ModuleRequest)> {
    let is_module = |field: &str| {
        ty.fields
            .get(field)
            .is_some_and(|field| field.kind == FieldKind::Module)
    };
    let from_config = desired.config.iter().map(|(field, value)| {
        (
            field,
            value,
            &desired.origin,
            vec![key("config"), key(field)],
        )
    });
    let contributed = desired
        .contributions
        .iter()
        .map(|c| (&c.field, &c.value, &c.origin, vec![key(&c.field)]));
    from_config
        .chain(contributed)
        .filter(|(field, ..)| is_module(field))
        .filter_map(|(field, value, origin, path)| match value {
            Expr::Known(Value::Text(file)) => Some((
                desired.id.clone(),
                field.to_string(),
                ModuleRequest {
                    path: file.to_string(),
                    origin: origin.clone(),
                    at: path,
                },
            )),
            _ => None,
        })
        .collect()
}

/// Assignments to fields of the type: too late, and nothing would come of them.
fn assignments(resource: &Declared<'_>, ty: &ResourceType, program: &Program<'_>) -> Vec<Problem> {
    resource
        .raw
        .assigned
        .iter()
        .filter(|assigned| ty.fields.contains_key(&assigned.field))
        .map(|assigned| {
            let place = program
                .trace
                .frames(&assigned.stack, program.sources)
                .first()
                .and_then(|origin| program.sources.place(origin));
            Problem::new(
                codes::RESOURCE_IS_FIXED,
                format!(
                    "`{}` of {} cannot be set after its construction",
                    assigned.field, resource.id
                ),
            )
            .help("give it in `config`, or add it with `contribute({ ... })`")
            .at(place)
        })
        .collect()
}

fn raw_problem(raw: &RawProblem, program: &Program<'_>) -> Problem {
    let place = match &raw.exported {
        Some(name) => program
            .sources
            .get(program.entry)
            .and_then(|file| locate::export(&file, name)),
        None => raw
            .stack
            .as_deref()
            .and_then(|stack| program.trace.call(stack, program.sources))
            .and_then(|origin| match raw.argument {
                Some(index) => locate::argument(program.sources, &origin, index),
                None => locate::member(program.sources, &origin, &raw.path, Part::Value),
            }),
    };
    let problem = Problem::new(codes::known(&raw.code), &raw.message).at(place);
    match &raw.help {
        Some(help) => problem.help(help),
        None => problem,
    }
}
