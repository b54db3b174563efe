//! What can be deployed at all: a property of the program alone (`engine.md` §2, §10 step 1).

use std::collections::BTreeMap;

use notation_model::{Desired, DesiredGraph, Presence, ResourceId, ResourceType, Role, TypeSet};

use crate::{
    PlanProblem,
    declared::{Declarations, declared},
    lacking,
    problem::{Claimant, Referrer},
    secrecy::{Secrecy, secret_key},
    unbreakable::unopened,
};

/// Accepts a program that can be deployed where nothing exists yet.
///
/// Errors: everything that every plan of it is refused for, whatever state there is, in
/// declaration order, loops last.
pub fn judge(desired: &DesiredGraph, types: &TypeSet) -> Result<(), Vec<PlanProblem>> {
    let problems = problems(desired, types, &declared(desired, types));
    if problems.is_empty() {
        Ok(())
    } else {
        Err(problems)
    }
}

/// Everything that is wrong with the program alone, in declaration order, loops last.
pub(crate) fn problems(
    program: &DesiredGraph,
    types: &TypeSet,
    declared: &Declarations<'_>,
) -> Vec<PlanProblem> {
    let mut problems = Vec::new();
    let secrecy = Secrecy::of(program, types);
    for (number, resource) in declared.resources.iter().enumerate() {
        let desired = resource.desired;
        let Some(ty) = resource.ty else {
            problems.push(PlanProblem::UnknownType {
                resource: desired.id.clone(),
                ty: desired.ty.clone(),
                origin: desired.origin.clone(),
            });
            continue;
        };
        let dangling = declared.dangling[number].iter();
        problems.extend(dangling.map(|edge| PlanProblem::UnknownReference {
            by: Referrer::Resource(desired.id.clone()),
            target: edge.to.clone(),
            origin: edge.origin.clone(),
        }));
        problems.extend(lacking::of_resource(number, ty, declared));
        problems.extend(second_values(desired, ty));
        problems.extend(missing_fields(desired, ty));
        problems.extend(secret_key(desired, ty, secrecy));
    }
    problems.extend(lacking::of_exports(program, declared));
    problems.extend(claimed_twice(program));
    let loops = unopened(declared);
    problems.extend(loops.into_iter().map(PlanProblem::Loop));
    problems
}

/// Earlier ids that two resources claim, or that a resource of the program has: whose record
/// would go on there cannot be told.
fn claimed_twice(program: &DesiredGraph) -> Vec<PlanProblem> {
    let claimant = |desired: &Desired| Claimant {
        resource: desired.id.clone(),
        origin: desired.origin.clone(),
    };
    let mut claims: BTreeMap<&ResourceId, Vec<Claimant>> = BTreeMap::new();
    for desired in program.resources.values() {
        for former in &desired.formerly {
            let by = claims.entry(former).or_insert_with(|| {
                program
                    .resources
                    .get(former)
                    .map(claimant)
                    .into_iter()
                    .collect()
            });
            if by.iter().all(|claimant| claimant.resource != desired.id) {
                by.push(claimant(desired));
            }
        }
    }
    claims
        .into_iter()
        .filter(|(former, by)| by.len() > 1 || by.iter().any(|one| one.resource == **former))
        .map(|(former, by)| PlanProblem::ClaimedTwice {
            former: former.clone(),
            by,
        })
        .collect()
}

fn second_values(desired: &Desired, ty: &ResourceType) -> Vec<PlanProblem> {
    if desired.contributions.is_empty() {
        return Vec::new();
    }
    let mut given: BTreeMap<&str, &notation_model::Origin> = desired
        .config
        .keys()
        .map(|field| (field.as_str(), &desired.origin))
        .collect();
    let mut problems = Vec::new();
    for contribution in &desired.contributions {
        let field = contribution.field.as_str();
        let collects = ty
            .fields
            .get(field)
            .is_some_and(|declared| declared.collect.is_some());
        if collects {
            continue;
        }
        if let Some(first) = given.insert(field, &contribution.origin) {
            problems.push(PlanProblem::SecondValue {
                resource: desired.id.clone(),
                field: field.to_owned(),
                first: first.clone(),
                second: contribution.origin.clone(),
            });
        }
    }
    problems
}

fn missing_fields(desired: &Desired, ty: &ResourceType) -> Vec<PlanProblem> {
    ty.fields
        .iter()
        .filter(|(name, field)| {
            let generated = field.key && ty.naming.is_some();
            let given = desired.config.contains_key(name)
                || desired
                    .contributions
                    .iter()
                    .any(|contribution| contribution.field == **name);
            field.role == Role::Param
                && field.presence == Presence::Required
                && !generated
                && !given
        })
        .map(|(name, _)| PlanProblem::MissingField {
            resource: desired.id.clone(),
            field: name.clone(),
            origin: desired.origin.clone(),
        })
        .collect()
}
