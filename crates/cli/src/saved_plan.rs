//! A plan on disk: what it was made of, so that exactly this plan is run or none.
//!
//! It holds no value in clear that the plan itself would hide, and names code by digest. Running
//! it plans again from the same program, state and flags and refuses when anything moved.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use notation_model::{Desired, DesiredGraph, Incarnation, Record, SecretName};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use sha2::{Digest as _, Sha256};

use crate::{
    advice::spelled,
    args::Shaping,
    exit::Exit,
    failure::Failure,
    render::{plan_json, plan_text::Shown},
};

/// The file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SavedPlan {
    /// Layout of this file.
    format: u32,
    /// Version that wrote it; digests of another one cannot be compared.
    notation: String,
    /// `app:stage:entry`.
    pub deployment: String,
    /// Makes digests of equal values in two files differ.
    salt: String,
    /// Flags it was planned with.
    pub flags: Flags,
    /// Digest of every desired resource, by id.
    program: BTreeMap<String, String>,
    /// The ids in the order of their declarations, which decides between equals.
    order: Vec<String>,
    /// Version of every record.
    state: BTreeMap<String, u64>,
    /// Digest of what marks each secret that the program names: another one once it is set again.
    secrets: BTreeMap<String, String>,
    /// The plan as the `plan` event shows it.
    plan: Json,
    /// Digest of all of this, so that an edited file is told from a world that moved.
    #[serde(default)]
    digest: String,
}

/// Flags that shape a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flags {
    /// `--no-refresh`.
    pub no_refresh: bool,
    /// `--target`.
    pub target: Vec<String>,
    /// `--replace`.
    pub replace: Vec<String>,
    /// `--adopt`.
    pub adopt: Vec<String>,
}

const FORMAT: u32 = 2;

impl Flags {
    /// Those of the command line.
    pub fn of(shaping: &Shaping) -> Flags {
        let texts =
            |ids: &[notation_model::ResourceId]| ids.iter().map(ToString::to_string).collect();
        Flags {
            no_refresh: shaping.no_refresh,
            target: texts(&shaping.target),
            replace: texts(&shaping.replace),
            adopt: texts(&shaping.adopt),
        }
    }

    /// The same plan again: everything else as the command line says.
    pub fn onto(&self, shaping: &Shaping) -> Result<Shaping, Failure> {
        let ids = |texts: &[String]| {
            texts
                .iter()
                .map(|text| {
                    text.parse()
                        .map_err(|_| not_a_plan("it names an impossible id"))
                })
                .collect::<Result<Vec<_>, _>>()
        };
        Ok(Shaping {
            no_refresh: self.no_refresh,
            target: ids(&self.target)?,
            replace: ids(&self.replace)?,
            adopt: ids(&self.adopt)?,
            ..shaping.clone()
        })
    }
}

impl SavedPlan {
    /// What is to be kept of a plan.
    pub fn of(
        shown: Shown<'_>,
        flags: Flags,
        desired: &DesiredGraph,
        secrets: &SecretMarks,
    ) -> SavedPlan {
        let Shown { plan, records, .. } = shown;
        let mut salt = [0; 16];
        getrandom::fill(&mut salt).expect("the system has a source of randomness");
        let salt = hex::encode(salt);
        let mut saved = SavedPlan {
            format: FORMAT,
            notation: env!("CARGO_PKG_VERSION").into(),
            deployment: plan.deployment.to_string(),
            program: program(desired, &salt),
            secrets: marks(desired, secrets, &salt),
            order: order(desired),
            state: versions(records),
            plan: plan_json::plan(shown),
            salt,
            flags,
            digest: String::new(),
        };
        saved.digest = saved.content();
        saved
    }

    /// Digest of everything but the digest.
    fn content(&self) -> String {
        let whole = SavedPlan {
            digest: String::new(),
            ..self.clone()
        };
        let text = serde_json::to_vec(&whole).expect("it is plain data");
        hex::encode(Sha256::digest(&text))
    }

    /// Writes it, readable by its owner only.
    pub fn write(&self, path: &Path) -> Result<(), Failure> {
        use std::{io::Write as _, os::unix::fs::OpenOptionsExt as _};
        let text = serde_json::to_string_pretty(self).expect("it is plain data");
        fs::OpenOptions::new()
            .create(true)
            .truncate(true)
            .write(true)
            .mode(0o600)
            .open(path)
            .and_then(|mut file| writeln!(file, "{text}").and_then(|()| file.sync_all()))
            .map_err(|error| unreadable(path, "written", &error))
    }

    /// Reads it.
    pub fn read(path: &Path) -> Result<SavedPlan, Failure> {
        let bytes = fs::read(path).map_err(|error| unreadable(path, "read", &error))?;
        let saved: SavedPlan =
            serde_json::from_slice(&bytes).map_err(|error| not_a_plan(&error.to_string()))?;
        if saved.format != FORMAT || saved.notation != env!("CARGO_PKG_VERSION") {
            return Err(not_a_plan(&format!("version {} wrote it", saved.notation)));
        }
        if saved.digest != saved.content() {
            return Err(not_a_plan("it was changed after it was saved"));
        }
        Ok(saved)
    }

    /// Refuses unless planning again gave the very same plan, from the same program and state.
    pub fn unmoved(
        &self,
        shown: Shown<'_>,
        desired: &DesiredGraph,
        secrets: &SecretMarks,
    ) -> Result<(), Failure> {
        let Shown { plan, records, .. } = shown;
        if self.deployment != plan.deployment.to_string() {
            return Err(Failure::new(
                Exit::Fixable,
                "plan_file::other_deployment",
                format!(
                    "the plan was saved for {}, not for {}",
                    self.deployment, plan.deployment
                ),
            )
            .help("name the entry and stage that the plan was made for"));
        }
        let mut moved = differences(
            "in the program",
            &self.program,
            &program(desired, &self.salt),
        );
        if moved.is_empty() && self.order != order(desired) {
            moved.push("the order of the declarations in the program".into());
        }
        moved.extend(differences("in the state", &self.state, &versions(records)));
        let secrets = marks(desired, secrets, &self.salt);
        moved.extend(differences("among the secrets", &self.secrets, &secrets));
        let now = plan_json::plan(shown);
        if self.plan["outputs"] != now["outputs"] {
            moved.push("what the entry exports".into());
        }
        if moved.is_empty() && self.plan["steps"] != now["steps"] {
            moved = elsewhere(&self.plan, &now);
        }
        if moved.is_empty() {
            return Ok(());
        }
        let mut failure = Failure::new(
            Exit::Fixable,
            "plan_file::moved",
            "since the plan was saved, something moved; nothing was written",
        )
        .help(spelled(
            "plan again, look at it, and save it with `notation plan ENTRY --out FILE`",
            &plan.deployment,
        ));
        for line in moved {
            failure = failure.also(format!("moved: {line}"));
        }
        Err(failure)
    }
}

fn differences<T: PartialEq>(
    place: &str,
    before: &BTreeMap<String, T>,
    now: &BTreeMap<String, T>,
) -> Vec<String> {
    let gone = before
        .keys()
        .filter(|id| !now.contains_key(*id))
        .map(|id| format!("{id} {place}: gone"));
    let come = now.iter().filter_map(|(id, value)| match before.get(id) {
        None => Some(format!("{id} {place}: new")),
        Some(old) if old != value => Some(format!("{id} {place}: changed")),
        Some(_) => None,
    });
    gone.chain(come).collect()
}

/// What moved neither in the program nor in the state: objects that drifted since, or back, else
/// the resources that other things are done with.
fn elsewhere(before: &Json, now: &Json) -> Vec<String> {
    let drift = |plan: &Json| -> BTreeSet<String> {
        let notes = plan["notes"].as_array().into_iter().flatten();
        let drift = notes.filter(|note| note["code"] == "drift");
        drift
            .filter_map(|note| note["message"].as_str().map(str::to_owned))
            .collect()
    };
    let (old, new) = (drift(before), drift(now));
    let come = new.difference(&old).cloned();
    let gone = old.difference(&new);
    let gone = gone.map(|message| format!("it is not so any more that {message}"));
    let moved: Vec<String> = come.chain(gone).collect();
    if !moved.is_empty() {
        return moved;
    }
    let steps = |plan: &Json| -> BTreeMap<String, Vec<Json>> {
        let mut of: BTreeMap<String, Vec<Json>> = BTreeMap::new();
        for step in plan["steps"].as_array().into_iter().flatten() {
            let who = step["resource"].as_str().or(step["cycle"].as_str());
            let steps = of.entry(who.unwrap_or_default().to_owned()).or_default();
            steps.push(step.clone());
        }
        of
    };
    let (old, new) = (steps(before), steps(now));
    let all: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    let other = all.into_iter().filter(|who| old.get(*who) != new.get(*who));
    let moved: Vec<String> = other
        .map(|who| format!("what is done with {who}: its object, or a secret, is another"))
        .collect();
    match moved.is_empty() {
        true => vec!["the order of the steps".into()],
        false => moved,
    }
}

fn order(desired: &DesiredGraph) -> Vec<String> {
    desired.resources.keys().map(ToString::to_string).collect()
}

fn program(desired: &DesiredGraph, salt: &str) -> BTreeMap<String, String> {
    desired
        .resources
        .values()
        .map(|one| (one.id.to_string(), digest(one, salt)))
        .collect()
}

/// Of everything but places in the source, so that moving a line moves nothing.
fn digest(desired: &Desired, salt: &str) -> String {
    let contributions: Vec<_> = desired
        .contributions
        .iter()
        .map(|contribution| (&contribution.field, &contribution.value))
        .collect();
    let depend_on: Vec<_> = desired.depend_on.iter().map(|edge| &edge.target).collect();
    let whole = format!(
        "{salt} {:?}",
        (
            &desired.ty,
            &desired.config,
            contributions,
            depend_on,
            &desired.marks,
            &desired.formerly
        )
    );
    hex::encode(Sha256::digest(whole.as_bytes()))
}

/// Marks of secrets, as the state store tells them.
pub type SecretMarks = BTreeMap<SecretName, String>;

/// Of the secrets that the program names.
fn marks(desired: &DesiredGraph, secrets: &SecretMarks, salt: &str) -> BTreeMap<String, String> {
    let named = desired.secrets().into_iter();
    let marked = named.filter_map(|name| Some((name, secrets.get(name)?)));
    marked
        .map(|(name, mark)| {
            let digest = Sha256::digest(format!("{salt} {mark}").as_bytes());
            (name.to_string(), hex::encode(digest))
        })
        .collect()
}

fn versions(records: &BTreeMap<Incarnation, Record>) -> BTreeMap<String, u64> {
    records
        .iter()
        .map(|(incarnation, record)| (incarnation.to_string(), record.version))
        .collect()
}

fn unreadable(path: &Path, verb: &str, error: &std::io::Error) -> Failure {
    Failure::new(
        Exit::Fixable,
        "plan_file::unreadable",
        format!("{} cannot be {verb}: {error}", path.display()),
    )
    .help("check the path and its permissions")
}

fn not_a_plan(why: &str) -> Failure {
    Failure::new(
        Exit::Fixable,
        "plan_file::not_a_plan",
        format!("the file is no plan that this version saved: {why}"),
    )
    .help("save one with `notation plan ENTRY --stage STAGE --out FILE`")
}
