//! Names that a resource gives to values in its code: bindings, vars, secrets. They are known
//! before anything is deployed, and so is what they mean (`cli.md`, *Programs*).

use std::collections::BTreeMap;

use notation_model::{
    Collector, Desired, Expr, FieldKind, Names, OutputRef, ResourceType, Segment, Text, Value,
};

use crate::{
    call_index::Part,
    codes,
    declared::{Declarations, Program, key},
    judge::{Given, given, output_kind},
    locate,
    nearest::suggestion,
    problem::Problem,
    raw::{RawStep, RawValue},
    source::Place,
};

/// Most characters of a name (host API §3.3).
const MOST_CHARACTERS: usize = 64;

/// One named value.
struct Named<'a> {
    name: String,
    field: &'a str,
    place: Option<Place>,
}

/// Everything that is wrong with the names that a resource gives.
pub(crate) fn judge(
    desired: &Desired,
    ty: &ResourceType,
    program: &Program<'_>,
    all: &Declarations<'_>,
    problems: &mut Vec<Problem>,
) {
    let given = given(desired);
    let mut named = Vec::new();
    for given in &given {
        match ty.fields.get(given.field).and_then(|field| field.names) {
            None => {}
            Some(Names::Members) => named.extend(members(given, program)),
            Some(names @ Names::Items { .. }) => {
                let flattens = ty.fields[given.field].collect == Some(Collector::Flatten);
                for (item, path) in items(given, flattens) {
                    let item = Item {
                        item: &item,
                        path,
                        given,
                        names,
                        ty,
                    };
                    named.extend(item.judge(program, all, problems));
                }
            }
        }
    }
    let mut taken: BTreeMap<String, Named<'_>> = BTreeMap::new();
    for one in named {
        if let Some(fault) = fault(&one.name) {
            problems.push(
                Problem::new(
                    codes::INVALID_CODE_NAME,
                    format!("{:?} cannot be a name in the code of {}: {fault}", one.name, desired.id),
                )
                .help("code reads it as `env.NAME`: write letters, digits, `_` and `$`, no digit first, at most 64 in all")
                .at(one.place.clone()),
            );
        }
        match taken.get(&one.name) {
            None => {
                taken.insert(one.name.clone(), one);
            }
            Some(first) => problems.push(
                Problem::new(
                    codes::CODE_NAME_TAKEN,
                    format!(
                        "{} gives the name `{}` twice to its code",
                        desired.id, one.name
                    ),
                )
                .help(match first.field == one.field {
                    true => format!(
                        "a name in `{}` means one thing; give one of them another",
                        one.field
                    ),
                    false => format!(
                        "`{}` and `{}` share their names; give one of them another",
                        first.field, one.field
                    ),
                })
                .at(one.place.map(|place| place.with_label("again here")))
                .also("first here", first.place.clone()),
            ),
        }
    }
}

/// What is wrong with a name, in words.
fn fault(name: &str) -> Option<String> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '$';
    if name.is_empty() {
        return Some("it is empty".into());
    }
    if let Some(stranger) = name.chars().find(|c| !allowed(*c)) {
        return Some(format!("it contains {stranger:?}"));
    }
    if name.starts_with(|c: char| c.is_ascii_digit()) {
        return Some("it starts with a digit".into());
    }
    (name.len() > MOST_CHARACTERS).then(|| format!("it has more than {MOST_CHARACTERS} characters"))
}

/// Keys of a map.
fn members<'a>(given: &Given<'a>, program: &Program<'_>) -> Vec<Named<'a>> {
    let keys: Vec<&Text> = match given.value {
        Expr::Known(Value::Map(members)) => members.keys().collect(),
        Expr::Map(members) => members.keys().collect(),
        _ => return Vec::new(),
    };
    keys.into_iter()
        .map(|name| {
            let mut path = given.path();
            path.push(key(name));
            Named {
                name: name.to_string(),
                field: given.field,
                place: locate::member(program.sources, given.origin, &path, Part::Key),
            }
        })
        .collect()
}

/// The items of a list, or the one that stands for a list of it; with the way to each.
fn items(given: &Given<'_>, flattens: bool) -> Vec<(Expr, Vec<RawStep>)> {
    let at = |index| {
        let mut path = given.path();
        path.push(RawStep::Index(index));
        path
    };
    match given.value {
        Expr::List(items) => {
            let items = items.iter().cloned().enumerate();
            items.map(|(index, item)| (item, at(index))).collect()
        }
        Expr::Known(Value::List(items)) => {
            let items = items.iter().cloned().enumerate();
            items
                .map(|(index, item)| (Expr::Known(item), at(index)))
                .collect()
        }
        // Of another kind than the field takes; that is told where kinds are judged.
        _ if !flattens => Vec::new(),
        Expr::Known(Value::Null) => Vec::new(),
        one => vec![(one.clone(), given.path())],
    }
}

/// One item, such as `{ name: "AUTH", service: auth.ScriptName }`.
struct Item<'i, 'g> {
    item: &'i Expr,
    path: Vec<RawStep>,
    given: &'i Given<'g>,
    names: Names,
    ty: &'i ResourceType,
}

impl<'g> Item<'_, 'g> {
    /// Its name, when it has one; and whatever is wrong with it.
    fn judge(
        &self,
        program: &Program<'_>,
        all: &Declarations<'_>,
        problems: &mut Vec<Problem>,
    ) -> Option<Named<'g>> {
        let Names::Items {
            name,
            refers,
            output,
        } = self.names
        else {
            return None;
        };
        let members: BTreeMap<&str, Expr> = match self.item {
            Expr::Known(Value::Map(members)) => {
                let known = members.iter();
                known
                    .map(|(key, value)| (key.as_str(), Expr::Known(value.clone())))
                    .collect()
            }
            Expr::Map(members) => members
                .iter()
                .map(|(key, value)| (key.as_str(), value.clone()))
                .collect(),
            // Only deploying can tell.
            Expr::Output(source)
                if !matches!(
                    output_kind(source, all),
                    Some(FieldKind::Text | FieldKind::Number | FieldKind::Bool)
                ) =>
            {
                return None;
            }
            _ => {
                problems.push(
                    self.wrong(format!(
                        "`{}` takes `{{ {name}, {refers} }}`",
                        self.given.field
                    ))
                    .help(self.example(output))
                    .at(self.place(program, None, Part::Value)),
                );
                return None;
            }
        };
        for unknown in members.keys().filter(|key| ![name, refers].contains(key)) {
            problems.push(
                self.wrong(format!(
                    "an item of `{}` has no member `{unknown}`",
                    self.given.field
                ))
                .help(suggestion(unknown, &[name, refers]))
                .at(self.place(program, Some(unknown), Part::Key)),
            );
        }
        let value = |member: &str| {
            members
                .iter()
                .find(|(key, _)| **key == member)
                .map(|(_, value)| value)
        };
        match value(refers) {
            None => problems.push(
                self.wrong(format!(
                    "an item of `{}` needs `{refers}`",
                    self.given.field
                ))
                .help(self.example(output))
                .at(self.place(program, None, Part::Value)),
            ),
            Some(value) => {
                if let Some((what, help)) = self.misses(value, output, all) {
                    problems.push(
                        self.wrong(format!(
                            "`{refers}` takes the {output} of another {}, not {what}",
                            self.ty.name
                        ))
                        .help(help)
                        .at(self.place(
                            program,
                            Some(refers),
                            Part::Value,
                        )),
                    );
                }
            }
        }
        let (fault, at) = match value(name) {
            Some(Expr::Known(Value::Text(text))) => {
                let place = self
                    .argument(program, text)
                    .or_else(|| self.place(program, Some(name), Part::Value));
                return Some(Named {
                    name: text.to_string(),
                    field: self.given.field,
                    place,
                });
            }
            None => (
                format!("an item of `{}` needs `{name}`", self.given.field),
                None,
            ),
            Some(Expr::Known(_) | Expr::List(_) | Expr::Map(_)) => (
                format!("`{name}` of an item of `{}` is a text", self.given.field),
                Some(name),
            ),
            Some(Expr::Output(_) | Expr::Join(_) | Expr::Secret(_) | Expr::Name) => (
                format!(
                    "`{name}` of an item of `{}` must be known while the program runs",
                    self.given.field
                ),
                Some(name),
            ),
        };
        problems.push(
            self.wrong(fault)
                .help("it is the name in the code, `env.NAME`: write it as a plain text")
                .at(self.place(program, at, Part::Value)),
        );
        None
    }

    /// Why a value cannot say which resource is meant, with the way out; `None` when it can.
    fn misses(
        &self,
        value: &Expr,
        output: &str,
        all: &Declarations<'_>,
    ) -> Option<(String, String)> {
        match value {
            Expr::Output(source) => {
                let target = all.get(&source.resource)?;
                // A property that is not there is told as that.
                let [Segment::Key(property), ..] = source.path.as_slice() else {
                    return None;
                };
                target
                    .ty
                    .is_none_or(|ty| ty.fields.contains_key(property.as_str()))
                    .then_some(())?;
                let own = target.ty.is_none_or(|ty| ty.name == self.ty.name);
                let right = own && is_output(source, output);
                let help = match own {
                    true => format!("write `{}.{output}`", source.resource),
                    false => format!(
                        "{} is a {}, and cannot be bound",
                        source.resource, target.raw.ty
                    ),
                };
                (!right).then(|| (format!("`{source}`"), help))
            }
            // A name that another program or somebody's hand has given is for deploying to judge;
            // an id of this program is a slip.
            Expr::Known(Value::Text(text)) => {
                let target = text.parse().ok().and_then(|id| all.get(&id))?;
                let named = target.raw.config.iter().any(|(field, value)| {
                    field == output && matches!(value, RawValue::Text(name) if name == text)
                });
                (!named).then(|| {
                    (
                        format!("the id {text:?}"),
                        format!("give the property, `{text}.{output}`: the name differs by stage"),
                    )
                })
            }
            Expr::Known(other) => Some((other.to_display_json().to_string(), self.example(output))),
            Expr::List(_) | Expr::Map(_) => {
                Some(("a list or an object".into(), self.example(output)))
            }
            Expr::Join(_) | Expr::Secret(_) | Expr::Name => None,
        }
    }

    fn wrong(&self, message: String) -> Problem {
        Problem::new(codes::WRONG_BINDING, message)
    }

    fn example(&self, output: &str) -> String {
        let Names::Items { name, refers, .. } = self.names else {
            return String::new();
        };
        format!(
            "write `{{ {name}: \"AUTH\", {refers}: auth.{output} }}`, or `a.bind(\"AUTH\", auth)`"
        )
    }

    /// The name where it is the first argument of the call: `a.bind("AUTH", auth)`.
    fn argument(&self, program: &Program<'_>, name: &str) -> Option<Place> {
        let place = locate::argument(program.sources, self.given.origin, 0)?;
        let words = &place.source.text[place.offset..place.offset + place.length];
        (words.trim_matches(['"', '\'', '`']) == name).then_some(place)
    }

    fn place(&self, program: &Program<'_>, member: Option<&str>, part: Part) -> Option<Place> {
        let mut path = self.path.clone();
        path.extend(member.map(key));
        locate::member(program.sources, self.given.origin, &path, part)
    }
}

fn is_output(source: &OutputRef, output: &str) -> bool {
    matches!(source.path.as_slice(), [Segment::Key(name)] if name == output)
}

#[cfg(test)]
mod tests {
    use super::fault;

    #[test]
    fn names_are_those_that_the_host_takes() {
        for good in ["AUTH", "_", "$x9", "constructor", &"a".repeat(64)] {
            assert_eq!(fault(good), None, "{good}");
        }
        for bad in ["", "MY-API", "9lives", "bücher", "a b", &"a".repeat(65)] {
            assert!(fault(bad).is_some(), "{bad}");
        }
    }
}
