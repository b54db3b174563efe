//! The account at a strict cloud: what is there, what was called, what shall go wrong.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use notation_model::{Params, Value};
use notation_provider::{HeldBy, OpContext, OpError, Progress};
use tokio::sync::Notify;

#[derive(Default)]
pub struct Account {
    pub objects: BTreeMap<String, Thing>,
    /// What was there before the last write, by name.
    pub earlier: BTreeMap<String, Option<Thing>>,
    /// How often a name was created.
    pub created: BTreeMap<String, u64>,
    pub made: u64,
    pub calls: Vec<String>,
    /// Writes answered `refused` or `exists`.
    pub refusals: Vec<String>,
    pub faults: Vec<Fault>,
    pub tickets: BTreeMap<String, u32>,
    pub running: usize,
    pub most_running: usize,
    /// Makes calls that run at the same time end in another order; 0 in none.
    pub chance: u64,
    pub no_reads: bool,
    /// `arn` is answered as a secret, which its type does not tell.
    pub secret_arns: bool,
    pub gates: Vec<Gate>,
}

/// Where one call waits before it arrives at the cloud.
#[derive(Clone, Debug)]
pub struct Gate {
    pub op: &'static str,
    /// How the object's name ends.
    pub name: &'static str,
    came: Arc<Notify>,
    opens: Arc<Notify>,
}

impl Gate {
    pub fn new(op: &'static str, name: &'static str) -> Gate {
        Gate {
            op,
            name,
            came: Arc::default(),
            opens: Arc::default(),
        }
    }

    /// Returns when the call is made.
    pub async fn came(&self) {
        self.came.notified().await;
    }

    /// Lets the call arrive.
    pub fn open(&self) {
        self.opens.notify_one();
    }

    pub async fn pass(&self) {
        self.came.notify_one();
        self.opens.notified().await;
    }
}

#[derive(Clone, Debug)]
pub struct Thing {
    pub ty: String,
    pub params: Params,
    pub outputs: Params,
    pub tags: BTreeMap<String, String>,
    pub token: String,
    pub writes: u64,
}

/// What shall go wrong, `times` times, with calls `op` on objects whose name ends like this. `op`
/// may be `any`, and `write` for whatever is not a read.
#[derive(Clone, Debug)]
pub struct Fault {
    pub op: &'static str,
    pub name: &'static str,
    pub what: What,
    pub times: u32,
    /// So many matching calls go well before.
    pub after: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    Fail,
    Transient,
    /// Transient, and the provider says when to come again.
    Throttle,
    LoseReply,
    Wait,
    InUse,
    Absent,
    /// A read answers what was true before the last write.
    Stale,
    Panic,
}

impl Fault {
    pub fn new(op: &'static str, name: &'static str, what: What, times: u32) -> Fault {
        Fault {
            op,
            name,
            what,
            times,
            after: 0,
        }
    }

    /// Only the call of this number, from 1.
    pub fn nth(op: &'static str, number: u32, what: What, times: u32) -> Fault {
        Fault {
            after: number - 1,
            ..Fault::new(op, "", what, times)
        }
    }
}

impl Account {
    pub fn take_fault(&mut self, op: &str, name: &str) -> Option<What> {
        let matches = |fault: &Fault| {
            let covers =
                fault.op == op || fault.op == "any" || (fault.op == "write" && op != "read");
            covers && name.ends_with(fault.name) && fault.times > 0
        };
        let mut taken = None;
        for fault in self.faults.iter_mut().filter(|fault| matches(fault)) {
            if fault.after > 0 {
                fault.after -= 1;
            } else if taken.is_none() {
                fault.times -= 1;
                taken = Some(fault.what.clone());
            }
        }
        taken
    }

    /// The gate that the call comes to; the next one goes by.
    pub fn gate(&mut self, op: &str, name: &str) -> Option<Gate> {
        let here = |gate: &Gate| gate.op == op && name.ends_with(gate.name);
        let at = self.gates.iter().position(here)?;
        Some(self.gates.remove(at))
    }

    /// Remembers what reads that are behind will answer.
    pub fn about_to_write(&mut self, name: &str) {
        let now = self.objects.get(name).cloned();
        self.earlier.insert(name.to_owned(), now);
    }

    pub fn log(&mut self, op: &str, name: &str, params: Option<&Params>) {
        let line = match params {
            Some(params) => format!("{op} {}{{{}}}", short(name), bound(params).join(",")),
            None => format!("{op} {}", short(name)),
        };
        self.calls.push(line);
    }

    pub fn check(&self, name: &str, params: &Params) -> Result<(), OpError> {
        for target in refers(params) {
            if !self.objects.contains_key(&target) {
                return Err(OpError::Refused {
                    message: format!("{name} names {target}, which does not exist"),
                });
            }
        }
        Ok(())
    }

    /// A fault before the change, or `Ok(lose the reply)`.
    pub fn before<T>(
        &mut self,
        op: &str,
        name: &str,
        ctx: &OpContext<'_>,
    ) -> Result<Option<Progress<T>>, OpError> {
        // As a cloud that removes nothing of others: an object's tags are of its last write.
        if let ("update" | "delete", Some(thing)) = (op, self.objects.get(name))
            && ctx.is_anothers(&thing.tags)
        {
            let resource = thing.tags.get("notation:resource");
            let message = format!("{name} belongs to {}", resource.map_or("?", String::as_str));
            self.refusals.push(message.clone());
            return Err(OpError::Refused { message });
        }
        let token = ctx.token.to_string();
        let ticket = self.tickets.get(&token).copied();
        match self.take_fault(op, name) {
            Some(What::Wait) => {
                let number = ticket.unwrap_or(0) + 1;
                self.tickets.insert(token, number);
                return Ok(Some(Progress::Waiting {
                    after_ms: 1000,
                    resume: serde_json::json!({ "ticket": number }),
                    reason: "still at work".into(),
                }));
            }
            Some(What::Fail) => {
                return Err(OpError::Failed {
                    message: "it broke".into(),
                });
            }
            Some(What::Transient) => {
                return Err(OpError::Transient {
                    message: "try again".into(),
                    after_ms: None,
                });
            }
            Some(What::Throttle) => {
                return Err(OpError::Transient {
                    message: "slower".into(),
                    after_ms: Some(700),
                });
            }
            Some(What::InUse) => {
                return Err(OpError::InUse {
                    held_by: HeldBy(vec!["somebody".into()]),
                });
            }
            Some(What::Panic) => panic!("the provider is broken"),
            Some(What::LoseReply) => self.calls.push("lose the next reply".into()),
            Some(What::Absent | What::Stale) | None => {}
        }
        // The last answer may have been lost with the process that it was for.
        let brings = |number: u32| match &ctx.resume {
            Some(data) => *data == serde_json::json!({ "ticket": number }),
            None => number == 0,
        };
        if let Some(number) = ticket
            && !brings(number)
            && !brings(number - 1)
        {
            return Err(OpError::Failed {
                message: "the data of the wait did not come back".into(),
            });
        }
        Ok(None)
    }

    /// Whether the reply is lost.
    pub fn after(&mut self) -> Result<(), OpError> {
        let lost = self
            .calls
            .iter()
            .position(|line| line == "lose the next reply");
        match lost {
            None => Ok(()),
            Some(at) => {
                self.calls.remove(at);
                Err(OpError::Transient {
                    message: "connection lost".into(),
                    after_ms: None,
                })
            }
        }
    }
}

pub fn short(name: &str) -> String {
    name.trim_start_matches("shop-dev-").to_owned()
}

pub fn bound(params: &Params) -> Vec<String> {
    let Some(Value::List(items)) = params.get("bindings") else {
        return Vec::new();
    };
    let services = items.iter().filter_map(|item| match item {
        Value::Map(members) => members.get("service")?.as_text().map(short),
        _ => None,
    });
    let sorted: BTreeSet<String> = services.collect();
    sorted.into_iter().collect()
}

pub fn refers(params: &Params) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    if let Some(Value::List(items)) = params.get("bindings") {
        names.extend(items.iter().filter_map(|item| match item {
            Value::Map(members) => Some(members.get("service")?.as_text()?.to_owned()),
            _ => None,
        }));
    }
    names.extend(
        params
            .get("parent")
            .and_then(Value::as_text)
            .map(str::to_owned),
    );
    names
}
