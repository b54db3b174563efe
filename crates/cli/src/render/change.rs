//! What changes in one resource, line by line: a line says one field or one item of a list.

use std::collections::BTreeSet;

use notation_model::{Text, Value};
use notation_planner::Change;

use crate::render::{cell, value};

/// One line about one field.
pub struct Line {
    /// The field, or the member of it.
    pub path: String,
    mark: &'static str,
    before: Option<Value>,
    after: Option<Value>,
}

impl Line {
    /// From one value to another.
    pub fn between(before: Option<&Value>, after: Option<&Value>) -> Line {
        Line {
            path: String::new(),
            mark: "",
            before: before.cloned(),
            after: after.cloned(),
        }
    }

    fn of(change: &Change) -> Line {
        Line {
            path: change.path.clone(),
            ..Line::between(change.before.as_ref(), change.after.as_ref())
        }
    }

    /// What it says, in so many columns.
    pub fn text(&self, room: usize) -> String {
        match (&self.before, &self.after) {
            (None, Some(after)) => {
                let room = room.saturating_sub(cell::columns(self.mark));
                format!("{}{}", self.mark, value::folded(after, room))
            }
            (Some(before), Some(after)) => {
                let both = room.saturating_sub(4);
                let whole =
                    cell::columns(&value::inline(before)) + cell::columns(&value::inline(after));
                if whole <= both {
                    return format!("{} → {}", value::inline(before), value::inline(after));
                }
                let half = both / 2;
                if let (Value::Text(before), Value::Text(after)) = (before, after) {
                    let (before, after) = value::from_difference(before, after, half);
                    return format!("{before} → {after}");
                }
                format!(
                    "{} → {}",
                    value::folded(before, half),
                    value::folded(after, half)
                )
            }
            (Some(before), None) if self.mark.is_empty() => {
                let room = room.saturating_sub(8);
                format!("{} → unset", value::folded(before, room))
            }
            (Some(before), None) => {
                let room = room.saturating_sub(cell::columns(self.mark));
                format!("{}{}", self.mark, value::folded(before, room))
            }
            (None, None) => String::new(),
        }
    }
}

/// Lists and maps are compared inside, so that a line shows what really changes.
pub fn lines(change: &Change) -> Vec<Line> {
    match (&change.before, &change.after) {
        (Some(Value::List(before)), Some(Value::List(after))) => {
            let gone = missing(before, after).map(|item| ("- ", Some(item), None));
            let come = missing(after, before).map(|item| ("+ ", None, Some(item)));
            let mut lines: Vec<Line> = gone
                .chain(come)
                .map(|(mark, before, after)| Line {
                    path: change.path.clone(),
                    mark,
                    before,
                    after,
                })
                .collect();
            if lines.is_empty() {
                lines.push(Line::of(change));
            }
            lines
        }
        (Some(Value::Map(before)), Some(Value::Map(after))) => {
            let keys: BTreeSet<&Text> = before.keys().chain(after.keys()).collect();
            keys.into_iter()
                .filter(|key| before.get(key) != after.get(key))
                .flat_map(|key| {
                    lines(&Change {
                        path: format!("{}.{key}", change.path),
                        before: before.get(key).cloned(),
                        after: after.get(key).cloned(),
                    })
                })
                .collect()
        }
        (before, after) if before.is_some() || after.is_some() => vec![Line::of(change)],
        _ => Vec::new(),
    }
}

/// Items of one list that the other lacks, counting repetitions.
fn missing<'a>(of: &'a [Value], from: &'a [Value]) -> impl Iterator<Item = Value> + 'a {
    let mut rest: Vec<&Value> = from.iter().collect();
    of.iter()
        .filter(
            move |item| match rest.iter().position(|other| other == item) {
                Some(at) => {
                    rest.swap_remove(at);
                    false
                }
                None => true,
            },
        )
        .cloned()
}
