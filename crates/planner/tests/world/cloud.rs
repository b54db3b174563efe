//! The strict cloud.

use std::collections::BTreeMap;

use notation_model::{Params, ResourceType, TypeName, Value};

use super::program::referred;

#[derive(Debug, Clone, PartialEq)]
pub struct Object {
    pub ty: TypeName,
    pub params: Params,
    pub outputs: Params,
    pub writes: u32,
}

/// Objects by name; one space of names for all types.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Cloud {
    pub objects: BTreeMap<String, Object>,
    /// How often a name was created.
    pub created: BTreeMap<String, u32>,
    made: u32,
}

impl Cloud {
    pub fn create(
        &mut self,
        ty: &ResourceType,
        params: &Params,
    ) -> Result<(String, Params), String> {
        let key = match params.get("Name") {
            Some(Value::Text(name)) => name.to_string(),
            Some(other) => return Err(format!("{other:?} is no name")),
            None => {
                self.made += 1;
                format!("blind-{}", self.made)
            }
        };
        if self.objects.contains_key(&key) {
            return Err(format!("{key} exists"));
        }
        self.dangling(params, None)?;
        let count = self.created.entry(key.clone()).or_default();
        *count += 1;
        let mut object = Object {
            ty: ty.name.clone(),
            params: params.clone(),
            outputs: params.clone(),
            writes: 1,
        };
        if ty.fields.contains_key("arn") {
            let arn = format!("arn:{key}:{count}");
            object.outputs.insert("arn".to_owned(), Value::text(arn));
            object.outputs.insert("versionId".to_owned(), "v1".into());
        } else {
            let made = if ty.naming.is_some() {
                format!("id-{key}-{count}")
            } else {
                key.clone()
            };
            object.outputs.insert("id".to_owned(), Value::text(made));
        }
        let outputs = object.outputs.clone();
        self.objects.insert(key.clone(), object);
        Ok((key, outputs))
    }

    pub fn update(
        &mut self,
        ty: &ResourceType,
        key: &str,
        params: &Params,
    ) -> Result<Params, String> {
        self.dangling(params, Some(key))?;
        let Some(object) = self.objects.get_mut(key) else {
            return Err(format!("update: {key} is not there"));
        };
        if !ty.updates {
            return Err(format!("{} has no update", ty.name));
        }
        for (name, field) in &ty.fields {
            if (field.immutable || field.key) && object.params.get(name) != params.get(name) {
                return Err(format!("{key}: {name} cannot change"));
            }
        }
        let mut outputs = object.outputs.clone();
        outputs.retain(|name, _| {
            ty.fields
                .get(name.as_str())
                .is_some_and(|field| !super::program::is_param(field))
        });
        outputs.extend(params.clone());
        object.writes += 1;
        if ty.fields.contains_key("versionId") {
            let version = format!("v{}", object.writes);
            outputs.insert("versionId".to_owned(), Value::text(version));
        }
        object.params = params.clone();
        object.outputs = outputs.clone();
        Ok(outputs)
    }

    pub fn delete(&mut self, key: &str) -> Result<(), String> {
        let holders: Vec<&String> = self
            .objects
            .iter()
            .filter(|(other, object)| {
                *other != key && referred(&object.params).iter().any(|name| name == key)
            })
            .map(|(other, _)| other)
            .collect();
        if !holders.is_empty() {
            return Err(format!("{key} is in use by {holders:?}"));
        }
        match self.objects.remove(key) {
            Some(_) => Ok(()),
            None => Err(format!("delete: {key} is not there")),
        }
    }

    fn dangling(&self, params: &Params, own: Option<&str>) -> Result<(), String> {
        for name in referred(params) {
            if own != Some(name.as_str()) && !self.objects.contains_key(&name) {
                return Err(format!("reference to {name}, which is not there"));
            }
        }
        Ok(())
    }
}
