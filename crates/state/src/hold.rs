//! The exclusive right of one run to change a deployment: a lease with a growing fence.

use std::fmt;

/// How long a hold lasts without being renewed, in milliseconds.
pub const LEASE_MS: u64 = 60_000;
/// How often a run renews its hold, in milliseconds.
pub const RENEW_MS: u64 = 15_000;

/// One execution. 32 lower-case hex digits.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunId(pub String);

impl RunId {
    /// A new one, from the system's randomness.
    pub fn random() -> RunId {
        RunId(random_hex())
    }
}

/// 32 lower-case hex digits from the system's randomness.
pub(crate) fn random_hex() -> String {
    let mut bytes = [0u8; 16];
    getrandom::fill(&mut bytes).expect("the system has a source of randomness");
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Grows with every acquired hold of a deployment; every append carries it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Fence(pub u64);

impl fmt::Display for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// Where a run lives, so that others can tell whether it is dead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    /// Name of the machine (`NOTATION_MACHINE`, else the host name).
    pub name: String,
    /// Who started the run.
    pub user: String,
    /// Identity of this boot of the machine; empty when the system has none.
    pub boot: String,
    /// Process id.
    pub pid: u32,
    /// When that process started, in whatever unit the system counts; tells a reused id apart.
    pub started: u64,
}

impl Machine {
    /// This process on this machine, under the given machine name.
    pub fn here(name: impl Into<String>) -> Machine {
        let pid = std::process::id();
        Machine {
            name: name.into(),
            user: ["USER", "LOGNAME"]
                .iter()
                .find_map(|name| std::env::var(name).ok())
                .unwrap_or_default(),
            boot: boot_id(),
            pid,
            started: process_start(pid).unwrap_or(0),
        }
    }

    /// True when the process of `other` is known to be gone: same machine name and boot as here,
    /// and no process with that id and start (`engine.md` §7, *Hold*).
    pub fn knows_dead(&self, other: &Machine) -> bool {
        !self.boot.is_empty()
            && self.name == other.name
            && self.boot == other.boot
            && process_start(other.pid) != Some(other.started)
    }
}

fn boot_id() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id")
        .map(|text| text.trim().to_owned())
        .unwrap_or_default()
}

/// Start of a process in clock ticks since boot; `None` when there is no such process.
fn process_start(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The command may contain spaces and parentheses: fields count from after the last `)`.
    let rest = stat.rsplit_once(')')?.1;
    let mut fields = rest.split_whitespace();
    let state = fields.next()?;
    if state == "Z" || state == "X" {
        return None;
    }
    fields.nth(18)?.parse().ok()
}

/// A hold as the store knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hold {
    /// Which run has it.
    pub run: RunId,
    /// Refuses older ones.
    pub fence: Fence,
    /// When it was acquired, in milliseconds since 1970.
    pub since_ms: u64,
    /// When it ends unless renewed, in milliseconds since 1970.
    pub expires_ms: u64,
    /// From where.
    pub machine: Machine,
}

/// A wish to hold a deployment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// The run that wants it.
    pub run: RunId,
    /// Where that run lives.
    pub machine: Machine,
    /// The time now, in milliseconds since 1970.
    pub now_ms: u64,
    /// Take it from this hold although its lease has not ended: its holder is known to be dead.
    /// Ignored when another run has it by now.
    pub over: Option<Fence>,
}

/// What became of a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Acquired {
    /// It is ours; nobody had it.
    Free(Hold),
    /// It is ours; the earlier holder lost it (dead, or its lease ended).
    TakenOver {
        /// Ours.
        hold: Hold,
        /// Theirs.
        from: Hold,
    },
    /// Somebody else has it.
    Taken(Hold),
}

impl Claim {
    /// What becomes of this claim: the whole law of holds, for every store. `fence` is the last
    /// one given out for the deployment.
    pub fn judge(&self, present: Option<&Hold>, fence: Fence) -> Acquired {
        let ours = Hold {
            run: self.run.clone(),
            fence: Fence(fence.0 + 1),
            since_ms: self.now_ms,
            expires_ms: self.now_ms + LEASE_MS,
            machine: self.machine.clone(),
        };
        match present {
            None => Acquired::Free(ours),
            Some(theirs) if theirs.expires_ms <= self.now_ms || self.over == Some(theirs.fence) => {
                Acquired::TakenOver {
                    hold: ours,
                    from: theirs.clone(),
                }
            }
            Some(theirs) => Acquired::Taken(theirs.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(now_ms: u64, over: Option<Fence>) -> Claim {
        Claim {
            run: RunId("r".into()),
            machine: Machine::here("m"),
            now_ms,
            over,
        }
    }

    #[test]
    fn a_lease_that_ended_and_a_dead_holder_are_taken_over() {
        let Acquired::Free(first) = claim(0, None).judge(None, Fence(0)) else {
            panic!("nobody had it")
        };
        let again = |claim: Claim| claim.judge(Some(&first), first.fence);
        assert!(matches!(
            again(claim(LEASE_MS - 1, None)),
            Acquired::Taken(_)
        ));
        assert!(matches!(
            again(claim(LEASE_MS, None)),
            Acquired::TakenOver { .. }
        ));
        assert!(matches!(
            again(claim(1, Some(first.fence))),
            Acquired::TakenOver { .. }
        ));
        assert!(matches!(
            again(claim(1, Some(Fence(0)))),
            Acquired::Taken(_)
        ));
    }

    #[test]
    fn this_process_is_alive_and_one_with_another_start_is_not() {
        let here = Machine::here("m");
        assert!(!here.knows_dead(&here));
        let reused = Machine {
            started: here.started + 1,
            ..here.clone()
        };
        assert!(here.knows_dead(&reused));
        let elsewhere = Machine {
            name: "other".into(),
            ..reused
        };
        assert!(!here.knows_dead(&elsewhere));
    }
}
