//! A project with a local host of its own.
#![allow(dead_code, reason = "each test file uses its own part")]
#![allow(clippy::unwrap_used, reason = "it is test code outside test functions")]

use serde_json::Value as Json;

use crate::support::{Project, cache};

/// A project whose local host is stopped at the end.
pub struct Hosted(pub Project);

impl Hosted {
    /// Nothing runs yet.
    pub fn new() -> Hosted {
        let mut project = Project::new();
        project.set("NOTATION_CACHE_DIR", &cache());
        Hosted(project)
    }

    /// Starts the host, or finds it: what it says of itself.
    pub fn start(&self) -> Json {
        let started = self.0.run(&["--json", "host", "start"]);
        started.exits(0).event("host")
    }

    /// What the host says of itself and of what runs on it.
    pub fn status(&self) -> Json {
        let status = self.0.run(&["--json", "host", "status"]);
        status.exits(0).event("host")
    }

    /// Its folder.
    pub fn folder(&self) -> std::path::PathBuf {
        self.0.path().join(".notation/host")
    }
}

impl Drop for Hosted {
    fn drop(&mut self) {
        self.0.run(&["host", "stop"]);
    }
}
