//! What the four calls do to the account when nothing goes wrong.

use notation_model::{Owner, Params, ResourceType, TypeName};
use notation_provider::{Found, Object, OpError};
use serde_json::{Map, Value as Json, json};
use sha2::{Digest as _, Sha256};

use crate::{
    SimObject,
    memory::{Memory, NameMemory, Stamp},
    object::from_json,
    rules,
    table::Table,
};

/// Everything the cloud knows.
#[derive(Debug, Clone, Default)]
pub(crate) struct Account {
    pub objects: Table<SimObject>,
    pub memory: Memory,
}

/// A mutating call that can be carried out.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Write<'a> {
    pub ty: &'a ResourceType,
    pub name: &'a str,
    pub params: &'a Map<String, Json>,
    pub token: &'a str,
    pub owner: &'a Owner,
}

/// What a mutating call did.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Done {
    /// The object is as asked for.
    Written(Object),
    /// It was made by the same call before; nothing changed.
    Before(Object),
}

/// Type name without the provider's.
pub(crate) fn short(ty: &TypeName) -> &str {
    ty.as_str().rsplit('/').next().unwrap_or_default()
}

impl Account {
    /// Makes an object. `objects_stamp` is that of `objects.json` as it is now.
    ///
    /// Errors: `Exists` with the tags of whoever has the name; `Refused` by the rules.
    pub fn create(
        &mut self,
        write: Write<'_>,
        objects_stamp: Option<Stamp>,
    ) -> Result<Done, OpError> {
        let remembered = self.memory.names.get(write.name).cloned();
        if let Some(object) = self.objects.get(write.name) {
            let repeated =
                remembered.is_some_and(|memory| memory.token.as_deref() == Some(write.token));
            return if repeated && object.is_a(short(&write.ty.name)) {
                Ok(Done::Before(answer(object)))
            } else {
                Err(OpError::Exists {
                    name: write.name.to_owned(),
                    tags: object.tags.clone(),
                })
            };
        }
        rules::may_write(&self.objects, write.ty, write.name, write.params, None)?;
        self.memory.unsure(write.name, objects_stamp);
        self.memory.header.made += 1;
        let created = remembered.map_or(0, |memory| memory.created) + 1;
        let number = self.memory.header.made;
        let memory = NameMemory {
            created,
            number,
            token: Some(write.token.to_owned()),
            before: None,
        };
        self.memory.names.set(write.name, memory);
        let object = SimObject {
            ty: short(&write.ty.name).to_owned(),
            key: write.name.to_owned(),
            params: write.params.clone(),
            outputs: first_outputs(write.ty, write.name, created, number),
            tags: tags(write.ty, write.owner),
            writes: 1,
        };
        let done = answer(&object);
        self.objects.set(write.name, object);
        Ok(Done::Written(done))
    }

    /// Writes all parameters of an object, and its tags.
    ///
    /// Errors: `NotFound`; `Refused` by the rules.
    pub fn update(
        &mut self,
        write: Write<'_>,
        objects_stamp: Option<Stamp>,
    ) -> Result<Done, OpError> {
        if !write.ty.updates {
            return Err(OpError::Refused {
                message: format!("{} has no update", write.ty.name),
            });
        }
        let prior = self
            .live(write.ty, write.name)
            .ok_or(OpError::NotFound)?
            .clone();
        rules::may_write(
            &self.objects,
            write.ty,
            write.name,
            write.params,
            Some(&prior),
        )?;
        self.remember_write(write.name, prior.clone(), objects_stamp);
        let writes = prior.writes + 1;
        let mut outputs = prior.outputs;
        if write.ty.fields.contains_key("versionId") {
            outputs.insert("versionId".into(), version(writes));
        }
        let object = SimObject {
            params: write.params.clone(),
            outputs,
            tags: tags(write.ty, write.owner),
            writes,
            ..prior
        };
        let done = answer(&object);
        self.objects.set(write.name, object);
        Ok(Done::Written(done))
    }

    /// Takes an object away.
    ///
    /// Errors: `NotFound`; `InUse` naming every holder.
    pub fn delete(
        &mut self,
        ty: &ResourceType,
        name: &str,
        objects_stamp: Option<Stamp>,
    ) -> Result<(), OpError> {
        let prior = self.live(ty, name).ok_or(OpError::NotFound)?.clone();
        rules::may_delete(&self.objects, name)?;
        self.remember_write(name, prior, objects_stamp);
        let forgotten = self.memory.names.get(name).cloned().unwrap_or_default();
        self.memory.names.set(
            name,
            NameMemory {
                token: None,
                ..forgotten
            },
        );
        self.objects.remove(name);
        Ok(())
    }

    /// What a read answers now. `nth` makes a volatile value another one every time.
    pub fn read(&self, ty: &ResourceType, name: &str, nth: u64) -> Option<Found> {
        Some(self.found(ty, self.live(ty, name)?, nth))
    }

    /// What a read would have answered before the last write of a call.
    pub fn read_stale(&self, ty: &ResourceType, name: &str, nth: u64) -> Option<Found> {
        match self.memory.names.get(name) {
            None => self.read(ty, name, nth),
            Some(memory) => {
                let before = memory.before.as_ref()?;
                before
                    .is_a(short(&ty.name))
                    .then(|| self.found(ty, before, nth))
            }
        }
    }

    /// The name of the object that has these owner tags, also of one that is gone.
    pub fn name_of(&self, ty: &ResourceType, owner: &Owner) -> Option<&str> {
        let mine = |object: &SimObject| object.is_a(short(&ty.name)) && object.belongs_to(owner);
        let live = self.objects.iter().find(|(_, object)| mine(object));
        let gone = || {
            let was_mine = |memory: &NameMemory| memory.before.as_ref().is_some_and(mine);
            self.memory
                .names
                .iter()
                .find(|(_, memory)| was_mine(memory))
                .map(|(name, _)| name)
        };
        live.map(|(name, _)| name).or_else(gone)
    }

    fn live(&self, ty: &ResourceType, name: &str) -> Option<&SimObject> {
        self.objects
            .get(name)
            .filter(|object| object.is_a(short(&ty.name)))
    }

    fn found(&self, ty: &ResourceType, object: &SimObject, nth: u64) -> Found {
        let mut params = object.params.clone();
        if let Some(Json::Array(items)) = params.get_mut("bindings")
            && items.len() > 1
        {
            items.rotate_left(1);
        }
        if let Some(note) = params.get_mut("note") {
            *note = json!(format!("{note} as read by call {nth}"));
        }
        let number = self
            .memory
            .names
            .get(&object.key)
            .map_or(0, |memory| memory.number);
        params.insert("tier".into(), json!("standard"));
        params.insert("createdAt".into(), json!(number));
        let sensitive = |name: &str| ty.fields.get(name).is_some_and(|field| field.sensitive);
        Found {
            object: answer(object),
            params: from_json(&params, sensitive),
            tags: object.tags.clone(),
        }
    }

    fn remember_write(&mut self, name: &str, prior: SimObject, objects_stamp: Option<Stamp>) {
        self.memory.unsure(name, objects_stamp);
        let memory = self.memory.names.get(name).cloned().unwrap_or_default();
        self.memory.names.set(
            name,
            NameMemory {
                before: Some(prior),
                ..memory
            },
        );
    }
}

/// What the server makes, and nobody can derive before.
pub(crate) fn server_made_id(number: u64) -> String {
    let hash = Sha256::digest(format!("simulated object {number}").as_bytes());
    format!("id-{}", &hex::encode(hash)[..12])
}

fn first_outputs(ty: &ResourceType, name: &str, created: u64, number: u64) -> Map<String, Json> {
    let mut outputs = Map::new();
    for field in ty.fields.keys() {
        let value = match field.as_str() {
            "Name" => json!(name),
            "arn" => json!(format!("arn:sim:{name}:{created}")),
            "versionId" => version(1),
            "id" => json!(server_made_id(number)),
            _ => continue,
        };
        outputs.insert(field.clone(), value);
    }
    outputs
}

fn version(writes: u64) -> Json {
    json!(format!("v{writes}"))
}

fn tags(ty: &ResourceType, owner: &Owner) -> std::collections::BTreeMap<String, String> {
    if !ty.tags {
        return std::collections::BTreeMap::new();
    }
    let tags = owner.tags();
    tags.into_iter()
        .map(|(key, value)| (key.to_owned(), value))
        .collect()
}

fn answer(object: &SimObject) -> Object {
    let outputs: Params = from_json(&object.outputs, |_| false);
    Object {
        key: object.key.clone(),
        outputs,
    }
}
