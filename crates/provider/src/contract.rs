//! The contract of a provider, runnable: a provider's tests call [`run`] with one sample per
//! type.

use std::{collections::BTreeMap, future::Future, pin::Pin, time::Duration};

use notation_model::{Look, Owner, Params, TypeName, Value};

use crate::{
    Assets, LookFor, NoAssets, Object, OpContext, OpError, Progress, Provider, Token, Update,
};

/// How the suite waits: the provider's tests bring their clock.
pub type Sleep<'a> = &'a (dyn Fn(Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> + Sync);

/// One type to try, with parameters that the provider takes as they are.
pub struct Sample<'a> {
    /// The type.
    pub ty: TypeName,
    /// Parameters of a first create, key included when the program gives it.
    pub created: Params,
    /// Other parameters for an update; `None` when the type has none.
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
    for sample in samples {
        let suite = Suite {
            provider,
            sample,
            sleep,
        };
        suite.life().await;
    }
}

struct Suite<'a> {
    provider: &'a dyn Provider,
    sample: &'a Sample<'a>,
    sleep: Sleep<'a>,
}

fn token(number: u32) -> Token {
    Token(format!("{number:032x}"))
}

impl Suite<'_> {
    async fn life(&self) {
        let sample = self.sample;
        let types = self.provider.types();
        let found = types.iter().find(|ty| ty.name == sample.ty);
        let ty = found.unwrap_or_else(|| panic!("{} is declared", sample.ty));
        let looks = matches!(ty.look, Look::Key | Look::Owner);
        let written_key = ty
            .key_field()
            .and_then(|(field, _)| sample.created.get(field))
            .and_then(Value::as_text);
        if let (Some(key), true) = (written_key, looks) {
            let before = self.read(LookFor::Key(key)).await;
            assert!(before.is_none(), "{}: nothing is there at first", sample.ty);
        }

        let object = self
            .create(1, &sample.owner)
            .await
            .unwrap_or_else(|error| panic!("{}: a create succeeds: {error}", sample.ty));
        if ty.look != Look::Never {
            let again = self.create(1, &sample.owner).await;
            let again = again.unwrap_or_else(|error| {
                panic!(
                    "{}: the same token gives the same object: {error}",
                    sample.ty
                )
            });
            assert_eq!(again.key, object.key, "{}: the same object", sample.ty);
        }
        if written_key.is_some() {
            match self.create(2, &sample.other).await {
                Err(OpError::Exists { tags, .. }) => self.tags_name_the_owner(ty.tags, &tags),
                other => panic!("{}: a taken name is `Exists`: {other:?}", sample.ty),
            }
        }
        if looks {
            self.is_read(&object.key, ty, &sample.created).await;
        }
        if let Some(updated) = &sample.updated {
            let after = self.update(3, &object, updated).await;
            assert_eq!(after.key, object.key, "{}: the key stays", sample.ty);
            if looks {
                self.is_read(&object.key, ty, updated).await;
            }
        }
        self.delete(4, &object).await;
        if looks {
            let after = self.read(LookFor::Key(&object.key)).await;
            assert!(after.is_none(), "{}: a deleted object is gone", sample.ty);
        }
        let context = self.context(5, 1, None, &sample.owner);
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
            let missing = self.try_update(6, &object, &sample.created).await;
            assert!(
                matches!(missing, Err(OpError::NotFound)),
                "{}: what is gone cannot be updated: {missing:?}",
                sample.ty
            );
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

    async fn is_read(&self, key: &str, ty: &notation_model::ResourceType, params: &Params) {
        let found = self.read(LookFor::Key(key)).await;
        let found = found.unwrap_or_else(|| panic!("{}: it is found by key", ty.name));
        assert_eq!(found.object.key, key, "{}: under its key", ty.name);
        self.tags_name_the_owner(ty.tags, &found.tags);
        for (name, value) in params {
            let field = ty.fields.get(name.as_str());
            let skipped =
                field.is_some_and(|field| field.volatile || field.sensitive || field.unordered);
            if !skipped {
                assert_eq!(found.params.get(name), Some(value), "{}.{name}", ty.name);
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

    fn context(
        &self,
        number: u32,
        attempt: u32,
        resume: Option<serde_json::Value>,
        owner: &Owner,
    ) -> OpContext<'_> {
        OpContext {
            token: token(number),
            attempt,
            resume,
            owner: owner.clone(),
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
        owner: &Owner,
        call: impl AsyncFn(&OpContext<'_>) -> Result<Progress<T>, OpError>,
    ) -> Result<T, OpError> {
        let mut resume = None;
        for attempt in 1.. {
            let context = self.context(number, attempt, resume, owner);
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

    async fn create(&self, number: u32, owner: &Owner) -> Result<Object, OpError> {
        let Sample { ty, created, .. } = self.sample;
        let create =
            async |context: &OpContext<'_>| self.provider.create(context, ty, created).await;
        self.until_done(number, owner, create).await
    }

    async fn try_update(
        &self,
        number: u32,
        object: &Object,
        params: &Params,
    ) -> Result<Object, OpError> {
        let Sample { ty, created, .. } = self.sample;
        let update = async |context: &OpContext<'_>| {
            let update = Update {
                params,
                prior: created,
                outputs: &object.outputs,
            };
            self.provider.update(context, ty, &object.key, update).await
        };
        self.until_done(number, &self.sample.owner, update).await
    }

    async fn update(&self, number: u32, object: &Object, params: &Params) -> Object {
        let answer = self.try_update(number, object, params).await;
        answer.unwrap_or_else(|error| panic!("{}: an update succeeds: {error}", self.sample.ty))
    }

    async fn delete(&self, number: u32, object: &Object) {
        let Object { key, outputs } = object;
        let ty = &self.sample.ty;
        let delete =
            async |context: &OpContext<'_>| self.provider.delete(context, ty, key, outputs).await;
        match self.until_done(number, &self.sample.owner, delete).await {
            Ok(()) | Err(OpError::NotFound) => {}
            Err(error) => panic!("{ty}: a delete succeeds: {error}"),
        }
    }
}
