//! Which project and which deployment a command is about, judged before anything is evaluated.

use std::path::Path;

use notation_model::{DeploymentId, EntryName, StageName};
use notation_program::{EntryFiles, ProjectConfig};

use crate::{
    args::{Entry, Global, Recorded},
    exit::Exit,
    failure::Failure,
};

/// The project around a folder; its entry files may be gone.
pub fn load_recorded(start: &Path) -> Result<ProjectConfig, Failure> {
    load_with(start, EntryFiles::Unneeded)
}

fn load_with(start: &Path, entry_files: EntryFiles) -> Result<ProjectConfig, Failure> {
    let start = std::path::absolute(start).unwrap_or_else(|_| start.to_owned());
    Ok(notation_program::load_config_with(&start, entry_files)?)
}

/// The project of a command that evaluates an entry.
pub fn of(global: &Global) -> Result<ProjectConfig, Failure> {
    load_with(start(global), EntryFiles::Needed)
}

/// The project of a command that works from state: its entry files may be gone.
pub fn of_recorded(global: &Global) -> Result<ProjectConfig, Failure> {
    load_recorded(start(global))
}

fn start(global: &Global) -> &Path {
    global.project.as_deref().unwrap_or(Path::new("."))
}

/// The deployment of an entry that is in the config.
pub fn deployment(
    config: &ProjectConfig,
    args: &Entry,
    command: &str,
) -> Result<DeploymentId, Failure> {
    let stage = stage(config, args, command)?;
    Ok(DeploymentId {
        app: config.app.clone(),
        entry: entry(config, args, command)?,
        stage,
    })
}

/// The deployment of an entry that is in the config, or of a name that may have been in it.
/// The second is for the state to judge: see [`InConfig::or_in`].
pub fn deployment_or_gone(
    config: &ProjectConfig,
    args: &Recorded,
    command: &str,
) -> Result<(DeploymentId, InConfig), Failure> {
    let app = args.app.as_ref().unwrap_or(&config.app);
    let args = &args.entry;
    let stage = stage(config, args, command)?;
    let (entry, in_config) = match entry(config, args, command) {
        Ok(entry) if *app == config.app => (entry, InConfig::Yes),
        Ok(entry) => {
            let failure = never_deployed(&format!("{app}:{stage}:{entry}"));
            (
                entry,
                InConfig::No(failure.help("`notation stages` lists what has state")),
            )
        }
        Err(failure) => match args.entry.parse::<EntryName>() {
            Ok(entry) => (entry, InConfig::No(failure)),
            Err(_) => return Err(failure),
        },
    };
    let deployment = DeploymentId {
        app: app.clone(),
        stage,
        entry,
    };
    Ok((deployment, in_config))
}

/// There is nothing to work from.
pub fn never_deployed(deployment: &str) -> Failure {
    Failure::new(
        Exit::Fixable,
        "state::never_deployed",
        format!("{deployment} was never deployed"),
    )
}

/// Whether an entry is in the config; if not, what to say unless it has state.
#[derive(Debug)]
pub enum InConfig {
    /// It is.
    Yes,
    /// It is not.
    No(Failure),
}

impl InConfig {
    /// Refuses an entry that is neither in the config nor in the state.
    pub fn or_in(self, has_state: bool) -> Result<(), Failure> {
        match self {
            InConfig::Yes => Ok(()),
            InConfig::No(_) if has_state => Ok(()),
            InConfig::No(failure) => Err(failure),
        }
    }
}

/// The entry's name; refuses paths and unknown names with what to type instead.
pub fn entry(config: &ProjectConfig, args: &Entry, command: &str) -> Result<EntryName, Failure> {
    let given = args.entry.as_str();
    if let Some(name) = config.entries.keys().find(|name| name.as_str() == given) {
        return Ok(name.clone());
    }
    let here = std::env::current_dir().unwrap_or_else(|_| config.root.clone());
    let by_file = [here.as_path(), config.root.as_path()]
        .into_iter()
        .find_map(|folder| config.entry_of_path(given, folder));
    if let Some(name) = by_file {
        let stage = args
            .stage
            .as_ref()
            .map(|stage| format!(" --stage {stage}"))
            .unwrap_or_default();
        return Err(Failure::new(
            Exit::Usage,
            "usage::entry_is_path",
            format!("{given} is the file of an entry; commands take the entry's name"),
        )
        .help(format!("type: notation {command} {name}{stage}")));
    }
    let names: Vec<_> = config.entries.keys().map(EntryName::as_str).collect();
    let nearest = names
        .iter()
        .max_by(|a, b| nearness(a, given).total_cmp(&nearness(b, given)))
        .filter(|name| nearness(name, given) > 0.6);
    let known = format!("entries of {}: {}", config.app, names.join(", "));
    Err(Failure::new(
        Exit::Usage,
        "usage::unknown_entry",
        format!("there is no entry called {given:?} in notation.config.ts"),
    )
    .help(match nearest {
        Some(name) => format!("did you mean {name}? {known}"),
        None => known,
    }))
}

fn stage(config: &ProjectConfig, args: &Entry, command: &str) -> Result<StageName, Failure> {
    if let Some(stage) = args.stage.as_ref().or(config.default_stage.as_ref()) {
        return Ok(stage.clone());
    }
    Err(Failure::new(
        Exit::Usage,
        "usage::no_stage",
        "no stage is given, and notation.config.ts has no defaultStage",
    )
    .help(format!(
        "type: notation {command} {} --stage dev (or another stage)",
        args.entry
    )))
}

/// How alike two names are, from 0 to 1.
fn nearness(one: &str, other: &str) -> f64 {
    strsim::normalized_damerau_levenshtein(one, other)
}
