//! Loading a bundle: what its main module exports, decided from the bytes alone by a
//! throw-away process that may reach nothing.
//!
//! Source: `worker.runtime@1.0.0`, `loadModule`. Order of judgement: media types of all
//! modules, existence of the main module, its bytes, the declared handlers.

use std::path::Path;
use std::time::Duration;

use serde::Deserialize;
use tokio::sync::mpsc;

use crate::bundle::{Bundle, BundleModule};
use crate::config::{Egress, LoadedModule, ModuleClass, ProcessConfig, encode};
use crate::places::Places;
use crate::plan::Handler;
use crate::process::{self, StartError};
use crate::sockets::Listening;
use crate::spawner::Spawner;
use crate::upstream::Upstream;

/// What the main module's default export has as callable own properties.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exports {
    /// In the order of the contract: `fetch`, `scheduled`, `queue`.
    pub handlers: Vec<Handler>,
}

impl Exports {
    /// Checks that each declared handler is exported.
    ///
    /// Errors: [`LoadError::HandlerNotExported`] with the first one missing.
    pub fn cover(&self, declared: impl IntoIterator<Item = Handler>) -> Result<(), LoadError> {
        let missing = declared
            .into_iter()
            .find(|handler| !self.handlers.contains(handler));
        missing.map_or(Ok(()), |handler| {
            Err(LoadError::HandlerNotExported {
                handler: handler.name().into(),
            })
        })
    }
}

/// Why a bundle does not load. The four codes are the whole vocabulary.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    /// A module outside the loadable set, or an import of an auxiliary module.
    #[error("module {module} has a media type that cannot be loaded ({media_type})")]
    UnsupportedMediaType {
        /// The module.
        module: String,
        /// Its media type.
        media_type: String,
    },
    /// The main module or an import resolves to nothing.
    #[error("{message}")]
    ModuleNotFound {
        /// Which one, and who asked for it.
        message: String,
    },
    /// Bytes that do not compile or do not evaluate to an object with handlers.
    #[error("{message}")]
    ModuleSyntaxError {
        /// What the runtime said.
        message: String,
    },
    /// A declared handler the default export does not have.
    #[error("the main module does not export a {handler} handler")]
    HandlerNotExported {
        /// The handler.
        handler: String,
    },
}

impl LoadError {
    /// Code of the contract.
    pub fn code(&self) -> &'static str {
        match self {
            LoadError::UnsupportedMediaType { .. } => "unsupported_media_type",
            LoadError::ModuleNotFound { .. } => "module_not_found",
            LoadError::ModuleSyntaxError { .. } => "module_syntax_error",
            LoadError::HandlerNotExported { .. } => "handler_not_exported",
        }
    }
}

/// Why there is no answer about a bundle.
#[derive(Debug, thiserror::Error)]
pub enum InspectError {
    /// The bundle does not load.
    #[error(transparent)]
    Refused(#[from] LoadError),
    /// The check itself could not run; says nothing about the bundle.
    #[error("the bundle could not be checked: {detail}")]
    Unavailable {
        /// What went wrong.
        detail: String,
    },
}

/// Longest time evaluating a main module may take. Clients wait 30 seconds for an answer, and the
/// host lets a check wait for its turn.
const DEADLINE: Duration = Duration::from_secs(12);

/// Loads `bundle` in a process of its own and reports what it exports.
///
/// Errors: [`InspectError`].
pub(crate) async fn inspect(
    spawner: &Spawner,
    workerd: &Path,
    directory: &Path,
    bundle: &Bundle,
) -> Result<Exports, InspectError> {
    let unavailable = |detail: String| InspectError::Unavailable { detail };
    let modules = classify(bundle)?;
    let listening = Listening::open(directory).map_err(|error| unavailable(error.to_string()))?;
    let config = encode(&ProcessConfig {
        main_module: &bundle.main_module,
        modules: &modules,
        environment: Vec::new(),
        data_socket: None,
        egress: Egress::Closed,
    });
    let inherited = listening
        .inherited()
        .map_err(|error| unavailable(error.to_string()))?;
    let (printed, _unread) = mpsc::channel(1);
    let started = process::start(spawner, workerd, &inherited, config, DEADLINE, printed).await;
    let mut process = started.map_err(|error| failure(error, &Places::of(&bundle.modules)))?;
    let events = Upstream::new(listening.events_path().to_owned());
    let report = report(&events).await;
    process.kill();
    let _ = process.ended().await;
    exports(report.map_err(unavailable)?).map_err(InspectError::from)
}

/// The modules with their classes, or the first rule of the order that is broken.
pub(crate) fn classify(bundle: &Bundle) -> Result<Vec<LoadedModule>, LoadError> {
    let mut modules = Vec::with_capacity(bundle.modules.len());
    for BundleModule {
        name,
        media_type,
        bytes,
    } in &bundle.modules
    {
        let class = ModuleClass::of(media_type).ok_or_else(|| LoadError::UnsupportedMediaType {
            module: name.clone(),
            media_type: media_type.clone(),
        })?;
        modules.push(LoadedModule {
            name: name.clone(),
            class,
            bytes: bytes.clone(),
        });
    }
    let main = &bundle.main_module;
    match modules
        .iter()
        .find(|module| module.name == *main)
        .map(|module| module.class)
    {
        Some(ModuleClass::Script) => Ok(modules),
        Some(ModuleClass::Auxiliary) => Err(LoadError::UnsupportedMediaType {
            module: main.clone(),
            media_type: "application/source-map+json".into(),
        }),
        Some(ModuleClass::Text | ModuleClass::Data | ModuleClass::Wasm) => {
            Err(LoadError::ModuleSyntaxError {
                message: format!(
                    "the main module {main} is not a script, so it exports no handlers"
                ),
            })
        }
        None => Err(LoadError::ModuleNotFound {
            message: format!("the bundle has no module named {main}"),
        }),
    }
}

/// What the entry module reports over the events socket.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ExportsReport {
    exported_handlers: Vec<String>,
    default_is_object: bool,
}

pub(crate) async fn report(events: &Upstream) -> Result<ExportsReport, String> {
    let answer = tokio::time::timeout(DEADLINE, events.get("/exports")).await;
    let body = answer
        .map_err(|_| "the process did not answer".to_owned())?
        .map_err(|error| error.to_string())?;
    serde_json::from_slice(&body).map_err(|error| error.to_string())
}

pub(crate) fn exports(report: ExportsReport) -> Result<Exports, LoadError> {
    if !report.default_is_object {
        let message = "the default export of the main module is not an object".to_owned();
        return Err(LoadError::ModuleSyntaxError { message });
    }
    let named = |handler: &Handler| {
        report
            .exported_handlers
            .iter()
            .any(|name| name == handler.name())
    };
    Ok(Exports {
        handlers: Handler::ALL.into_iter().filter(named).collect(),
    })
}

fn failure(error: StartError, places: &Places) -> InspectError {
    match error {
        StartError::Spawn(error) => InspectError::Unavailable {
            detail: error.to_string(),
        },
        StartError::Late(deadline) => InspectError::Refused(LoadError::ModuleSyntaxError {
            message: format!(
                "the module did not finish evaluating within {}s",
                deadline.as_secs()
            ),
        }),
        StartError::Ended { said } => match load_error(&said, places) {
            Some(error) => InspectError::Refused(error),
            None => InspectError::Unavailable {
                detail: said.join("; "),
            },
        },
    }
}

#[derive(Deserialize)]
struct RuntimeLine {
    message: String,
}

/// The load error among the lines of a process that ended while starting.
///
/// Only the runtime writes to standard error, one JSON object per line; tenant code prints
/// to standard output, so it cannot imitate these.
pub(crate) fn load_error(said: &[String], places: &Places) -> Option<LoadError> {
    let messages: Vec<String> = said
        .iter()
        .filter_map(|line| serde_json::from_str::<RuntimeLine>(line).ok())
        .map(|line| line.message)
        .collect();
    let message = messages
        .iter()
        .find_map(|message| message.split_once("Uncaught ").map(|(_, thrown)| thrown))?;
    let rest = messages
        .iter()
        .skip_while(|line| !line.ends_with(message))
        .skip(1);
    let place = rest
        .map(|line| line.trim())
        .find(|line| line.starts_with("at ") || line.starts_with("imported from"));
    let (name, text) = message.split_once(": ").unwrap_or(("Error", message));
    // One line: what, and the first place that is told, in the message or behind it.
    let said = |text: &str| {
        let mut lines = text.lines().map(str::trim);
        let what = lines.next().unwrap_or_default();
        match lines.next().or(place) {
            Some(place) if !what.contains(place) => places.tell(&format!("{what} ({place})")),
            _ => places.tell(what),
        }
    };
    Some(if name == "Error" && text.starts_with("No such module") {
        LoadError::ModuleNotFound {
            message: said(text),
        }
    } else if name == "unsupported_media_type" || text.starts_with("unsupported_media_type") {
        LoadError::UnsupportedMediaType {
            module: "imported by the bundle".into(),
            media_type: "application/source-map+json".into(),
        }
    } else if name == "SyntaxError" || name == "CompileError" {
        LoadError::ModuleSyntaxError {
            message: said(message),
        }
    } else {
        // The contract has one code for what cannot be parsed and what throws while it is
        // evaluated; people want to know which.
        LoadError::ModuleSyntaxError {
            message: format!("the module threw while it was loaded: {}", said(message)),
        }
    })
}
