//! Who holds a deployment, as text and as JSON.

use notation_state::Hold;
use serde_json::{Value as Json, json};

use crate::render::cell::time;

/// Who holds a deployment, from where, since when.
pub fn to_text(hold: &Hold) -> String {
    let user = match hold.machine.user.as_str() {
        "" => String::new(),
        user => format!("{user} on "),
    };
    format!(
        "held by run {} of {user}{} (process {}) since {}",
        hold.run,
        hold.machine.name,
        hold.machine.pid,
        time(hold.since_ms)
    )
}

/// A hold in JSON.
pub fn to_json(hold: &Hold) -> Json {
    json!({
        "run": hold.run.to_string(),
        "since": time(hold.since_ms),
        "expires": time(hold.expires_ms),
        "machine": hold.machine.name,
        "user": hold.machine.user,
        "pid": hold.machine.pid,
    })
}
