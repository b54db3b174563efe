//! Fields and outputs that the types of a program do not declare. A TypeScript program is told
//! before, with places; a graph built in Rust is told here.

use notation_model::{Desired, DesiredGraph, Expr, Origin, ResourceType, Role};

use crate::{PlanProblem, declared::Declarations, problem::Referrer};

/// What one resource gives and reads that types do not have. Whom it refers to without there being
/// one is told elsewhere.
pub(crate) fn of_resource(
    desired: &Desired,
    ty: &ResourceType,
    program: &DesiredGraph,
    declared: &Declarations<'_>,
) -> Vec<PlanProblem> {
    let config = desired.config.iter();
    let config = config.map(|(field, value)| (field, value, &desired.origin));
    let contributions = desired.contributions.iter();
    let contributions = contributions.map(|it| (&it.field, &it.value, &it.origin));
    let mut problems = Vec::new();
    for (field, value, origin) in config.chain(contributions) {
        let known = ty.fields.get(field.as_str());
        if known.is_none_or(|field| field.role == Role::Computed) {
            problems.push(PlanProblem::UnknownField {
                resource: desired.id.clone(),
                ty: ty.name.clone(),
                field: field.to_string(),
                is_output: known.is_some(),
                origin: origin.clone(),
            });
        }
        let by = || Referrer::Resource(desired.id.clone());
        problems.extend(outputs(value, origin, &by, program, declared));
    }
    problems
}

/// What exports read that is not there.
pub(crate) fn of_exports(program: &DesiredGraph, declared: &Declarations<'_>) -> Vec<PlanProblem> {
    let nowhere = Origin::default();
    let mut problems = Vec::new();
    for (name, value) in &program.exports {
        let by = || Referrer::Export(name.clone());
        for (_, source) in value.references() {
            if !program.resources.contains_key(&source.resource) {
                problems.push(PlanProblem::UnknownReference {
                    by: by(),
                    target: source.resource.clone(),
                    origin: nowhere.clone(),
                });
            }
        }
        problems.extend(outputs(value, &nowhere, &by, program, declared));
    }
    problems
}

fn outputs(
    value: &Expr,
    origin: &Origin,
    by: &dyn Fn() -> Referrer,
    program: &DesiredGraph,
    declared: &Declarations<'_>,
) -> Vec<PlanProblem> {
    let references = value.references().into_iter();
    let unread = references.filter_map(|(_, source)| {
        let place = program.resources.get_index_of(&source.resource)?;
        let ty = declared.resources[place].ty?;
        let why = ty.reads(&source.path).err()?;
        Some(PlanProblem::UnknownOutput {
            by: by(),
            output: source.clone(),
            ty: ty.name.clone(),
            why,
            origin: origin.clone(),
        })
    });
    unread.collect()
}
