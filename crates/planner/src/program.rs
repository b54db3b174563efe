//! The desired graph with numbers in place of ids: what refers to what, and its cycles.

use std::collections::{BTreeMap, BTreeSet};

use indexmap::IndexMap;
use notation_model::{
    Desired, DesiredGraph, Edge, Presence, ResourceId, ResourceType, Role, TypeSet, Via,
};

use crate::{PlanInput, PlanProblem, graph::Graph, judge::unopened, problem::Claimant};

/// One desired resource.
pub(crate) struct Wanted<'a> {
    pub desired: &'a Desired,
    pub ty: &'a ResourceType,
    /// Every reference with the number of its target.
    pub edges: Vec<(usize, Edge<'a>)>,
    /// It can be created without its contributions.
    pub can_be_bare: bool,
    /// Position in `Program::components`.
    pub component: usize,
    /// Position in `Program::cycles`.
    pub cycle: Option<usize>,
}

/// Desired resources in declaration order.
pub(crate) struct Program<'a> {
    pub wanted: Vec<Wanted<'a>>,
    pub number: IndexMap<&'a ResourceId, usize>,
    /// Strongly connected parts; what others refer to comes first.
    pub components: Graph,
    /// Parts with a loop, by their first member; members in declaration order.
    pub cycles: Vec<Vec<usize>>,
}

impl<'a> Program<'a> {
    pub fn get(&self, id: &ResourceId) -> Option<usize> {
        self.number.get(id).copied()
    }
}

/// Everything that is wrong with the program alone, in declaration order, loops last.
pub(crate) fn problems(program: &DesiredGraph, types: &TypeSet) -> Vec<PlanProblem> {
    let mut problems = Vec::new();
    for desired in program.resources.values() {
        let Some(ty) = types.get(&desired.ty) else {
            problems.push(PlanProblem::UnknownType {
                resource: desired.id.clone(),
                ty: desired.ty.clone(),
                origin: desired.origin.clone(),
            });
            continue;
        };
        for edge in desired.edges() {
            if !program.resources.contains_key(edge.to) {
                problems.push(PlanProblem::UnknownReference {
                    resource: desired.id.clone(),
                    target: edge.to.clone(),
                    origin: edge.origin.clone(),
                });
            }
        }
        problems.extend(second_values(desired, ty));
        problems.extend(missing_fields(desired, ty));
        problems.extend(secret_key(desired, ty));
    }
    problems.extend(claimed_twice(program));
    let loops = unopened(program, types);
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

fn secret_key(desired: &Desired, ty: &ResourceType) -> Option<PlanProblem> {
    let (field, _) = ty.key_field()?;
    let is_secret = !desired.config.get(field)?.secrets().is_empty();
    is_secret.then(|| PlanProblem::SecretKey {
        resource: desired.id.clone(),
        field: field.to_owned(),
        origin: desired.origin.clone(),
    })
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

/// The program, or the part of it that `scope` names (closed under references). References
/// resolve and types are registered: `problems` was empty.
pub(crate) fn program<'a>(
    input: &PlanInput<'a>,
    scope: Option<&BTreeSet<ResourceId>>,
) -> Program<'a> {
    let chosen: Vec<(&Desired, &ResourceType)> = input
        .desired
        .resources
        .values()
        .filter(|desired| scope.is_none_or(|scope| scope.contains(&desired.id)))
        .filter_map(|desired| Some((desired, input.types.get(&desired.ty)?)))
        .collect();
    let number: IndexMap<&ResourceId, usize> = chosen
        .iter()
        .enumerate()
        .map(|(number, (desired, _))| (&desired.id, number))
        .collect();
    let mut wanted: Vec<Wanted<'a>> = chosen
        .into_iter()
        .map(|(desired, ty)| Wanted {
            desired,
            ty,
            edges: numbered(desired, &number),
            can_be_bare: desired.obstacle(ty).is_none(),
            component: 0,
            cycle: None,
        })
        .collect();
    let graph: Graph = wanted
        .iter()
        .map(|wanted| wanted.edges.iter().map(|(to, _)| *to))
        .collect();
    let components = graph.parts();
    let looping = components.iter().filter(|part| graph.has_loop(part));
    let mut cycles: Vec<Vec<usize>> = looping.map(<[_]>::to_vec).collect();
    cycles.sort_unstable_by_key(|members| members[0]);
    for (component, members) in components.iter().enumerate() {
        for member in members {
            wanted[*member].component = component;
        }
    }
    for (cycle, members) in cycles.iter().enumerate() {
        for member in members {
            wanted[*member].cycle = Some(cycle);
        }
    }
    Program {
        wanted,
        number,
        components,
        cycles,
    }
}

/// References with the number of their target, in a list of just their count.
fn numbered<'a>(
    desired: &'a Desired,
    number: &IndexMap<&ResourceId, usize>,
) -> Vec<(usize, Edge<'a>)> {
    let edges = desired.edges().into_iter();
    let numbered = edges.filter_map(|edge| Some((*number.get(edge.to)?, edge)));
    numbered.collect::<Box<[_]>>().into_vec()
}

/// Fields that a placeholder lacks contributions for, each once, in call order.
pub(crate) fn contributed_fields(desired: &Desired) -> Vec<String> {
    let mut fields: Vec<String> = Vec::new();
    for contribution in &desired.contributions {
        if !fields.iter().any(|field| *field == contribution.field) {
            fields.push(contribution.field.to_string());
        }
    }
    fields
}

/// Whether an edge belongs to the placeholder as well.
pub(crate) fn is_config(edge: &Edge<'_>) -> bool {
    matches!(edge.via, Via::Config(_))
}
