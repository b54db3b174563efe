//! From what the sandbox handed over to expressions of the model.

use notation_model::{Expr, Map, OutputRef, ResourceId, Segment, Unknown, Value};

use crate::raw::{RawStep, RawValue};

/// A value as an expression; references mean `ids` by index. Parts without references fold into
/// one known value, so that equal data looks equal however it was written.
pub(crate) fn expression(raw: &RawValue, ids: &[ResourceId]) -> Expr {
    match raw {
        RawValue::Null => Expr::Known(Value::Null),
        RawValue::Bool(truth) => Expr::Known(Value::Bool(*truth)),
        RawValue::Int(int) => Expr::Known(Value::Int(*int)),
        RawValue::Float(float) => Expr::Known(Value::Float(*float)),
        RawValue::Text(text) => Expr::Known(Value::Text(text.into())),
        RawValue::Output(resource, path) => Expr::Output(OutputRef {
            resource: ids[*resource].clone(),
            path: path.iter().map(segment).collect(),
        }),
        // The prelude has checked the name.
        RawValue::Secret(name) => match name.parse() {
            Ok(name) => Expr::Secret(name),
            Err(_) => Expr::Known(Value::Null),
        },
        RawValue::Refused => Expr::Known(refused()),
        RawValue::Join(parts) => {
            Expr::Join(parts.iter().map(|part| expression(part, ids)).collect())
        }
        RawValue::List(items) => {
            let items: Vec<Expr> = items.iter().map(|item| expression(item, ids)).collect();
            match known_list(&items) {
                Some(values) => Expr::Known(Value::List(values)),
                None => Expr::List(items),
            }
        }
        RawValue::Map(members) => {
            let members: Map<Expr> = members
                .iter()
                .map(|(key, member)| (key.clone(), expression(member, ids)))
                .collect();
            match known_map(&members) {
                Some(values) => Expr::Known(Value::Map(values)),
                None => Expr::Map(members),
            }
        }
    }
}

/// In the place of a value that a problem is about: no program that has one is deployed.
fn refused() -> Value {
    Value::from(Unknown {
        sources: Vec::new(),
        text: "refused".into(),
    })
}

/// Whether a problem is about this value already.
pub(crate) fn is_refused(expr: &Expr) -> bool {
    matches!(expr, Expr::Known(Value::Unknown(_)))
}

/// A step of a path as the model writes it.
pub(crate) fn segment(step: &RawStep) -> Segment {
    match step {
        RawStep::Index(index) => Segment::Index(*index),
        RawStep::Key(key) => Segment::Key(key.into()),
    }
}

fn known(expr: &Expr) -> Option<&Value> {
    match expr {
        Expr::Known(value) => Some(value),
        Expr::Output(_)
        | Expr::Name
        | Expr::Secret(_)
        | Expr::Join(_)
        | Expr::List(_)
        | Expr::Map(_) => None,
    }
}

fn known_list(items: &[Expr]) -> Option<Vec<Value>> {
    items.iter().map(|item| known(item).cloned()).collect()
}

fn known_map(members: &Map<Expr>) -> Option<Map<Value>> {
    members
        .iter()
        .map(|(key, member)| Some((key.clone(), known(member)?.clone())))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Expr {
        let raw: RawValue = serde_json::from_str(json).unwrap();
        expression(&raw, &["a".parse().unwrap(), "b".parse().unwrap()])
    }

    #[test]
    fn data_without_references_is_one_known_value() {
        let expr = read(r#"["m",[["x",["l",[1,"two"]]]]]"#);
        assert!(matches!(expr, Expr::Known(Value::Map(_))), "{expr:?}");
    }

    #[test]
    fn a_reference_keeps_its_path() {
        let Expr::Output(source) = read(r#"["o",1,["routes",0,"host"]]"#) else {
            panic!()
        };
        assert_eq!(source.to_string(), "b.routes[0].host");
    }

    #[test]
    fn a_text_with_references_is_a_join() {
        let Expr::Join(parts) = read(r#"["j",["https://",["o",0,["host"]],["s","KEY"]]]"#) else {
            panic!()
        };
        assert_eq!(parts.len(), 3);
    }
}
