//! A cloud in a temporary folder, and short words for calls.
#![allow(
    dead_code,
    clippy::unwrap_used,
    reason = "words for tests; every test binary uses some of them"
)]

use std::path::PathBuf;

use notation_model::{Owner, Params, TypeName, Value};
use notation_provider::{
    Found, LookFor, NoAssets, Object, OpContext, OpError, Progress, Provider as _, Token, Update,
};
use notation_provider_sim::{CallLog, SimProvider};
use serde_json::{Value as Json, json};

pub struct Lab {
    pub dir: tempfile::TempDir,
    pub sim: SimProvider,
}

pub type Answer = Result<Progress<Object>, OpError>;

impl Lab {
    pub fn new() -> Lab {
        let dir = tempfile::tempdir().unwrap();
        let sim = SimProvider::with_log(dir.path().join("sim"), CallLog::On);
        Lab { dir, sim }
    }

    /// The same account as another process would open it.
    pub fn reopen(&self) -> SimProvider {
        SimProvider::with_log(self.folder(), CallLog::On)
    }

    pub fn folder(&self) -> PathBuf {
        self.dir.path().join("sim")
    }

    pub fn faults(&self, script: Json) {
        std::fs::create_dir_all(self.folder()).unwrap();
        std::fs::write(self.folder().join("faults.json"), script.to_string()).unwrap();
    }

    pub fn objects(&self) -> Json {
        serde_json::from_str(&notation_provider_sim::dump(&self.folder()).unwrap()).unwrap()
    }

    pub fn edit(&self, edit: impl FnOnce(&mut Json)) {
        let mut objects = self.objects();
        edit(&mut objects);
        std::fs::write(self.folder().join("objects.json"), format!("{objects:#}")).unwrap();
    }

    pub fn calls(&self) -> Vec<Json> {
        let text = std::fs::read_to_string(self.folder().join("calls.ndjson")).unwrap_or_default();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    /// `op name result` of every call.
    pub fn log(&self) -> Vec<String> {
        let word = |call: &Json, member: &str| call[member].as_str().unwrap().to_owned();
        self.calls()
            .iter()
            .map(|call| {
                format!(
                    "{} {} {}",
                    word(call, "op"),
                    word(call, "name"),
                    word(call, "result")
                )
            })
            .collect()
    }

    pub async fn create(&self, ty: &str, params: Json) -> Answer {
        self.create_with(&self.sim, ty, params, &fresh()).await
    }

    pub async fn create_with(
        &self,
        sim: &SimProvider,
        ty: &str,
        params: Json,
        token: &str,
    ) -> Answer {
        sim.create(&ctx(token), &ty_name(ty), &params_of(params))
            .await
    }

    pub async fn update(&self, ty: &str, key: &str, params: Json) -> Answer {
        let params = params_of(params);
        let empty = Params::new();
        let update = Update {
            params: &params,
            prior: &empty,
            outputs: &empty,
        };
        self.sim
            .update(&ctx(&fresh()), &ty_name(ty), key, update)
            .await
    }

    pub async fn delete(&self, ty: &str, key: &str) -> Result<Progress<()>, OpError> {
        self.sim
            .delete(&ctx(&fresh()), &ty_name(ty), key, &Params::new())
            .await
    }

    pub async fn read(&self, ty: &str, key: &str) -> Result<Option<Found>, OpError> {
        self.sim
            .read(&owner("a", 0), &ty_name(ty), LookFor::Key(key))
            .await
    }
}

pub fn ctx(token: &str) -> OpContext<'static> {
    OpContext {
        token: Token(token.into()),
        attempt: 1,
        resume: None,
        owner: owner("a", 0),
        earlier: Default::default(),
        assets: &NoAssets,
    }
}

pub fn owner(resource: &str, generation: u32) -> Owner {
    Owner {
        deployment: "shop:dev:main".parse().unwrap(),
        resource: resource.parse().unwrap(),
        generation,
    }
}

/// A token nobody used before.
pub fn fresh() -> String {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(0);
    format!("{:032x}", NEXT.fetch_add(1, Ordering::Relaxed))
}

pub fn ty_name(ty: &str) -> TypeName {
    format!("sim/{ty}").parse().unwrap()
}

pub fn params_of(json: Json) -> Params {
    match Value::from(json) {
        Value::Map(members) => members,
        other => panic!("not a map: {other:?}"),
    }
}

pub fn binds(name: &str, services: &[&str]) -> Json {
    let items: Vec<Json> = services
        .iter()
        .map(|service| json!({ "type": "service", "service": service }))
        .collect();
    json!({ "Name": name, "bindings": items })
}

#[track_caller]
pub fn done<T: std::fmt::Debug>(answer: Result<Progress<T>, OpError>) -> T {
    match answer {
        Ok(Progress::Done(object)) => object,
        other => panic!("not done: {other:?}"),
    }
}

#[track_caller]
pub fn refused<T: std::fmt::Debug>(answer: Result<Progress<T>, OpError>) -> String {
    match answer {
        Err(OpError::Refused { message }) => message,
        other => panic!("not refused: {other:?}"),
    }
}

pub fn out<'a>(object: &'a Object, name: &str) -> &'a str {
    object.outputs[name].as_text().unwrap()
}
