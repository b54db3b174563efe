//! A strict cloud in memory, with the types of the simulated one and scripted faults.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard},
};

use async_trait::async_trait;
use notation_model::{Owner, Params, ResourceType, SecretValue, TypeName, Value};
use notation_provider::{
    Found, HeldBy, LookFor, Object, OpContext, OpError, Progress, Provider, Update,
};

use super::account::{Account, bound, refers};
pub use super::account::{Fault, Gate, Thing, What, short};

/// Clones are the same cloud.
#[derive(Clone, Default)]
pub struct Cloud(Arc<Mutex<Account>>);

impl Cloud {
    pub fn new() -> Cloud {
        Cloud::default()
    }

    fn account(&self) -> MutexGuard<'_, Account> {
        self.0
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    pub fn fault(&self, fault: Fault) {
        self.account().faults.push(fault);
    }

    /// Where the next such call waits.
    pub fn gate(&self, op: &'static str, name: &'static str) -> Gate {
        let gate = Gate::new(op, name);
        self.account().gates.push(gate.clone());
        gate
    }

    /// From now on a read is a mistake.
    pub fn refuse_reads(&self) {
        self.account().no_reads = true;
    }

    pub fn forget_faults(&self) {
        self.account().faults.clear();
    }

    /// From now on the `arn` of what is made is a secret.
    pub fn hide_arns(&self) {
        self.account().secret_arns = true;
    }

    /// How many faults are still to come.
    pub fn faults_left(&self) -> usize {
        let account = self.account();
        account
            .faults
            .iter()
            .filter(|fault| fault.times > 0)
            .count()
    }

    /// Writes so far, e.g. `create a{b}`; names without `shop-dev-`.
    pub fn writes(&self) -> Vec<String> {
        self.account().calls.clone()
    }

    pub fn forget_calls(&self) {
        let mut account = self.account();
        account.calls.clear();
        account.refusals.clear();
    }

    pub fn refusals(&self) -> Vec<String> {
        self.account().refusals.clone()
    }

    pub fn names(&self) -> Vec<String> {
        self.account().objects.keys().cloned().collect()
    }

    /// Short name -> names it is bound to, and its region.
    pub fn shape(&self) -> BTreeMap<String, Vec<String>> {
        let account = self.account();
        let objects = account.objects.iter();
        objects
            .map(|(name, thing)| (short(name), bound(&thing.params)))
            .collect()
    }

    pub fn object(&self, name: &str) -> Option<Thing> {
        self.account().objects.get(name).cloned()
    }

    /// Somebody at the console.
    pub fn take_away(&self, name: &str) {
        self.account().objects.remove(name);
    }

    pub fn put(&self, name: &str, thing: Thing) {
        self.account().objects.insert(name.to_owned(), thing);
    }

    pub fn change(&self, name: &str, field: &str, value: Value) {
        let mut account = self.account();
        let thing = account.objects.get_mut(name).unwrap();
        thing.params.insert(field.to_owned(), value);
    }

    /// Who refers to whom and with what parameters, by resource: the same for two accounts when
    /// they differ in nothing but how often something was replaced.
    pub fn world(&self) -> BTreeMap<String, Vec<(String, String)>> {
        let account = self.account();
        let resource = |thing: &Thing| thing.tags["notation:resource"].clone();
        let mut world: BTreeMap<String, Vec<(String, String)>> = BTreeMap::new();
        for (name, thing) in &account.objects {
            let mut text = format!("{:?}", thing.params);
            for (other, it) in &account.objects {
                text = text.replace(&format!("{other:?}"), &resource(it));
            }
            let shown = text.replace(&format!("{name:?}"), "itself");
            let of = world.entry(resource(thing)).or_default();
            of.push((thing.ty.clone(), shown));
        }
        world
    }

    pub fn most_running(&self) -> usize {
        self.account().most_running
    }

    /// Waits for others to call, so that calls overlap, and at the gate when there is one.
    async fn overlap(&self, op: &str, name: &str) -> Running {
        {
            let mut account = self.account();
            account.running += 1;
            account.most_running = account.most_running.max(account.running);
        }
        let running = Running(self.clone());
        for _ in 0..self.patience() {
            tokio::task::yield_now().await;
        }
        let gate = self.account().gate(op, name);
        if let Some(gate) = gate {
            gate.pass().await;
        }
        running
    }

    /// Calls take their time by chance.
    pub fn shuffle(&self, seed: u64) {
        self.account().chance = seed | 1;
    }

    fn patience(&self) -> u64 {
        let mut account = self.account();
        if account.chance == 0 {
            return 20;
        }
        account.chance ^= account.chance << 13;
        account.chance ^= account.chance >> 7;
        account.chance ^= account.chance << 17;
        account.chance % 60
    }
}

struct Running(Cloud);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.account().running -= 1;
    }
}

#[async_trait]
impl Provider for Cloud {
    fn name(&self) -> &str {
        "sim"
    }

    fn types(&self) -> Vec<ResourceType> {
        let mut types = notation_provider_sim::types();
        // One more: made by the server, found by its owner.
        let blind = types.iter().find(|ty| ty.name.as_str() == "sim/Blind");
        let mut owned = blind.unwrap().clone();
        owned.name = "sim/Owned".parse().unwrap();
        owned.look = notation_model::Look::Owner;
        owned.tags = true;
        let mut free = owned.clone();
        free.name = "sim/Free".parse().unwrap();
        free.look = notation_model::Look::IdempotentCreate;
        free.tags = false;
        types.extend([owned, free]);
        types
    }

    async fn create(
        &self,
        ctx: &OpContext<'_>,
        ty: &TypeName,
        params: &Params,
    ) -> Result<Progress<Object>, OpError> {
        let written = params.get("Name").and_then(Value::as_text);
        let fault_name = match written {
            Some(name) => name.to_owned(),
            None => ctx.owner.resource.to_string(),
        };
        let _running = self.overlap("create", &fault_name).await;
        let mut account = self.account();
        let name = match written {
            Some(name) => name.to_owned(),
            None => {
                let same = account
                    .objects
                    .iter()
                    .find(|(_, thing)| thing.token == ctx.token.0)
                    .filter(|_| ty.as_str() == "sim/Free");
                match same {
                    Some((name, _)) => name.clone(),
                    None => format!("server-{}", account.made + 1),
                }
            }
        };
        if let Some(wait) = account.before("create", &fault_name, ctx)? {
            return Ok(wait);
        }
        if let Some(thing) = account.objects.get(&name) {
            if thing.token == ctx.token.0 {
                return Ok(Progress::Done(Object {
                    key: name.clone(),
                    outputs: thing.outputs.clone(),
                }));
            }
            let tags = thing.tags.clone();
            account.refusals.push(format!("exists {}", short(&name)));
            return Err(OpError::Exists { name, tags });
        }
        if let Err(error) = account.check(&name, params) {
            account.refusals.push(error.to_string());
            return Err(error);
        }
        account.about_to_write(&name);
        account.made += 1;
        let count = account.created.entry(name.clone()).or_default();
        *count += 1;
        let count = *count;
        let outputs = match ty.as_str() {
            "sim/Thing" | "sim/Frozen" => {
                Params::from([("id", Value::text(format!("id-{}", account.made)))])
            }
            "sim/Blind" | "sim/Owned" | "sim/Free" => {
                Params::from([("id", Value::text(name.clone()))])
            }
            _ => Params::from([
                ("arn", Value::text(format!("arn:{name}:{count}"))),
                ("versionId", Value::text("v1")),
            ]),
        };
        let mut outputs = outputs;
        if account.secret_arns
            && let Some(arn) = outputs.get_mut("arn")
        {
            *arn = Value::Secret(SecretValue::new(arn.clone()));
        }
        account.objects.insert(
            name.clone(),
            Thing {
                ty: ty.to_string(),
                params: params.clone(),
                outputs: outputs.clone(),
                tags: ctx
                    .owner
                    .tags()
                    .into_iter()
                    .map(|(key, value)| (key.to_owned(), value))
                    .collect(),
                token: ctx.token.0.clone(),
                writes: 1,
            },
        );
        account.log("create", &name, Some(params));
        account.after()?;
        Ok(Progress::Done(Object { key: name, outputs }))
    }

    async fn read(
        &self,
        _: &Owner,
        ty: &TypeName,
        look: LookFor<'_>,
    ) -> Result<Option<Found>, OpError> {
        let mut account = self.account();
        assert!(!account.no_reads, "nothing was to be read");
        assert!(
            !matches!(ty.as_str(), "sim/Blind" | "sim/Free"),
            "{ty} cannot be read"
        );
        let name = match look {
            LookFor::Key(name) => Some(name.to_owned()),
            LookFor::Mine(owner) => account
                .objects
                .iter()
                .find(|(_, thing)| {
                    thing.ty == ty.as_str()
                        && owner
                            .tags()
                            .iter()
                            .all(|(key, value)| thing.tags.get(*key) == Some(value))
                })
                .map(|(name, _)| name.clone()),
        };
        let Some(name) = name else { return Ok(None) };
        let now = account.objects.get(&name).cloned();
        let seen = match account.take_fault("read", &name) {
            Some(What::Transient) => {
                return Err(OpError::Transient {
                    message: "try again".into(),
                    after_ms: None,
                });
            }
            Some(What::Panic) => panic!("the provider is broken"),
            Some(What::Absent) => return Ok(None),
            Some(What::Stale) => account.earlier.get(&name).cloned().unwrap_or(now),
            Some(_) | None => now,
        };
        let seen = seen.filter(|thing| thing.ty == ty.as_str());
        Ok(seen.map(|thing| {
            let mut params = thing.params.clone();
            params.insert("tier", Value::text("standard"));
            if let Some(Value::List(items)) = params.get_mut("bindings") {
                items.reverse();
            }
            let mut outputs = thing.outputs.clone();
            outputs.extend(params.clone());
            Found {
                object: Object {
                    key: name.clone(),
                    outputs,
                },
                params,
                tags: thing.tags.clone(),
            }
        }))
    }

    async fn update(
        &self,
        ctx: &OpContext<'_>,
        ty: &TypeName,
        key: &str,
        update: Update<'_>,
    ) -> Result<Progress<Object>, OpError> {
        let _running = self.overlap("update", key).await;
        let mut account = self.account();
        assert_ne!(ty.as_str(), "sim/Frozen", "it has no update");
        if let Some(wait) = account.before("update", key, ctx)? {
            return Ok(wait);
        }
        if account
            .objects
            .get(key)
            .is_none_or(|thing| thing.ty != ty.as_str())
        {
            account.refusals.push(format!("not found {}", short(key)));
            return Err(OpError::NotFound);
        }
        if let Err(error) = account.check(key, update.params) {
            account.refusals.push(error.to_string());
            return Err(error);
        }
        account.about_to_write(key);
        let thing = account.objects.get_mut(key).unwrap();
        assert_eq!(
            thing.params.get("region"),
            update.params.get("region"),
            "the region of {key} cannot be changed"
        );
        thing.writes += 1;
        thing.params = update.params.clone();
        thing.tags = ctx
            .owner
            .tags()
            .into_iter()
            .map(|(key, value)| (key.to_owned(), value))
            .collect();
        let version = Value::text(format!("v{}", thing.writes));
        if let Some(output) = thing.outputs.get_mut("versionId") {
            *output = version;
        }
        let outputs = thing.outputs.clone();
        account.log("update", key, Some(update.params));
        account.after()?;
        Ok(Progress::Done(Object {
            key: key.to_owned(),
            outputs,
        }))
    }

    async fn delete(
        &self,
        ctx: &OpContext<'_>,
        ty: &TypeName,
        key: &str,
        _: &Params,
    ) -> Result<Progress<()>, OpError> {
        let _running = self.overlap("delete", key).await;
        let mut account = self.account();
        if let Some(wait) = account.before("delete", key, ctx)? {
            return Ok(wait);
        }
        if account
            .objects
            .get(key)
            .is_none_or(|thing| thing.ty != ty.as_str())
        {
            return Err(OpError::NotFound);
        }
        let holders: Vec<String> = account
            .objects
            .iter()
            .filter(|(name, thing)| {
                *name != key && refers(&thing.params).iter().any(|to| to == key)
            })
            .map(|(name, _)| name.clone())
            .collect();
        if !holders.is_empty() {
            account
                .refusals
                .push(format!("{} is held by {}", short(key), holders.join(", ")));
            return Err(OpError::InUse {
                held_by: HeldBy(holders),
            });
        }
        account.about_to_write(key);
        account.objects.remove(key);
        account.log("delete", key, None);
        account.after()?;
        Ok(Progress::Done(()))
    }
}
