//! Why a cycle does not settle: the ring of cause and effect (`engine.md` §4).

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use notation_model::{
    Collector, Expr, Incarnation, OutputRef, Params, ResourceId, ResourceType, Value,
};

use crate::{Cycle, CycleKey, Intended, problem::list};

/// One write of a settle pass, in the order of writing.
#[derive(Debug, Clone, PartialEq)]
pub struct SettleWrite {
    /// From 1.
    pub pass: u32,
    /// Who was written.
    pub member: Incarnation,
    /// Fields whose parameters differed.
    pub changed: Vec<String>,
    /// Outputs after the write.
    pub outputs: Params,
}

/// Everything that is known of a cycle that was still changing in its last pass.
#[derive(Debug, Clone, Copy)]
pub struct SettleHistory<'a> {
    /// The cycle.
    pub cycle: &'a Cycle,
    /// What its members shall be.
    pub intended: &'a BTreeMap<Incarnation, Intended>,
    /// Outputs of the members before the first pass.
    pub before: &'a BTreeMap<Incarnation, Params>,
    /// The writes of all passes.
    pub writes: &'a [SettleWrite],
    /// Differences that the last pass found and did not write: member and fields.
    pub pending: &'a [(Incarnation, Vec<String>)],
}

/// A place that reads an output: `b.bindings[0].version`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reader {
    /// Who reads.
    pub resource: ResourceId,
    /// Top-level field.
    pub field: String,
    /// Way inside the field's value, e.g. `[0].version`; may be empty.
    pub path: String,
}

impl fmt::Display for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}{}", self.resource, self.field, self.path)
    }
}

/// One output that kept others changing.
#[derive(Debug, Clone, PartialEq)]
pub struct Culprit {
    /// The output.
    pub output: OutputRef,
    /// Values seen, oldest first, the one before settling included. Secrets print as such.
    pub values: Vec<Value>,
    /// It had another value after each write of its resource.
    pub every_update: bool,
    /// Fields of members that read it.
    pub read_by: Vec<Reader>,
}

/// A cycle that did not settle.
#[derive(Debug, Clone, PartialEq)]
pub struct Unsettled {
    /// Which cycle.
    pub cycle: CycleKey,
    /// How many passes were run.
    pub passes: u32,
    /// The ring (or, when it does not close, the chain), each read by the next one's resource.
    pub culprits: Vec<Culprit>,
}

impl Unsettled {
    /// True when some output changed on every update, so that more passes would not help.
    pub fn is_endless(&self) -> bool {
        self.culprits.iter().any(|culprit| culprit.every_update)
    }

    /// What a person can do.
    pub fn help(&self) -> String {
        if self.is_endless() {
            "refer to an output that stays the same through updates, such as a name or an ARN"
                .to_owned()
        } else {
            "deploy again to go on from here, or refer to an output that stays the same through updates".to_owned()
        }
    }
}

impl fmt::Display for Unsettled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named: Vec<&Culprit> = if self.is_endless() {
            self.culprits
                .iter()
                .filter(|culprit| culprit.every_update)
                .collect()
        } else {
            write!(f, "{} passes were not enough: ", self.passes)?;
            self.culprits.iter().collect()
        };
        for (index, culprit) in named.iter().enumerate() {
            if index > 0 {
                f.write_str("; ")?;
            }
            let how = if culprit.every_update {
                "changed on every update"
            } else {
                "changed"
            };
            let values: Vec<String> = culprit.values.iter().map(shown).collect();
            write!(f, "{} {how} ({})", culprit.output, values.join(", "))?;
            if !culprit.read_by.is_empty() {
                write!(f, ", read by {}", list(&culprit.read_by))?;
            }
        }
        Ok(())
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::Text(text) => text.to_string(),
        Value::Secret(_) => "(secret)".to_owned(),
        other => other.to_display_json().to_string(),
    }
}

/// Finds the outputs that kept a cycle changing, from the differences of the last pass back
/// along cause and effect until an output comes up twice. Source: `engine.md` §4.
pub fn culprits(
    history: &SettleHistory<'_>,
    type_of: &dyn Fn(&Incarnation) -> Option<ResourceType>,
) -> Unsettled {
    let reads = Reads::new(history, type_of);
    let mut ring: Vec<OutputRef> = Vec::new();
    for (member, fields) in history.pending {
        let chain = reads.chain(history, member, fields);
        for output in chain {
            if !ring.contains(&output) {
                ring.push(output);
            }
        }
    }
    let culprits = ring
        .into_iter()
        .map(|output| reads.culprit(history, output))
        .collect();
    Unsettled {
        cycle: history.cycle.key.clone(),
        passes: history.cycle.passes,
        culprits,
    }
}

/// Which member reads which output of which member, where.
struct Reads {
    /// Reader's incarnation, output, place.
    all: Vec<(Incarnation, OutputRef, Reader)>,
}

impl Reads {
    fn new(
        history: &SettleHistory<'_>,
        type_of: &dyn Fn(&Incarnation) -> Option<ResourceType>,
    ) -> Reads {
        let members: BTreeSet<&ResourceId> = history
            .cycle
            .members
            .iter()
            .map(|member| &member.resource)
            .collect();
        let mut all = Vec::new();
        for member in &history.cycle.members {
            let Some(intended) = history.intended.get(member) else {
                continue;
            };
            let ty = type_of(member);
            for (place, output) in places(member, intended, ty.as_ref()) {
                if members.contains(&output.resource) {
                    all.push((member.clone(), output, place));
                }
            }
        }
        Reads { all }
    }

    /// Outputs that explain the difference, nearest cause first, until one comes up again.
    fn chain(
        &self,
        history: &SettleHistory<'_>,
        member: &Incarnation,
        fields: &[String],
    ) -> Vec<OutputRef> {
        let mut found: Vec<OutputRef> = Vec::new();
        let mut front: Vec<(Incarnation, Vec<String>)> = vec![(member.clone(), fields.to_vec())];
        while let Some((reader, fields)) = front.pop() {
            for (who, output, place) in &self.all {
                let changed = seen(history, output).len() > 1;
                if who != &reader || !fields.contains(&place.field) || !changed {
                    continue;
                }
                if found.contains(output) {
                    continue;
                }
                found.push(output.clone());
                let cause = history
                    .writes
                    .iter()
                    .rev()
                    .find(|write| write.member.resource == output.resource);
                if let Some(write) = cause {
                    front.push((write.member.clone(), write.changed.clone()));
                }
            }
        }
        found
    }

    fn culprit(&self, history: &SettleHistory<'_>, output: OutputRef) -> Culprit {
        let values = seen(history, &output);
        let writes = history
            .writes
            .iter()
            .filter(|write| write.member.resource == output.resource)
            .count();
        let mut read_by: Vec<Reader> = self
            .all
            .iter()
            .filter(|(_, source, _)| *source == output)
            .map(|(_, _, reader)| reader.clone())
            .collect();
        read_by.sort();
        read_by.dedup();
        Culprit {
            every_update: writes > 0 && values.len() == writes + 1,
            values,
            read_by,
            output,
        }
    }
}

/// Values of an output in order, repetitions of the last one left out.
fn seen(history: &SettleHistory<'_>, output: &OutputRef) -> Vec<Value> {
    let first = history
        .before
        .iter()
        .find(|(member, _)| member.resource == output.resource)
        .map(|(_, outputs)| outputs);
    let later = history
        .writes
        .iter()
        .filter(|write| write.member.resource == output.resource)
        .map(|write| &write.outputs);
    let mut values: Vec<Value> = first
        .into_iter()
        .chain(later)
        .filter_map(|outputs| output.read(outputs))
        .collect();
    values.dedup();
    values
}

/// Every reference of a member with the place at which its parameters carry it.
fn places(
    member: &Incarnation,
    intended: &Intended,
    ty: Option<&ResourceType>,
) -> Vec<(Reader, OutputRef)> {
    let mut found = Vec::new();
    let mut lengths: BTreeMap<&str, usize> = BTreeMap::new();
    let config = intended.config.iter();
    let contributed = intended
        .contributions
        .iter()
        .map(|contribution| (&contribution.field, &contribution.value));
    for (field, expr) in config.chain(contributed) {
        let flattened = ty
            .and_then(|ty| ty.fields.get(field.as_str()))
            .is_some_and(|declared| declared.collect == Some(Collector::Flatten));
        let offset = *lengths.get(field.as_str()).unwrap_or(&0);
        for (path, output) in expr.references() {
            let path = if flattened {
                shifted(expr, &path, offset)
            } else {
                path
            };
            let reader = Reader {
                resource: member.resource.clone(),
                field: field.to_string(),
                path,
            };
            found.push((reader, output.clone()));
        }
        if flattened {
            *lengths.entry(field).or_default() += item_count(expr);
        }
    }
    found
}

/// The place of a reference in a flattened list whose first `offset` items are others'.
fn shifted(expr: &Expr, path: &str, offset: usize) -> String {
    match expr {
        Expr::List(_) => {
            let inside = path.trim_start_matches('[');
            let (index, rest) = inside.split_once(']').unwrap_or((inside, ""));
            let index: usize = index.parse().unwrap_or(0);
            format!("[{}]{rest}", index + offset)
        }
        Expr::Known(_)
        | Expr::Output(_)
        | Expr::Name
        | Expr::Secret(_)
        | Expr::Join(_)
        | Expr::Map(_) => format!("[{offset}]{path}"),
    }
}

fn item_count(expr: &Expr) -> usize {
    match expr {
        Expr::List(items) => items.len(),
        Expr::Known(Value::List(items)) => items.len(),
        Expr::Known(_)
        | Expr::Output(_)
        | Expr::Name
        | Expr::Secret(_)
        | Expr::Join(_)
        | Expr::Map(_) => 1,
    }
}
