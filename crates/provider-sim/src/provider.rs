//! The four verbs, as calls of the cloud.

use std::{path::Path, sync::Arc, time::Duration};

use async_trait::async_trait;
use notation_model::{Owner, Params, ResourceType, TypeName};
use notation_provider::{Found, LookFor, Object, OpContext, OpError, Progress, Provider, Update};
use serde_json::{Map, Value as Json};

use crate::{
    calls::{CallLog, Op},
    cloud::{Answer, Call, Cloud, Look},
    object::to_json,
    stock,
};

/// The simulated cloud as a provider. Cheap to open: the folder is made at the first call.
#[derive(Debug, Clone)]
pub struct SimProvider {
    cloud: Arc<Cloud>,
}

impl SimProvider {
    /// The account in this folder. `NOTATION_SIM_CALLS=off` turns the call log off.
    pub fn open(dir: impl AsRef<Path>) -> SimProvider {
        SimProvider::with_log(dir, CallLog::from_env())
    }

    /// The account in this folder, with or without a call log.
    pub fn with_log(dir: impl AsRef<Path>, log: CallLog) -> SimProvider {
        SimProvider {
            cloud: Arc::new(Cloud::new(dir.as_ref(), log)),
        }
    }

    /// Latency is spent outside the lock, side by side with other calls.
    async fn call(&self, call: Call) -> Result<Answer, OpError> {
        let cloud = Arc::clone(&self.cloud);
        let begun = blocking(move || cloud.begin());
        let (running, latency_ms) = begun.await?;
        if latency_ms > 0 {
            tokio::time::sleep(Duration::from_millis(latency_ms)).await;
        }
        let answer = self.cloud.ask(call, &running);
        let cloud = Arc::clone(&self.cloud);
        blocking(move || {
            cloud.answer_all();
            Ok(())
        })
        .await?;
        answer
            .await
            .unwrap_or_else(|_| Err(broke("it ended early")))
    }
}

/// Files are used outside the async threads.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, OpError> + Send + 'static,
) -> Result<T, OpError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(panic) => Err(broke(&panic.to_string())),
    }
}

fn broke(why: &str) -> OpError {
    OpError::Failed {
        message: format!("the simulated cloud broke: {why}"),
    }
}

fn in_clear(params: &Params) -> Result<Map<String, Json>, OpError> {
    to_json(params).ok_or_else(|| OpError::Failed {
        message: "a parameter is not known yet".into(),
    })
}

#[async_trait]
impl Provider for SimProvider {
    fn name(&self) -> &str {
        stock::PROVIDER
    }

    fn types(&self) -> Vec<ResourceType> {
        stock::types()
    }

    async fn create(
        &self,
        ctx: &OpContext<'_>,
        ty: &TypeName,
        params: &Params,
    ) -> Result<Progress<Object>, OpError> {
        let declared = self.cloud.ty(ty);
        let look = match (params.get("Name").and_then(|name| name.as_text()), declared) {
            (Some(name), _) => Look::Name(name.to_owned()),
            (None, Some(ty)) if ty.naming.is_some() => Look::Mine,
            (None, _) => Look::New,
        };
        let answer = self.call(Call {
            op: Op::Create,
            ty: ty.clone(),
            look,
            params: Some(in_clear(params)?),
            token: Some(ctx.token.to_string()),
            resume: ctx.resume.clone(),
            owner: ctx.owner.clone(),
        });
        written(answer.await?)
    }

    async fn read(
        &self,
        owner: &Owner,
        ty: &TypeName,
        look: LookFor<'_>,
    ) -> Result<Option<Found>, OpError> {
        let (owner, look) = match look {
            LookFor::Key(key) => (owner, Look::Name(key.to_owned())),
            LookFor::Mine(owner) => (owner, Look::Mine),
        };
        let answer = self.call(Call {
            op: Op::Read,
            ty: ty.clone(),
            look,
            params: None,
            token: None,
            resume: None,
            owner: owner.clone(),
        });
        match answer.await? {
            Answer::Found(found) => Ok(found),
            Answer::Object(_) | Answer::Gone | Answer::Waiting { .. } => Err(confused()),
        }
    }

    async fn update(
        &self,
        ctx: &OpContext<'_>,
        ty: &TypeName,
        key: &str,
        update: Update<'_>,
    ) -> Result<Progress<Object>, OpError> {
        let answer = self.call(Call {
            op: Op::Update,
            ty: ty.clone(),
            look: Look::Name(key.to_owned()),
            params: Some(in_clear(update.params)?),
            token: Some(ctx.token.to_string()),
            resume: ctx.resume.clone(),
            owner: ctx.owner.clone(),
        });
        written(answer.await?)
    }

    async fn delete(
        &self,
        ctx: &OpContext<'_>,
        ty: &TypeName,
        key: &str,
        _outputs: &Params,
    ) -> Result<Progress<()>, OpError> {
        let answer = self.call(Call {
            op: Op::Delete,
            ty: ty.clone(),
            look: Look::Name(key.to_owned()),
            params: None,
            token: Some(ctx.token.to_string()),
            resume: ctx.resume.clone(),
            owner: ctx.owner.clone(),
        });
        match answer.await? {
            Answer::Gone => Ok(Progress::Done(())),
            Answer::Waiting { after_ms, resume } => Ok(waiting(after_ms, resume)),
            Answer::Object(_) | Answer::Found(_) => Err(confused()),
        }
    }
}

fn written(answer: Answer) -> Result<Progress<Object>, OpError> {
    match answer {
        Answer::Object(object) => Ok(Progress::Done(object)),
        Answer::Waiting { after_ms, resume } => Ok(waiting(after_ms, resume)),
        Answer::Found(_) | Answer::Gone => Err(confused()),
    }
}

fn waiting<T>(after_ms: u64, resume: Json) -> Progress<T> {
    Progress::Waiting {
        after_ms,
        resume,
        reason: "the simulated cloud is not finished yet".into(),
    }
}

fn confused() -> OpError {
    OpError::Failed {
        message: "the simulated cloud gave the answer of another call".into(),
    }
}
