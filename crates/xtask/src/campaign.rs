//! The kill campaign: a large deploy is killed at random instants, again and again, and must
//! end with one live object per resource and nothing forgotten.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
    process::{Command, ExitCode, Stdio},
    thread,
    time::{Duration, Instant},
};

use serde_json::Value as Json;

/// What is deployed and how often it is killed.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    /// Independent resources.
    pub singles: usize,
    /// Pairs of workers that bind each other.
    pub pairs: usize,
    /// Kills.
    pub kills: usize,
    /// Seed of the instants.
    pub seed: u64,
}

/// What every check runs: a few seconds with the debug binary.
pub const SHORT: Size = Size {
    singles: 100,
    pairs: 5,
    kills: 10,
    seed: 1,
};

/// What the campaign found; everything but `kills` must be 0.
#[derive(Debug, Default)]
struct Found {
    kills: usize,
    unreadable: usize,
    lost: usize,
    doubled: usize,
    missing: usize,
}

impl Found {
    fn is_clean(&self) -> bool {
        self.unreadable + self.lost + self.doubled + self.missing == 0
    }
}

/// Runs the campaign with the binary at `binary` and prints the counts.
#[expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a developer reads this on a terminal"
)]
pub fn run(binary: &Path, size: Size) -> ExitCode {
    match campaign(binary, size) {
        Ok(found) => {
            println!(
                "killed {} times (seed {}): state unreadable {}, acknowledged creates lost {}, doubled {}, missing {}",
                found.kills, size.seed, found.unreadable, found.lost, found.doubled, found.missing
            );
            if found.is_clean() && found.kills == size.kills {
                ExitCode::SUCCESS
            } else {
                ExitCode::FAILURE
            }
        }
        Err(error) => {
            eprintln!("campaign: {error}");
            ExitCode::FAILURE
        }
    }
}

fn campaign(binary: &Path, size: Size) -> io::Result<Found> {
    let place = Place::new(binary, size)?;
    let mut chance = fastrand::Rng::with_seed(size.seed);
    let mut found = Found::default();
    // A run that ends before its kill does not count; the world is then emptied and begun anew.
    let mut whole = Duration::from_secs(4);
    while found.kills < size.kills {
        let started = Instant::now();
        let mut child = place
            .notation(&["deploy", "main", "--stage", "dev", "--yes"])
            .spawn()?;
        let instant = whole.mul_f64(chance.f64());
        let ended = loop {
            if let Some(status) = child.try_wait()? {
                break Some(status);
            }
            if started.elapsed() >= instant {
                break None;
            }
            thread::sleep(Duration::from_millis(1));
        };
        match ended {
            None => {
                child.kill()?;
                child.wait()?;
                found.kills += 1;
                let readable = place
                    .notation(&["state", "list", "main", "--stage", "dev"])
                    .status()?
                    .success();
                found.unreadable += usize::from(!readable);
            }
            Some(status) if status.success() => {
                whole = (whole / 2)
                    .max(started.elapsed())
                    .max(Duration::from_millis(200));
                place.must(&["destroy", "main", "--stage", "dev", "--yes"])?;
                place.forget_calls()?;
            }
            Some(status) => {
                return Err(io::Error::other(format!(
                    "a deploy ended with {status} by itself"
                )));
            }
        }
    }
    place.must(&["deploy", "main", "--stage", "dev", "--yes"])?;
    place.must(&["plan", "main", "--stage", "dev", "--fail-on-changes"])?;
    let objects: BTreeMap<String, Json> =
        serde_json::from_str(&fs::read_to_string(place.cloud().join("objects.json"))?)?;
    let wanted = size.singles + 2 * size.pairs;
    found.missing = wanted.saturating_sub(objects.len());
    found.doubled = objects.len().saturating_sub(wanted);
    let mut made: BTreeMap<String, i64> = BTreeMap::new();
    for line in fs::read_to_string(place.cloud().join("calls.ndjson"))?.lines() {
        let call: Json = serde_json::from_str(line)?;
        if call["result"] != "ok" {
            continue;
        }
        let name = call["name"].as_str().unwrap_or_default().to_owned();
        match call["op"].as_str() {
            Some("create") => *made.entry(name).or_default() += 1,
            Some("delete") => *made.entry(name).or_default() -= 1,
            _ => {}
        }
    }
    found.lost = made
        .iter()
        .filter(|(name, count)| **count > 0 && !objects.contains_key(*name))
        .count();
    found.doubled += made.values().filter(|count| **count > 1).count();
    found.lost += place.unrecorded(&objects)?;
    Ok(found)
}

/// A project with a simulated cloud of its own.
struct Place {
    folder: tempfile::TempDir,
    binary: PathBuf,
}

impl Place {
    fn new(binary: &Path, size: Size) -> io::Result<Place> {
        let folder = tempfile::tempdir()?;
        fs::create_dir_all(folder.path().join("infra"))?;
        fs::write(
            folder.path().join("notation.config.ts"),
            "import { defineConfig } from \"@notation/core\";\nexport default defineConfig({ app: \"kill\", entries: { main: \"infra/main.ts\" } });\n",
        )?;
        let program = format!(
            r#"import {{ Thing, Worker }} from "@notation/sim";
for (let i = 0; i < {singles}; i++) new Thing({{ id: `t${{i}}`, config: {{ value: i }} }});
for (let i = 0; i < {pairs}; i++) {{
  const a = new Worker({{ id: `a${{i}}`, config: {{}} }});
  const b = new Worker({{ id: `b${{i}}`, config: {{}} }});
  a.contribute({{ bindings: [{{ type: "service", service: b.Name }}] }});
  b.contribute({{ bindings: [{{ type: "service", service: a.Name }}] }});
}}
"#,
            singles = size.singles,
            pairs = size.pairs
        );
        fs::write(folder.path().join("infra/main.ts"), program)?;
        Ok(Place {
            folder,
            binary: binary.canonicalize()?,
        })
    }

    fn cloud(&self) -> PathBuf {
        self.folder.path().join("cloud")
    }

    fn forget_calls(&self) -> io::Result<()> {
        fs::write(self.cloud().join("calls.ndjson"), "")
    }

    fn notation(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.binary);
        command
            .args(arguments)
            .current_dir(self.folder.path())
            .env("NOTATION_SIM_DIR", self.cloud())
            .env("NOTATION_KEY_FILE", self.folder.path().join("key"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command
    }

    /// How many live objects no record has.
    fn unrecorded(&self, objects: &BTreeMap<String, Json>) -> io::Result<usize> {
        let output = self
            .notation(&["--json", "state", "list", "main", "--stage", "dev"])
            .stdout(Stdio::piped())
            .output()?;
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        Ok(objects
            .keys()
            .filter(|name| !said.contains(&format!("\"{name}\"")))
            .count())
    }

    fn must(&self, arguments: &[&str]) -> io::Result<()> {
        let output = self
            .notation(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .output()?;
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        Err(io::Error::other(format!(
            "{arguments:?} ended with {}: {said}",
            output.status
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_count_but_that_of_kills_fails_the_campaign() {
        let clean = || Found {
            kills: 10,
            ..Found::default()
        };
        assert!(clean().is_clean());
        let spoilt: [fn(&mut Found) -> &mut usize; 4] = [
            |found| &mut found.unreadable,
            |found| &mut found.lost,
            |found| &mut found.doubled,
            |found| &mut found.missing,
        ];
        for spoil in spoilt {
            let mut found = clean();
            *spoil(&mut found) = 1;
            assert!(!found.is_clean(), "{found:?}");
        }
    }
}
