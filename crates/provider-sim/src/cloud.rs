//! What goes wrong, and the order of lock, change, line and answer.
//!
//! Calls that wait for the folder at the same moment are carried out one after the other under
//! one lock and made durable together: no caller hears before its own change and line are there.

use std::{
    hash::{BuildHasher as _, Hasher as _, RandomState},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use notation_model::{Owner, ResourceType, TypeName, TypeSet};
use notation_provider::{Found, HeldBy, Object, OpError};
use serde_json::{Map, Value as Json};
use tokio::sync::oneshot;

use crate::{
    SimError,
    account::{Done, Write, server_made_id, short},
    calls::{CallLog, Line, Op, owner_json, word},
    fault::{Fault, FaultAct},
    folder::{Changed, Folder},
    in_flight::{InFlight, Running},
    memory::{Wait, ticket},
    stock,
};

/// One opened account.
#[derive(Debug)]
pub(crate) struct Cloud {
    dir: PathBuf,
    types: TypeSet,
    log: CallLog,
    opened: String,
    in_flight: Arc<InFlight>,
    reads: AtomicU64,
    queue: Mutex<Vec<Asked>>,
    folder: Mutex<Folder>,
}

/// One call, with everything it brings along.
#[derive(Debug)]
pub(crate) struct Call {
    pub op: Op,
    pub ty: TypeName,
    pub look: Look,
    pub params: Option<Map<String, Json>>,
    pub token: Option<String>,
    pub resume: Option<Json>,
    pub owner: Owner,
}

/// Which object is meant.
#[derive(Debug)]
pub(crate) enum Look {
    /// The one of this name.
    Name(String),
    /// The one that belongs to the caller.
    Mine,
    /// A new one whose name the cloud makes.
    New,
}

/// What a call is answered with.
#[derive(Debug)]
pub(crate) enum Answer {
    Object(Object),
    Found(Option<Found>),
    Gone,
    Waiting { after_ms: u64, resume: Json },
}

type Answered = Result<Answer, OpError>;

/// A call that waits for the folder.
#[derive(Debug)]
struct Asked {
    call: Call,
    in_flight: u64,
    reply: oneshot::Sender<Answered>,
}

/// Calls that were carried out under one lock, and what is not durable of them yet.
#[derive(Debug)]
struct Round {
    changed: Changed,
    lines: String,
    /// Sequence number of the next line.
    seq: u64,
    replies: Vec<(oneshot::Sender<Answered>, Answered)>,
}

impl From<SimError> for OpError {
    fn from(error: SimError) -> OpError {
        OpError::Failed {
            message: error.to_string(),
        }
    }
}

impl Cloud {
    pub fn new(dir: &Path, log: CallLog) -> Cloud {
        let opened = opened();
        Cloud {
            dir: dir.to_owned(),
            types: TypeSet::new(stock::types()),
            log,
            in_flight: Arc::new(InFlight::new(dir, &opened)),
            opened,
            reads: AtomicU64::new(0),
            queue: Mutex::default(),
            folder: Mutex::new(Folder::new(dir)),
        }
    }

    pub fn ty(&self, name: &TypeName) -> Option<&ResourceType> {
        self.types.get(name)
    }

    /// Begins a call: it counts from now on. Also how many milliseconds every call takes.
    pub fn begin(&self) -> Result<(Running, u64), OpError> {
        let running = self.in_flight.begin().map_err(|error| OpError::Failed {
            message: format!("the simulated cloud cannot count its calls: {error}"),
        })?;
        // Not through the locked folder: a call must not wait before it waits.
        let script = Folder::new(&self.dir).script()?;
        Ok((running, script.map_or(0, |script| script.latency_ms())))
    }

    /// Puts a call in the queue.
    pub fn ask(&self, call: Call, running: &Running) -> oneshot::Receiver<Answered> {
        let (reply, answer) = oneshot::channel();
        let asked = Asked {
            call,
            in_flight: running.in_flight,
            reply,
        };
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        queue.push(asked);
        answer
    }

    /// Answers everything in the queue; when it returns, whatever was in it before is answered.
    pub fn answer_all(&self) {
        let mut folder = self.folder.lock().unwrap_or_else(PoisonError::into_inner);
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let asked = std::mem::take(&mut *queue);
        drop(queue);
        if asked.is_empty() {
            return;
        }
        let locked = folder.lock().and_then(|lock| {
            folder.load()?;
            Ok((lock, folder.next_seq()?))
        });
        match locked {
            Ok((_lock, seq)) => self.round(&mut folder, asked, Round::new(seq)),
            Err(error) => {
                let error = OpError::from(error);
                for asked in asked {
                    let _ = asked.reply.send(Err(error.clone()));
                }
            }
        }
    }

    fn round(&self, folder: &mut Folder, asked: Vec<Asked>, mut round: Round) {
        for Asked {
            call,
            in_flight,
            reply,
        } in asked
        {
            match self.carry_out(folder, &mut round, &call, in_flight) {
                Ok((answered, None)) => round.replies.push((reply, answered)),
                Ok((_, Some(Kill))) => {
                    round.end(folder);
                    std::process::abort();
                }
                Err(error) => round.replies.push((reply, Err(error.into()))),
            }
        }
        round.end(folder);
    }

    /// Looks at the script, changes the account, writes the line. The second part of the answer
    /// says that the process shall end once that is durable.
    fn carry_out(
        &self,
        folder: &mut Folder,
        round: &mut Round,
        call: &Call,
        in_flight: u64,
    ) -> Result<(Answered, Option<Kill>), SimError> {
        let Some(ty) = self.types.get(&call.ty) else {
            let message = format!("the simulated cloud has no type {}", call.ty);
            return Ok((Err(OpError::Failed { message }), None));
        };
        let name = name_of(folder, ty, call);
        let fault = match self.may_go_on(folder, call) {
            Ok(()) => take_fault(folder, call.op, &name)?,
            Err(error) => {
                let answered = Err(error);
                self.log(round, call, &name, in_flight, &answered);
                return Ok((answered, None));
            }
        };
        let act = fault.as_ref().map(|fault| fault.act);
        if act == Some(FaultAct::KillBefore) {
            // The calls before this one are durable and nobody was told: that can happen.
            return Ok((Ok(Answer::Gone), Some(Kill)));
        }
        let answered = match &fault {
            Some(fault) => self.faulty(folder, round, ty, call, &name, fault),
            None => self.perform(folder, round, ty, call, &name),
        };
        self.log(round, call, &name, in_flight, &answered);
        let kill = (act == Some(FaultAct::KillAfter)).then_some(Kill);
        Ok((answered, kill))
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
        round: &mut Round,
        ty: &ResourceType,
        call: &Call,
        name: &str,
        fault: &Fault,
    ) -> Answered {
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
                let _ = self.perform(folder, round, ty, call, name);
                Err(transient("the reply was lost", None))
            }
            FaultAct::KillBefore | FaultAct::KillAfter => {
                self.perform(folder, round, ty, call, name)
            }
            FaultAct::Refuse => Err(refusal(call.op, fault.holder.as_deref())),
            FaultAct::StaleRead => Ok(Answer::Found(folder.account.read_stale(
                ty,
                name,
                self.nth_read(),
            ))),
            FaultAct::Wait => {
                round.changed = round.changed.max(Changed::Memory);
                Ok(self.wait(folder, call, fault))
            }
        }
    }

    fn wait(&self, folder: &mut Folder, call: &Call, fault: &Fault) -> Answer {
        let token = call.token.clone().unwrap_or_default();
        let waits = &mut folder.account.memory.header.waits;
        let answers = waits.get(&token).map_or(0, |wait| wait.answers) + 1;
        let wait = Wait {
            answers,
            opened: self.opened.clone(),
        };
        waits.insert(token.clone(), wait);
        Answer::Waiting {
            after_ms: fault.delay_ms.unwrap_or(0),
            resume: ticket(&token, answers),
        }
    }

    /// The call as it should be.
    fn perform(
        &self,
        folder: &mut Folder,
        round: &mut Round,
        ty: &ResourceType,
        call: &Call,
        name: &str,
    ) -> Answered {
        let stamp = folder.stamp();
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
                return Err(OpError::Refused {
                    message: format!("{} cannot be read", ty.name),
                });
            }
            Op::Read => return Ok(Answer::Found(account.read(ty, name, self.nth_read()))),
            Op::Create => account.create(write, stamp)?,
            Op::Update => account.update(write, stamp)?,
            Op::Delete => {
                account.delete(ty, name, stamp)?;
                round.changed = Changed::Objects;
                return Ok(Answer::Gone);
            }
        };
        match done {
            Done::Written(object) => {
                round.changed = Changed::Objects;
                Ok(Answer::Object(object))
            }
            Done::Before(object) => Ok(Answer::Object(object)),
        }
    }

    fn nth_read(&self) -> u64 {
        self.reads.fetch_add(1, Ordering::Relaxed) + 1
    }

    fn log(&self, round: &mut Round, call: &Call, name: &str, in_flight: u64, answered: &Answered) {
        if self.log == CallLog::Off {
            return;
        }
        let (result, detail) = match answered {
            Ok(Answer::Waiting { after_ms, .. }) => {
                ("waiting", Some(format!("again in {after_ms} ms")))
            }
            Ok(Answer::Found(None)) => ("not_found", None),
            Ok(Answer::Object(_) | Answer::Found(Some(_)) | Answer::Gone) => ("ok", None),
            Err(error) => (word(error), Some(error.to_string())),
        };
        let line = Line {
            seq: round.seq,
            op: call.op,
            ty: short(&call.ty),
            name,
            params: call.params.as_ref(),
            token: call.token.as_deref(),
            owner: owner_json(&call.owner),
            in_flight,
            result,
            detail,
        };
        round.lines += &serde_json::to_string(&line).expect("a line has text keys only");
        round.lines.push('\n');
        round.seq += 1;
    }
}

/// The process shall end.
#[derive(Debug)]
struct Kill;

impl Round {
    fn new(seq: u64) -> Round {
        Round {
            changed: Changed::Nothing,
            lines: String::new(),
            seq,
            replies: Vec::new(),
        }
    }

    /// Makes everything durable, then tells the callers. An error is told to all of them.
    fn end(self, folder: &mut Folder) {
        let saved = folder.save(self.changed).and_then(|()| {
            if self.lines.is_empty() {
                Ok(())
            } else {
                folder.append(&self.lines, self.seq - 1)
            }
        });
        let saved = saved.map_err(OpError::from);
        for (reply, answered) in self.replies {
            // A caller that no longer listens was interrupted.
            let _ = reply.send(saved.clone().and(answered));
        }
    }
}

/// Names one opened account among all, of any process on any machine.
fn opened() -> String {
    let random = RandomState::new().build_hasher().finish();
    format!("{}-{random:016x}", std::process::id())
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
