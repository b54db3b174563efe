//! The contract of a provider, runnable: a provider's tests call [`run`] with one sample per
//! type.

use std::{collections::BTreeMap, future::Future, pin::Pin, time::Duration};

use notation_model::{
    Earlier, Field, Look, Owner, Params, Presence, ResourceId, ResourceType, Role, TypeName, Value,
    owner_tags,
};

use crate::{
    Assets, LookFor, NoAssets, Object, OpContext, OpError, Progress, Provider, Token, Update,
};

/// How the suite waits: the provider's tests bring their clock.
pub type Sleep<'a> = &'a (dyn Fn(Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> + Sync);

/// One type to try, with parameters that the provider takes as they are.
#[derive(Clone)]
pub struct Sample<'a> {
    /// The type.
    pub ty: TypeName,
    /// Parameters of a first create, key included when the program gives it.
    pub created: Params,
    /// Other parameters for an update, and for one back; `None` when the type has none. What only
    /// one of the two sets has to be unset by the other.
    pub updated: Option<Params>,
    /// Whose the object shall be.
    pub owner: Owner,
    /// Somebody else, for the object that is in the way.
    pub other: Owner,
    /// Bytes of assets that the parameters name.
    pub assets: &'a dyn Assets,
}

impl Sample<'_> {
    /// A sample without assets.
    pub fn new(
        ty: TypeName,
        created: Params,
        updated: Option<Params>,
        [owner, other]: [Owner; 2],
    ) -> Sample<'static> {
        Sample {
            ty,
            created,
            updated,
            owner,
            other,
            assets: &NoAssets,
        }
    }
}

/// Takes one object of each sample through its life.
///
/// Panics when the provider breaks its contract, saying how. Leaves nothing behind when it does
/// not.
pub async fn run(provider: &dyn Provider, samples: &[Sample<'_>], sleep: Sleep<'_>) {
    let names = provider.types();
    for ty in &names {
        assert_eq!(
            ty.name.provider(),
            provider.name(),
            "{} is its own",
            ty.name
        );
    }
    for (place, sample) in samples.iter().enumerate() {
        let suite = Suite {
            provider,
            sample,
            place,
            sleep,
        };
        let types = provider.types();
        let ty = types.iter().find(|ty| ty.name == sample.ty);
        let ty = ty.unwrap_or_else(|| panic!("{} is declared", sample.ty));
        suite.life(ty).await;
        suite.life_under_other_tags(ty).await;
    }
}

/// Who calls.
#[derive(Clone, Copy)]
struct By<'a> {
    owner: &'a Owner,
    earlier: Earlier<'a>,
}

impl<'a> From<&'a Owner> for By<'a> {
    fn from(owner: &'a Owner) -> By<'a> {
        By {
            owner,
            earlier: Earlier::default(),
        }
    }
}

struct Suite<'a> {
    provider: &'a dyn Provider,
    sample: &'a Sample<'a>,
    /// Of the sample: a token is that of one operation for ever, so no two samples share one.
    place: usize,
    sleep: Sleep<'a>,
}

impl Suite<'_> {
    async fn life(&self, ty: &ResourceType) {
        let sample = self.sample;
        let me = By::from(&sample.owner);
        let looks = matches!(ty.look, Look::Key | Look::Owner);
        let written_key = ty
            .key_field()
            .and_then(|(field, _)| sample.created.get(field))
            .and_then(Value::as_text);
        if let (Some(key), true) = (written_key, looks) {
            let before = self.read(LookFor::Key(key)).await;
            assert!(before.is_none(), "{}: nothing is there at first", sample.ty);
        }

        let object = self.made(1, ty, me).await;
        if ty.look != Look::Never {
            let again = self.create(1, me).await;
            let again = again.unwrap_or_else(|error| {
                panic!(
                    "{}: the same token gives the same object: {error}",
                    sample.ty
                )
            });
            assert_eq!(again.key, object.key, "{}: the same object", sample.ty);
        }
        if written_key.is_some() {
            match self.create(2, (&sample.other).into()).await {
                Err(OpError::Exists { tags, .. }) => self.tags_name_the_owner(ty.tags, &tags),
                other => panic!("{}: a taken name is `Exists`: {other:?}", sample.ty),
            }
        }
        if looks {
            self.is_read(&object, ty, &sample.created, &Params::new())
                .await;
        }
        if let Some(updated) = &sample.updated {
            let bare = without_contributions(ty, updated);
            let mut prior = &sample.created;
            for (number, params) in (7..).zip([updated, &bare, &sample.created]) {
                let after = self.update(number, ty, &object, [prior, params], me).await;
                if looks {
                    self.is_read(&after, ty, params, prior).await;
                }
                prior = params;
            }
        }
        self.delete(4, ty, &object, me).await;
        let context = self.context(5, 1, None, me);
        let again = self
            .provider
            .delete(&context, &sample.ty, &object.key, &object.outputs)
            .await;
        assert!(
            matches!(again, Err(OpError::NotFound) | Ok(Progress::Done(()))),
            "{}: deleting what is gone is no failure: {again:?}",
            sample.ty
        );
        if ty.updates {
            let params = &sample.created;
            let missing = self.try_update(6, &object, [params, params], me).await;
            assert!(
                matches!(missing, Err(OpError::NotFound)),
                "{}: what is gone cannot be updated: {missing:?}",
                sample.ty
            );
        }
    }

    /// The tags of an object are of its last write, and whose it is may have changed since: its
    /// resource got another id, which writes nothing, or a person took it over.
    async fn life_under_other_tags(&self, ty: &ResourceType) {
        let Sample { owner, other, .. } = self.sample;
        let former: ResourceId = format!("{}-1", owner.resource)
            .parse()
            .expect("an id and a digit");
        let before = Owner {
            resource: former.clone(),
            ..owner.clone()
        };
        let renamed = Earlier {
            former: &[former],
            taken_from: None,
        };
        let others = other.tags().into_iter();
        let others = others.map(|(key, value)| (key.to_owned(), value)).collect();
        let taken = Earlier {
            former: &[],
            taken_from: Some(&owner_tags(&others)),
        };
        for (number, made_by, earlier) in [(10, &before, renamed), (20, other, taken)] {
            let me = By { owner, earlier };
            let object = self.made(number, ty, made_by.into()).await;
            self.delete(number + 1, ty, &object, me).await;
            let Some(updated) = &self.sample.updated else {
                continue;
            };
            let object = self.made(number + 2, ty, made_by.into()).await;
            let params = [&self.sample.created, updated];
            self.update(number + 3, ty, &object, params, me).await;
            if matches!(ty.look, Look::Key | Look::Owner) {
                let found = self.read(LookFor::Key(&object.key)).await;
                let found = found.unwrap_or_else(|| panic!("{}: it is found by key", ty.name));
                // From here on nothing tells whose it was.
                self.tags_name_the_owner(ty.tags, &found.tags);
            }
            self.delete(number + 4, ty, &object, owner.into()).await;
        }
    }

    fn tags_name_the_owner(&self, tagged: bool, tags: &BTreeMap<String, String>) {
        if tagged {
            let owner = &self.sample.owner;
            assert!(
                owner.owns(|key| tags.get(key).map(String::as_str), &[]),
                "{}: tags name the owner: {tags:?}",
                self.sample.ty
            );
        }
    }

    /// A read shows what the call that made `object` wrote, and what it left out of `prior` is
    /// unset.
    async fn is_read(&self, object: &Object, ty: &ResourceType, params: &Params, prior: &Params) {
        let key = object.key.as_str();
        let found = self.read(LookFor::Key(key)).await;
        let found = found.unwrap_or_else(|| panic!("{}: it is found by key", ty.name));
        assert_eq!(found.object.key, key, "{}: under its key", ty.name);
        self.tags_name_the_owner(ty.tags, &found.tags);
        let comparable = |name: &str| {
            let field = ty.fields.get(name);
            field.is_none_or(|field| !field.volatile && !field.sensitive)
        };
        let same = |name: &str, value: &Value| {
            let field = ty.fields.get(name);
            let there = found.params.get(name);
            there.is_some_and(|there| equal(field, there, value))
        };
        for (name, value) in params.iter().filter(|(name, _)| comparable(name)) {
            let there = found.params.get(name);
            let ty = &ty.name;
            assert!(same(name, value), "{ty}.{name}: {there:?} is {value:?}");
        }
        let left_out = prior
            .iter()
            .filter(|(name, _)| comparable(name) && !params.contains_key(name));
        for (name, value) in left_out {
            let field = ty.fields.get(name.as_str());
            let default = field.map(|field| &field.presence);
            let is_default = default == Some(&Presence::Default(value.clone()));
            assert!(
                is_default || !same(name, value),
                "{}.{name}: what an update leaves out is unset",
                ty.name
            );
        }
        for (name, field) in &ty.fields {
            if field.role == Role::Computed && comparable(name) {
                let (told, there) = (object.outputs.get(name), found.object.outputs.get(name));
                assert_eq!(told, there, "{}.{name}: answered as it is read", ty.name);
            }
        }
        if ty.tags {
            let mine = self.read(LookFor::Mine(&self.sample.owner)).await;
            let mine = mine.unwrap_or_else(|| panic!("{}: it is found by owner", ty.name));
            assert_eq!(mine.object.key, key, "{}: the same object", ty.name);
            let theirs = self.read(LookFor::Mine(&self.sample.other)).await;
            assert!(theirs.is_none(), "{}: others find nothing", ty.name);
        }
    }

    fn context<'a>(
        &'a self,
        number: u32,
        attempt: u32,
        resume: Option<serde_json::Value>,
        by: By<'a>,
    ) -> OpContext<'a> {
        OpContext {
            token: Token(format!("{:016x}{number:016x}", self.place)),
            attempt,
            resume,
            owner: by.owner.clone(),
            earlier: by.earlier,
            assets: self.sample.assets,
        }
    }

    async fn read(&self, look: LookFor<'_>) -> Option<crate::Found> {
        let owner = &self.sample.owner;
        let answer = self.provider.read(owner, &self.sample.ty, look).await;
        answer.unwrap_or_else(|error| panic!("{}: a read succeeds: {error}", self.sample.ty))
    }

    /// Calls until it is done, and waits as it is told.
    async fn until_done<T>(
        &self,
        number: u32,
        by: By<'_>,
        call: impl AsyncFn(&OpContext<'_>) -> Result<Progress<T>, OpError>,
    ) -> Result<T, OpError> {
        let mut resume = None;
        for attempt in 1.. {
            let context = self.context(number, attempt, resume, by);
            match call(&context).await? {
                Progress::Done(done) => return Ok(done),
                Progress::Waiting {
                    after_ms,
                    resume: data,
                    ..
                } => {
                    (self.sleep)(Duration::from_millis(after_ms)).await;
                    resume = Some(data);
                }
            }
        }
        unreachable!("a call ends")
    }

    async fn create(&self, number: u32, by: By<'_>) -> Result<Object, OpError> {
        let Sample { ty, created, .. } = self.sample;
        let create =
            async |context: &OpContext<'_>| self.provider.create(context, ty, created).await;
        self.until_done(number, by, create).await
    }

    async fn made(&self, number: u32, ty: &ResourceType, by: By<'_>) -> Object {
        let object = self.create(number, by).await;
        let object =
            object.unwrap_or_else(|error| panic!("{}: a create succeeds: {error}", ty.name));
        has_its_outputs(ty, &object);
        object
    }

    async fn try_update(
        &self,
        number: u32,
        object: &Object,
        [prior, params]: [&Params; 2],
        by: By<'_>,
    ) -> Result<Object, OpError> {
        let ty = &self.sample.ty;
        let update = async |context: &OpContext<'_>| {
            let update = Update {
                params,
                prior,
                outputs: &object.outputs,
            };
            self.provider.update(context, ty, &object.key, update).await
        };
        self.until_done(number, by, update).await
    }

    async fn update(
        &self,
        number: u32,
        ty: &ResourceType,
        object: &Object,
        params: [&Params; 2],
        by: By<'_>,
    ) -> Object {
        let answer = self.try_update(number, object, params, by).await;
        let after =
            answer.unwrap_or_else(|error| panic!("{}: an update succeeds: {error}", ty.name));
        assert_eq!(after.key, object.key, "{}: the key stays", ty.name);
        has_its_outputs(ty, &after);
        after
    }

    async fn delete(&self, number: u32, ty: &ResourceType, object: &Object, by: By<'_>) {
        let Object { key, outputs } = object;
        let name = &ty.name;
        let delete =
            async |context: &OpContext<'_>| self.provider.delete(context, name, key, outputs).await;
        match self.until_done(number, by, delete).await {
            Ok(()) | Err(OpError::NotFound) => {}
            Err(error) => panic!("{name}: a delete succeeds: {error}"),
        }
        if matches!(ty.look, Look::Key | Look::Owner) {
            let after = self.read(LookFor::Key(key)).await;
            assert!(after.is_none(), "{name}: a deleted object is gone");
        }
    }
}

/// The parameters as an update of a cycle leaves them while nothing of it may stand: without what
/// others contribute.
fn without_contributions(ty: &ResourceType, params: &Params) -> Params {
    let stays = |name: &str| {
        let field = ty.fields.get(name);
        field.is_none_or(|field| field.collect.is_none() || field.presence == Presence::Required)
    };
    let kept = params.iter().filter(|(name, _)| stays(name));
    kept.map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

/// What refers to an output gets what the last answer says of it.
fn has_its_outputs(ty: &ResourceType, object: &Object) {
    for (name, field) in &ty.fields {
        if field.role == Role::Computed && field.only_with.is_none() {
            assert!(
                object.outputs.contains_key(name),
                "{}.{name}: an answer has every output",
                ty.name
            );
        }
    }
}

fn equal(field: Option<&Field>, one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::List(one), Value::List(other)) if field.is_some_and(|field| field.unordered) => {
            let count = |items: &[Value], item| items.iter().filter(|it| *it == item).count();
            one.len() == other.len() && one.iter().all(|it| count(one, it) == count(other, it))
        }
        (one, other) => one == other,
    }
}
