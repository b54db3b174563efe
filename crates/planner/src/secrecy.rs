//! What is made of a secret: an expression, and whatever refers to it.

use std::collections::BTreeMap;

use notation_model::{
    Desired, DesiredGraph, Expr, Field, OutputRef, ResourceType, Segment, TypeSet, Value,
};

use crate::PlanProblem;

/// A program, read for the secrets in it. References are followed to where their value comes
/// from: a sensitive field, or a parameter that is itself made of a secret.
#[derive(Debug, Clone, Copy)]
pub struct Secrecy<'a> {
    desired: &'a DesiredGraph,
    types: &'a TypeSet,
}

/// References followed so far, each with the way that was asked for below it.
type Followed<'a> = BTreeMap<&'a OutputRef, Vec<Segment>>;

impl<'a> Secrecy<'a> {
    /// Of a program.
    pub fn of(desired: &'a DesiredGraph, types: &'a TypeSet) -> Secrecy<'a> {
        Secrecy { desired, types }
    }

    /// The first part of an expression that is made of a secret, as its author wrote it
    /// (`secret(KEY)`, `b.token`); `(secret)` for a value that was given as one.
    pub fn secret_in(&self, expr: &'a Expr) -> Option<String> {
        match expr {
            Expr::Secret(name) => Some(format!("secret({name})")),
            Expr::Known(value) => value.has_secret().then(|| "(secret)".to_owned()),
            Expr::Name => None,
            Expr::Join(parts) => parts.iter().find_map(|part| self.secret_in(part)),
            Expr::List(items) => items.iter().find_map(|item| self.secret_in(item)),
            Expr::Map(members) => members.values().find_map(|member| self.secret_in(member)),
            Expr::Output(source) => {
                let is_secret = self.leads_to_one(source, &[], &mut Followed::new());
                is_secret.then(|| source.to_string())
            }
        }
    }

    /// Whether what an expression has at a path, or anything below it, is made of a secret.
    fn has_one(&self, expr: &'a Expr, path: &[Segment], followed: &mut Followed<'a>) -> bool {
        match (expr, path) {
            (Expr::Secret(_), _) => true,
            (Expr::Name, _) => false,
            (Expr::Known(value), path) => value_has_one(value, path),
            (Expr::Output(source), path) => self.leads_to_one(source, path, followed),
            (Expr::Map(members), [Segment::Key(key), below @ ..]) => members
                .get(key)
                .is_some_and(|member| self.has_one(member, below, followed)),
            (Expr::Map(members), path) => {
                let mut members = members.values();
                members.any(|member| self.has_one(member, path, followed))
            }
            // Contributions move the items of a list: any of them may be the one that is meant.
            (Expr::List(items), path) => {
                let below = path.get(1..).unwrap_or_default();
                items.iter().any(|item| self.has_one(item, below, followed))
            }
            (Expr::Join(parts), _) => parts.iter().any(|part| self.has_one(part, &[], followed)),
        }
    }

    fn leads_to_one(
        &self,
        source: &'a OutputRef,
        below: &[Segment],
        followed: &mut Followed<'a>,
    ) -> bool {
        // Two that refer to each other could ask for an ever longer way: the second time it is
        // everything below, and there is no third.
        let below = match followed.get(source) {
            None => below.to_vec(),
            Some(before) if before.is_empty() || before == below => return false,
            Some(_) => Vec::new(),
        };
        followed.insert(source, below.clone());
        let Some(target) = self.desired.resources.get(&source.resource) else {
            return false;
        };
        let Some((Segment::Key(field), path)) = source.path.split_first() else {
            return false;
        };
        let declared = self.types.get(&target.ty);
        let declared = declared.and_then(|ty| ty.fields.get(field.as_str()));
        if declared.is_some_and(|declared| declared.sensitive) {
            return true;
        }
        let path: Vec<Segment> = path.iter().cloned().chain(below).collect();
        given(target, field).any(|expr| self.has_one(expr, &path, followed))
    }
}

/// What a field is given: by the config, then by contributions.
pub(crate) fn given<'a>(desired: &'a Desired, field: &str) -> impl Iterator<Item = &'a Expr> {
    let contributed = desired
        .contributions
        .iter()
        .filter(move |contribution| contribution.field == field)
        .map(|contribution| &contribution.value);
    desired.config.get(field).into_iter().chain(contributed)
}

fn value_has_one(value: &Value, path: &[Segment]) -> bool {
    match (value, path) {
        (Value::Secret(_), _) => true,
        (Value::Map(members), [Segment::Key(key), below @ ..]) => members
            .get(key)
            .is_some_and(|member| value_has_one(member, below)),
        (Value::List(items), [_, below @ ..]) => {
            items.iter().any(|item| value_has_one(item, below))
        }
        (value, _) => value.has_secret(),
    }
}

/// Fields that a secret is given to although they are kept in clear, each with the field of its
/// type that gives the same kind of names and is not.
pub(crate) fn in_clear<'a>(
    desired: &'a Desired,
    ty: &'a ResourceType,
    secrecy: Secrecy<'a>,
) -> Vec<(&'a str, &'a str)> {
    let naming = |(_, declared): &(&str, &Field)| declared.names.is_some();
    let mut found = Vec::new();
    for (field, declared) in ty.params().filter(naming) {
        let hides = |(_, other): &(&str, &Field)| other.sensitive && other.names == declared.names;
        if !declared.sensitive
            && let Some((instead, _)) = ty.params().find(hides)
            && given(desired, field).any(|expr| secrecy.secret_in(expr).is_some())
        {
            found.push((field, instead));
        }
    }
    found
}

/// Refuses a name made of a secret: names are shown, stored in clear and sent in addresses.
pub(crate) fn secret_key(
    desired: &Desired,
    ty: &ResourceType,
    secrecy: Secrecy<'_>,
) -> Option<PlanProblem> {
    let (field, _) = ty.key_field()?;
    let made_of = given(desired, field).find_map(|expr| secrecy.secret_in(expr))?;
    Some(PlanProblem::SecretKey {
        resource: desired.id.clone(),
        field: field.to_owned(),
        made_of,
        origin: desired.origin.clone(),
    })
}
