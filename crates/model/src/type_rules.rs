//! The rules that a resource type keeps (listed at [`ResourceType`]).

use crate::{
    Collector, Field, FieldKind, Look, Names, Naming, Presence, ResourceType, Role, Value,
};

impl ResourceType {
    /// Every rule of a type that this one breaks, as what people read; empty when it is sound.
    pub fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        self.key_faults(&mut faults);
        if let Some(naming) = &self.naming {
            naming_faults(naming, &mut faults);
        }
        for (name, field) in &self.fields {
            for fault in self.field_faults(field) {
                faults.push(format!("`{name}` {fault}"));
            }
        }
        if self.look == Look::Owner && !self.tags {
            faults.push("it is looked up by its owner and carries no tags that say so".into());
        }
        if self.concurrency == Some(0) {
            faults.push("with a concurrency of 0 it is never called".into());
        }
        faults
    }

    fn key_faults(&self, faults: &mut Vec<String>) {
        let keys: Vec<(&String, &Field)> =
            self.fields.iter().filter(|(_, field)| field.key).collect();
        if keys.len() > 1 {
            let names: Vec<String> = keys.iter().map(|(name, _)| format!("`{name}`")).collect();
            faults.push(format!("{} are its key: one field is", names.join(" and ")));
        }
        for (name, field) in &keys {
            let mut fault = |why: &str| faults.push(format!("`{name}` is its key and {why}"));
            if field.kind != FieldKind::Text {
                fault("no text");
            }
            if field.sensitive {
                fault("sensitive: keys are shown and stored in clear");
            }
            if field.volatile {
                fault("volatile: a key stays the same");
            }
            if field.collect.is_some() {
                fault("collects: a key is one value");
            }
            if field.role == Role::Param
                && field.presence == Presence::Optional
                && self.naming.is_none()
            {
                fault("may be left out, but nothing generates one: no naming");
            }
            if field.role == Role::Computed && self.look == Look::Key {
                fault("made by the provider, so that nothing can be looked up by it (`Look::Key`)");
            }
        }
        let named = keys.iter().any(|(_, field)| field.role == Role::Param);
        if self.naming.is_some() && !named {
            faults.push("it has a naming, and no parameter that is its key".into());
        }
    }

    fn field_faults(&self, field: &Field) -> Vec<String> {
        let mut faults = Vec::new();
        let kind = &field.kind;
        if field.role == Role::Computed {
            if field.presence != Presence::Optional {
                faults.push("is set by the provider: nobody can be required to give it".into());
            }
            if field.collect.is_some() {
                faults.push("is set by the provider and collects nothing".into());
            }
        }
        if let Presence::Default(value) = &field.presence
            && !kind.fits(value)
        {
            faults.push(format!("has a default that is no {kind:?}"));
        }
        let collects = match field.collect {
            Some(Collector::Flatten) => matches!(kind, FieldKind::List | FieldKind::Json),
            Some(Collector::Merge) => matches!(kind, FieldKind::Map | FieldKind::Json),
            None => true,
        };
        if !collects {
            faults.push(format!("collects what does not make a {kind:?}"));
        }
        match &field.names {
            Some(Names::Members) if *kind != FieldKind::Map => {
                faults.push("names its members and is no Map".into());
            }
            Some(Names::Items { .. }) if *kind != FieldKind::List => {
                faults.push("names its items and is no List".into());
            }
            Some(Names::Items { output, .. }) if !self.fields.contains_key(*output) => {
                faults.push(format!(
                    "refers to `{output}`, which the type does not have"
                ));
            }
            Some(Names::Members | Names::Items { .. }) | None => {}
        }
        if let Some((param, value)) = &field.only_with {
            match self.fields.get(*param) {
                Some(other) if other.role == Role::Param && other.kind.fits(value) => {}
                Some(other) if other.role == Role::Param => faults.push(format!(
                    "is there with a value of `{param}` that is no {:?}",
                    other.kind
                )),
                Some(_) | None => faults.push(format!(
                    "is there with a value of `{param}`, which is no parameter of the type"
                )),
            }
        }
        faults
    }
}

impl FieldKind {
    /// Whether a field of this kind takes the value.
    pub fn fits(&self, value: &Value) -> bool {
        match (self, value) {
            (_, Value::Unknown(_)) => false,
            (kind, Value::Secret(secret)) => kind.fits(secret.reveal()),
            (FieldKind::Json, _)
            | (FieldKind::Text | FieldKind::Module, Value::Text(_))
            | (FieldKind::Number, Value::Int(_) | Value::Float(_))
            | (FieldKind::Bool, Value::Bool(_))
            | (FieldKind::List, Value::List(_))
            | (FieldKind::Map, Value::Map(_)) => true,
            (
                FieldKind::Text
                | FieldKind::Module
                | FieldKind::Number
                | FieldKind::Bool
                | FieldKind::List
                | FieldKind::Map,
                _,
            ) => false,
        }
    }
}

fn naming_faults(naming: &Naming, faults: &mut Vec<String>) {
    let least = naming.ending.len() + Naming::LEAST_ROOM;
    if naming.max_length < least {
        faults.push(format!(
            "its names may have {} characters: with the ending {:?} at least {least} are needed",
            naming.max_length, naming.ending
        ));
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{Charset, NameKind};

    fn sound() -> ResourceType {
        let name = Field {
            key: true,
            ..Field::param(FieldKind::Text, "its name")
        };
        let fields = [
            ("Name", name),
            ("size", Field::param(FieldKind::Number, "how large")),
            ("peers", Field::param(FieldKind::List, "others")),
            ("url", Field::computed(FieldKind::Text, "where")),
        ];
        ResourceType {
            name: "own/Thing".parse().unwrap(),
            fields: fields.map(|(name, field)| (name.to_owned(), field)).into(),
            naming: Some(Naming {
                kind: NameKind::Scoped,
                suffix: "",
                ending: ".fifo",
                max_length: 25,
                charset: Charset::Dotted,
            }),
            identity_space: "own/Thing".into(),
            tags: true,
            never_bare: false,
            updates: true,
            look: Look::Key,
            read_lag: Duration::ZERO,
            concurrency: Some(1),
        }
    }

    /// What one change of a sound type breaks.
    fn broken(change: impl FnOnce(&mut ResourceType)) -> Vec<String> {
        let mut ty = sound();
        change(&mut ty);
        ty.faults()
    }

    #[test]
    fn a_sound_type_has_no_faults() {
        assert_eq!(sound().faults(), Vec::<String>::new());
        let made_by_server = broken(|ty| {
            ty.fields["Name"].role = Role::Computed;
            ty.naming = None;
            ty.look = Look::Owner;
        });
        assert_eq!(made_by_server, Vec::<String>::new());
    }

    #[test]
    fn every_rule_is_told_by_itself() {
        let default = |value: Value| Presence::Default(value);
        let cases: Vec<(Vec<String>, &str)> = vec![
            (
                broken(|ty| {
                    let name = ty.fields["Name"].clone();
                    ty.fields.insert("Alias".to_owned(), name);
                }),
                "`Name` and `Alias` are its key",
            ),
            (broken(|ty| ty.fields["Name"].sensitive = true), "sensitive"),
            (broken(|ty| ty.fields["Name"].volatile = true), "volatile"),
            (
                broken(|ty| ty.fields["Name"].kind = FieldKind::Json),
                "no text",
            ),
            (broken(|ty| ty.naming = None), "nothing generates one"),
            (
                broken(|ty| ty.fields["Name"].key = false),
                "no parameter that is its key",
            ),
            (
                broken(|ty| {
                    ty.fields["Name"].role = Role::Computed;
                    ty.naming = None;
                }),
                "nothing can be looked up by it",
            ),
            (
                broken(|ty| ty.naming.as_mut().unwrap().max_length = 24),
                "at least 25 are needed",
            ),
            (
                broken(|ty| ty.fields["url"].presence = Presence::Required),
                "`url` is set by",
            ),
            (
                broken(|ty| {
                    ty.fields["url"].kind = FieldKind::List;
                    ty.fields["url"].collect = Some(Collector::Flatten);
                }),
                "collects nothing",
            ),
            (
                broken(|ty| ty.fields["size"].presence = default(Value::text("large"))),
                "`size` has a default that is no Number",
            ),
            (
                broken(|ty| ty.fields["size"].collect = Some(Collector::Merge)),
                "does not make a Number",
            ),
            (
                broken(|ty| ty.fields["peers"].names = Some(Names::Members)),
                "is no Map",
            ),
            (
                broken(|ty| {
                    ty.fields["peers"].names = Some(Names::Items {
                        name: "name",
                        refers: "service",
                        output: "arn",
                    });
                }),
                "refers to `arn`",
            ),
            (
                broken(|ty| ty.fields["url"].only_with = Some(("public", Value::Bool(true)))),
                "`public`, which is no parameter",
            ),
            (
                broken(|ty| ty.fields["url"].only_with = Some(("size", Value::Bool(true)))),
                "a value of `size` that is no Number",
            ),
            (
                broken(|ty| {
                    ty.look = Look::Owner;
                    ty.tags = false;
                }),
                "carries no tags",
            ),
            (broken(|ty| ty.concurrency = Some(0)), "concurrency of 0"),
        ];
        for (faults, told) in cases {
            let [fault] = faults.as_slice() else {
                panic!("{told}: {faults:?}")
            };
            assert!(fault.contains(told), "{told}: {fault}");
        }
    }
}
