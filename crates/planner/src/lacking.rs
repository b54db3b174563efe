//! Fields and outputs that the types of a program do not declare. A TypeScript program is told
//! before, with places; a graph built in Rust is told here.

use notation_model::{DesiredGraph, Origin, OutputRef, ResourceType, Role};

use crate::{PlanProblem, declared::Declarations, problem::Referrer};

/// What one resource gives and reads that types do not have. Whom it refers to without there being
/// one is told elsewhere.
pub(crate) fn of_resource(
    number: usize,
    ty: &ResourceType,
    declared: &Declarations<'_>,
) -> Vec<PlanProblem> {
    let desired = declared.resources[number].desired;
    let config = desired.config.keys();
    let config = config.map(|field| (field, &desired.origin));
    let contributions = desired.contributions.iter();
    let contributions = contributions.map(|it| (&it.field, &it.origin));
    let mut problems = Vec::new();
    for (field, origin) in config.chain(contributions) {
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
    }
    let by = || Referrer::Resource(desired.id.clone());
    let read = declared.edges[number].iter();
    let read = read.filter_map(|(to, edge)| Some((*to, edge.output?, edge.origin)));
    problems.extend(unread(read, &by, declared));
    problems
}

/// What exports read that is not there.
pub(crate) fn of_exports(program: &DesiredGraph, declared: &Declarations<'_>) -> Vec<PlanProblem> {
    let nowhere = Origin::default();
    let mut problems = Vec::new();
    for (name, value) in &program.exports {
        let by = || Referrer::Export(name.clone());
        let mut read = Vec::new();
        for (_, source) in value.references() {
            match program.resources.get_index_of(&source.resource) {
                Some(to) => read.push((to, source, &nowhere)),
                None => problems.push(PlanProblem::UnknownReference {
                    by: by(),
                    target: source.resource.clone(),
                    origin: nowhere.clone(),
                }),
            }
        }
        problems.extend(unread(read, &by, declared));
    }
    problems
}

/// Of what is read, with whose it is and where that is written, what types do not have.
fn unread<'a>(
    read: impl IntoIterator<Item = (usize, &'a OutputRef, &'a Origin)>,
    by: &dyn Fn() -> Referrer,
    declared: &Declarations<'_>,
) -> Vec<PlanProblem> {
    let unread = read.into_iter().filter_map(|(of, output, origin)| {
        let ty = declared.resources[of].ty?;
        let why = ty.reads(&output.path).err()?;
        Some(PlanProblem::UnknownOutput {
            by: by(),
            output: output.clone(),
            ty: ty.name.clone(),
            why,
            origin: origin.clone(),
        })
    });
    unread.collect()
}
