//! The provider: what goes wrong, and the order of lock, change, line and answer.

use std::{
    hash::{BuildHasher as _, Hasher as _, RandomState},
    path::Path,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use notation_model::{Owner, Params, ResourceType, TypeName, TypeSet};
use notation_provider::{
    Found, HeldBy, LookFor, Object, OpContext, OpError, Progress, Provider, Update,
};
use serde_json::{Map, Value as Json};

use crate::{
    SimError,
    account::{Done, Write, server_made_id, short},
    calls::{CallLog, Line, Op, owner_json, word},
    fault::{Fault, FaultAct},
    folder::Folder,
    in_flight::{InFlight, Running},
    memory::{Wait, ticket},
    object::to_json,
    stock,
};

/// The simulated cloud as a provider. Cheap to open: the folder is made at the first call.
#[derive(Debug, Clone)]
pub struct SimProvider {
    cloud: Arc<Cloud>,
}

#[derive(Debug)]
struct Cloud {
    types: TypeSet,
    log: CallLog,
    opened: String,
    in_flight: Arc<InFlight>,
    reads: AtomicU64,
    folder: Mutex<Folder>,
}

/// One call, with everything it brings along.
#[derive(Debug)]
struct Call {
    op: Op,
    ty: TypeName,
    look: Look,
    params: Option<Map<String, Json>>,
    token: Option<String>,
    resume: Option<Json>,
    owner: Owner,
}

/// Which object is meant.
#[derive(Debug)]
enum Look {
    /// The one of this name.
    Name(String),
    /// The one that belongs to the caller.
    Mine,
    /// A new one whose name the cloud makes.
    New,
}

/// What a call is answered with.
#[derive(Debug)]
enum Answer {
    Object(Object),
    Found(Option<Found>),
    Gone,
    Waiting { after_ms: u64, resume: Json },
}

impl SimProvider {
    /// The account in this folder. `NOTATION_SIM_CALLS=off` turns the call log off.
    pub fn open(dir: impl AsRef<Path>) -> SimProvider {
        SimProvider::with_log(dir, CallLog::from_env())
    }

    /// The account in this folder, with or without a call log.
    pub fn with_log(dir: impl AsRef<Path>, log: CallLog) -> SimProvider {
        let opened = opened();
        let cloud = Cloud {
            types: TypeSet::new(stock::types()),
            log,
            in_flight: Arc::new(InFlight::new(dir.as_ref(), &opened)),
            opened,
            reads: AtomicU64::new(0),
            folder: Mutex::new(Folder::new(dir.as_ref())),
        };
        SimProvider {
            cloud: Arc::new(cloud),
        }
    }

    async fn call(&self, call: Call) -> Result<Answer, OpError> {
        let cloud = Arc::clone(&self.cloud);
        let begun = blocking(move || {
            let running = cloud.begin()?;
            Ok((running, cloud.latency()?))
        });
        let (running, latency) = begun.await?;
        if !latency.is_zero() {
            tokio::time::sleep(latency).await;
        }
        let cloud = Arc::clone(&self.cloud);
        blocking(move || cloud.carry_out(&call, &running)).await
    }
}

/// Names one opened account among all, of any process on any machine.
fn opened() -> String {
    let random = RandomState::new().build_hasher().finish();
    format!("{}-{random:016x}", std::process::id())
}

/// Files are used outside the async threads.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, OpError> + Send + 'static,
) -> Result<T, OpError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(panic) => Err(OpError::Failed {
            message: format!("the simulated cloud broke: {panic}"),
        }),
    }
}

impl From<SimError> for OpError {
    fn from(error: SimError) -> OpError {
        OpError::Failed {
            message: error.to_string(),
        }
    }
}

impl Cloud {
    fn begin(&self) -> Result<Running, OpError> {
        self.in_flight.begin().map_err(|error| OpError::Failed {
            message: format!("the simulated cloud cannot count its calls: {error}"),
        })
    }

    fn latency(&self) -> Result<Duration, OpError> {
        let folder = self.folder.lock().unwrap_or_else(PoisonError::into_inner);
        let script = folder.script()?;
        Ok(Duration::from_millis(
            script.map_or(0, |script| script.latency_ms()),
        ))
    }

    /// Lock, look at the script, change, line, answer.
    fn carry_out(&self, call: &Call, running: &Running) -> Result<Answer, OpError> {
        let mut folder = self.folder.lock().unwrap_or_else(PoisonError::into_inner);
        let folder = &mut *folder;
        let _lock = folder.lock()?;
        folder.load()?;
        let ty = self.types.get(&call.ty).ok_or_else(|| OpError::Failed {
            message: format!("the simulated cloud has no type {}", call.ty),
        })?;
        let name = name_of(folder, ty, call);
        let seq = folder.next_seq()?;
        let fault = match self.may_go_on(folder, call) {
            Ok(()) => take_fault(folder, call.op, &name)?,
            Err(error) => {
                self.log(
                    folder,
                    call,
                    &Logged {
                        seq,
                        name: &name,
                        running,
                        result: &Err(error.clone()),
                    },
                )?;
                return Err(error);
            }
        };
        let act = fault.as_ref().map(|fault| fault.act);
        if act == Some(FaultAct::KillBefore) {
            std::process::abort();
        }
        let result = match &fault {
            Some(fault) => self.faulty(folder, ty, call, &name, fault),
            None => self.perform(folder, ty, call, &name)?,
        };
        self.log(
            folder,
            call,
            &Logged {
                seq,
                name: &name,
                running,
                result: &result,
            },
        )?;
        if act == Some(FaultAct::KillAfter) {
            std::process::abort();
        }
        result
    }

    /// A call that was answered with waiting must bring back what it was given.
    fn may_go_on(&self, folder: &Folder, call: &Call) -> Result<(), OpError> {
        let Some(token) = &call.token else {
            return Ok(());
        };
        let fits = match folder.account.memory.header.waits.get(token) {
            Some(wait) => wait.accepts(token, call.resume.as_ref(), &self.opened),
            None => call.resume.is_none(),
        };
        if fits {
            return Ok(());
        }
        Err(OpError::Failed {
            message: "the call did not bring back the data it was told to wait with".into(),
        })
    }

    /// The call as the script wants it.
    fn faulty(
        &self,
        folder: &mut Folder,
        ty: &ResourceType,
        call: &Call,
        name: &str,
        fault: &Fault,
    ) -> Result<Answer, OpError> {
        let transient = |message: &str, after_ms| OpError::Transient {
            message: message.into(),
            after_ms,
        };
        match fault.act {
            FaultAct::Fail => Err(OpError::Failed {
                message: "failed as the script asks".into(),
            }),
            FaultAct::Transient => Err(transient("failed for now, as the script asks", None)),
            FaultAct::Throttle => Err(transient(
                "too many calls",
                Some(fault.delay_ms.unwrap_or(0)),
            )),
            FaultAct::LoseReply => {
                // Also a no gets lost on its way.
                let _ = self.perform(folder, ty, call, name)?;
                Err(transient("the reply was lost", None))
            }
            FaultAct::KillBefore | FaultAct::KillAfter => self.perform(folder, ty, call, name)?,
            FaultAct::Refuse => Err(refusal(call.op, fault.holder.as_deref())),
            FaultAct::StaleRead => Ok(Answer::Found(folder.account.read_stale(
                ty,
                name,
                self.nth_read(),
            ))),
            FaultAct::Wait => self.wait(folder, call, fault),
        }
    }

    fn wait(&self, folder: &mut Folder, call: &Call, fault: &Fault) -> Result<Answer, OpError> {
        let token = call.token.clone().unwrap_or_default();
        let waits = &mut folder.account.memory.header.waits;
        let answers = waits.get(&token).map_or(0, |wait| wait.answers) + 1;
        let wait = Wait {
            answers,
            opened: self.opened.clone(),
        };
        waits.insert(token.clone(), wait);
        folder.save_memory()?;
        Ok(Answer::Waiting {
            after_ms: fault.delay_ms.unwrap_or(0),
            resume: ticket(&token, answers),
        })
    }

    /// The call as it should be. Outer error: the folder; inner: the cloud's answer.
    fn perform(
        &self,
        folder: &mut Folder,
        ty: &ResourceType,
        call: &Call,
        name: &str,
    ) -> Result<Result<Answer, OpError>, SimError> {
        let stamp = folder.stamp()?;
        let none = Map::new();
        let write = Write {
            ty,
            name,
            params: call.params.as_ref().unwrap_or(&none),
            token: call.token.as_deref().unwrap_or_default(),
            owner: &call.owner,
        };
        let account = &mut folder.account;
        let done = match call.op {
            Op::Read if ty.look == notation_model::Look::Never => {
                return Ok(Err(OpError::Refused {
                    message: format!("{} cannot be read", ty.name),
                }));
            }
            Op::Read => return Ok(Ok(Answer::Found(account.read(ty, name, self.nth_read())))),
            Op::Create => account.create(write, stamp),
            Op::Update => account.update(write, stamp),
            Op::Delete => match account.delete(ty, name, stamp) {
                Ok(()) => return folder.save().map(|()| Ok(Answer::Gone)),
                Err(error) => Err(error),
            },
        };
        match done {
            Ok(Done::Written(object)) => folder.save().map(|()| Ok(Answer::Object(object))),
            Ok(Done::Before(object)) => Ok(Ok(Answer::Object(object))),
            Err(error) => Ok(Err(error)),
        }
    }

    fn nth_read(&self) -> u64 {
        self.reads.fetch_add(1, Ordering::Relaxed) + 1
    }

    fn log(&self, folder: &mut Folder, call: &Call, logged: &Logged<'_>) -> Result<(), OpError> {
        if self.log == CallLog::Off {
            return Ok(());
        }
        let (result, detail) = match logged.result {
            Ok(Answer::Waiting { after_ms, .. }) => {
                ("waiting", Some(format!("again in {after_ms} ms")))
            }
            Ok(Answer::Found(None)) => ("not_found", None),
            Ok(Answer::Object(_) | Answer::Found(Some(_)) | Answer::Gone) => ("ok", None),
            Err(error) => (word(error), Some(error.to_string())),
        };
        let line = Line {
            seq: logged.seq,
            op: call.op,
            ty: short(&call.ty),
            name: logged.name,
            params: call.params.as_ref(),
            token: call.token.as_deref(),
            owner: owner_json(&call.owner),
            in_flight: logged.running.in_flight,
            result,
            detail,
        };
        let text = serde_json::to_string(&line).expect("a line has text keys only");
        Ok(folder.append(&text, logged.seq)?)
    }
}

struct Logged<'a> {
    seq: u64,
    name: &'a str,
    running: &'a Running,
    result: &'a Result<Answer, OpError>,
}

/// The object's name at the cloud, also when there is no such object.
fn name_of(folder: &Folder, ty: &ResourceType, call: &Call) -> String {
    match &call.look {
        Look::Name(name) => name.clone(),
        Look::New => server_made_id(folder.account.memory.header.made + 1),
        Look::Mine => match (folder.account.name_of(ty, &call.owner), &ty.naming) {
            (Some(name), _) => name.to_owned(),
            (None, Some(naming)) => naming.generate(&call.owner).name,
            (None, None) => String::new(),
        },
    }
}

fn take_fault(folder: &Folder, op: Op, name: &str) -> Result<Option<Fault>, SimError> {
    let Some(mut script) = folder.script()? else {
        return Ok(None);
    };
    let taken = script
        .take(op, name)
        .map_err(|error| folder.bad_script(error))?;
    if taken.changed {
        folder.save_script(&script)?;
    }
    Ok(taken.fault)
}

fn refusal(op: Op, holder: Option<&str>) -> OpError {
    match op {
        Op::Delete => OpError::InUse {
            held_by: HeldBy(holder.map(str::to_owned).into_iter().collect()),
        },
        Op::Create | Op::Read | Op::Update => OpError::Refused {
            message: match holder {
                Some(holder) => format!("{holder} does not allow it"),
                None => "the script does not allow it".into(),
            },
        },
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
        let declared = self.cloud.types.get(ty);
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
