//! How a hold is written.

use serde::{Deserialize, Serialize};

use super::text;
use crate::{Fence, Hold, Machine, RunId};

#[derive(Serialize, Deserialize)]
struct HoldText {
    run: String,
    fence: u64,
    since: u64,
    machine: String,
    user: String,
    boot: String,
    pid: u32,
    started: u64,
}

/// A hold without its end, which moves with every renewal and has a column of its own.
pub(crate) fn hold_text(hold: &Hold) -> String {
    text(&HoldText {
        run: hold.run.0.clone(),
        fence: hold.fence.0,
        since: hold.since_ms,
        machine: hold.machine.name.clone(),
        user: hold.machine.user.clone(),
        boot: hold.machine.boot.clone(),
        pid: hold.machine.pid,
        started: hold.machine.started,
    })
}

pub(crate) fn hold_back(text: &str, expires_ms: u64) -> Result<Hold, serde_json::Error> {
    let hold: HoldText = serde_json::from_str(text)?;
    Ok(Hold {
        run: RunId(hold.run),
        fence: Fence(hold.fence),
        since_ms: hold.since,
        expires_ms,
        machine: Machine {
            name: hold.machine,
            user: hold.user,
            boot: hold.boot,
            pid: hold.pid,
            started: hold.started,
        },
    })
}
