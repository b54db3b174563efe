//! Wiring of one command: the state store with its key, this machine, the providers.

use std::{
    env,
    path::{Path, PathBuf},
    sync::Arc,
};

use notation_engine::{DriftCheck, EngineError, RunOptions};
use notation_model::{DeploymentId, Origin, TypeSet};
use notation_program::ProjectConfig;
use notation_provider::{Provider, Registry};
use notation_provider_edge::EdgeProvider;
use notation_provider_sim::SimProvider;
use notation_state::{DeploymentState, KeySource, Machine, SqliteStore, StateStore, Summary};

use crate::{
    advice::spelled,
    edge_host::EdgeHost,
    event_loop::block_on,
    exit::Exit,
    failure::{Failure, Spot},
    folders,
    localhost::problem,
    printer::Printer,
    project::{self, InConfig},
};

/// The state store of a project: `NOTATION_STATE`, else `state` of the config, else SQLite in
/// `.notation/`. Reading makes no file.
pub fn store(config: &ProjectConfig) -> Result<Arc<dyn StateStore>, Failure> {
    let url = env::var("NOTATION_STATE")
        .ok()
        .filter(|url| !url.is_empty())
        .or_else(|| config.state.clone());
    let path = match url {
        None => config.root.join(".notation").join("state.db"),
        Some(url) => sqlite_path(&config.root, &url)?,
    };
    Ok(Arc::new(SqliteStore::open(path, key_source()?)))
}

/// `sqlite:path`, `file:path` or a plain path, relative to the project.
fn sqlite_path(root: &Path, url: &str) -> Result<PathBuf, Failure> {
    let scheme = url.split_once(':').filter(|(scheme, _)| scheme.len() > 1);
    let path = match scheme {
        Some(("sqlite" | "file", path)) => path.strip_prefix("//").unwrap_or(path),
        Some((other, _)) => {
            return Err(Failure::new(
                Exit::Fixable,
                "state::unknown_kind",
                format!("state cannot be kept at {url:?}: {other} is not known"),
            )
            .help("use sqlite:PATH, in NOTATION_STATE or as `state` in notation.config.ts"));
        }
        None => url,
    };
    Ok(root.join(path))
}

/// `NOTATION_PASSPHRASE`, else `NOTATION_KEY_FILE`, else a key file of the user.
fn key_source() -> Result<KeySource, Failure> {
    if let Ok(passphrase) = env::var("NOTATION_PASSPHRASE")
        && !passphrase.is_empty()
    {
        return Ok(KeySource::passphrase(passphrase));
    }
    if let Some(file) = env::var_os("NOTATION_KEY_FILE").filter(|file| !file.is_empty()) {
        return Ok(KeySource::File(file.into()));
    }
    Ok(KeySource::File(folders::key_file()?))
}

/// Where the simulated cloud of a project lives.
pub fn sim_dir(config: &ProjectConfig) -> PathBuf {
    match env::var_os("NOTATION_SIM_DIR").filter(|dir| !dir.is_empty()) {
        Some(dir) => dir.into(),
        None => config.root.join(".notation").join("sim"),
    }
}

/// This process on this machine.
pub fn machine() -> Machine {
    let named = env::var("NOTATION_MACHINE")
        .ok()
        .filter(|name| !name.is_empty());
    Machine::here(named.unwrap_or_else(|| {
        rustix::system::uname()
            .nodename()
            .to_string_lossy()
            .into_owned()
    }))
}

/// Every type that programs can use. Needs nobody to be there.
pub fn types() -> TypeSet {
    TypeSet::new(
        notation_provider_sim::types()
            .into_iter()
            .chain(notation_provider_edge::types()),
    )
}

/// One deployment with its store and the providers.
pub struct Wiring {
    /// Which.
    pub deployment: DeploymentId,
    /// Where its state is.
    pub store: Arc<dyn StateStore>,
    /// Who makes what.
    pub registry: Registry,
    root: PathBuf,
    edge: EdgeHost,
}

impl Wiring {
    /// Wires a deployment of a project. Nothing is opened or started yet.
    pub fn of(
        config: &ProjectConfig,
        deployment: DeploymentId,
        printer: &Printer,
    ) -> Result<Wiring, Failure> {
        let edge = EdgeHost::of(config.root.clone(), printer);
        let providers: Vec<Arc<dyn Provider>> = vec![
            Arc::new(SimProvider::open(sim_dir(config))),
            Arc::new(EdgeProvider::new(edge.clone())),
        ];
        Ok(Wiring {
            deployment,
            store: store(config)?,
            registry: Registry::new(providers).expect("our own providers have names of their own"),
            root: config.root.clone(),
            edge,
        })
    }

    /// Brings the edge host up before anything is looked at, when recorded resources live on it;
    /// so that a person sees what keeps it from starting, and not a read that failed.
    pub async fn reach_recorded(&self, options: &RunOptions) -> Result<(), Failure> {
        if options.drift == DriftCheck::Skip {
            return Ok(());
        }
        let state = self.store.load(&self.deployment).await?;
        let recorded = state.records.values().map(|record| &record.ty);
        let open = state.open.iter().map(|open| &open.intent.draft.ty);
        if recorded.chain(open).any(|ty| ty.provider() == "edge") {
            self.reach().await?;
        }
        Ok(())
    }

    /// Brings the edge host up.
    pub async fn reach(&self) -> Result<(), Failure> {
        let edge = self.edge.clone();
        let found = tokio::task::spawn_blocking(move || edge.find()).await;
        found
            .unwrap_or_else(|_| {
                Err(Failure::new(
                    Exit::Bug,
                    "notation::bug",
                    "the search for the host broke off",
                ))
            })
            .map(drop)
    }

    /// Says which workers of the local host are not reached, when this command used it.
    pub fn warn_of_host(&self, printer: &Printer) {
        if self.edge.used_local() {
            problem::warn(&problem::problems(&self.root), printer);
        }
    }

    /// Places in the project's own files, for showing them.
    pub fn spot(&self, places: &[(&Origin, String)]) -> Option<Box<Spot>> {
        Spot::of(&self.root, places)
    }

    /// An engine error with the places of this project.
    pub fn failure(&self, error: EngineError) -> Failure {
        Failure::of_engine(&self.root, &self.deployment, error)
    }
}

/// Deployments of the project's store.
pub fn deployments(config: &ProjectConfig) -> Result<Vec<Summary>, Failure> {
    let store = store(config)?;
    block_on(async move { Ok(store.deployments().await?) })
}

/// The state of a deployment. Refuses an entry that is neither in the config nor known to it.
pub fn known(
    store: &dyn StateStore,
    deployment: &DeploymentId,
    in_config: InConfig,
) -> Result<DeploymentState, Failure> {
    let state = block_on(async { Ok(store.load(deployment).await?) })?;
    in_config.or_in(is_known(&state))?;
    Ok(state)
}

/// Whether a run ever began on it.
pub fn is_known(state: &DeploymentState) -> bool {
    state.last_run_ms.is_some()
        || !state.records.is_empty()
        || !state.exports.is_empty()
        || !state.open.is_empty()
}

/// Refuses a deployment that no run ever began on, with the stages that there are.
pub fn was_deployed(
    store: &dyn StateStore,
    deployment: &DeploymentId,
    state: &DeploymentState,
) -> Result<(), Failure> {
    if is_known(state) {
        return Ok(());
    }
    let others = block_on(async { Ok(store.deployments().await?) })?;
    let stages: Vec<_> = others
        .iter()
        .map(|found| &found.deployment)
        .filter(|found| found.app == deployment.app && found.entry == deployment.entry)
        .map(|found| found.stage.to_string())
        .collect();
    let mut help = spelled("type: `notation deploy ENTRY`", deployment);
    if !stages.is_empty() {
        let entry = &deployment.entry;
        help = format!("{entry} is deployed to: {}\n{help}", stages.join(", "));
    }
    Err(project::never_deployed(&deployment.to_string()).help(help))
}
