//! The contract set on disk or embedded: definitions by digest, compiled once (host API §6.2).

mod documents;

use documents::{EMBEDDED, Files, load_bindings, load_extra, load_forms, load_interfaces};
use include_dir::{Dir, File};
use jsonschema::Validator;
use notation_edge::{Catalog, CatalogError, Cron, EdgeKind, Form, FormError, FormRef};
use notation_edge_api::{Diagnostic, JsonError, Severity};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// Most problems told of one spec (host API §9.4).
const MAX_DIAGNOSTICS: usize = 256;

/// The installed contract set with compiled schemas.
pub struct Contracts {
    /// Forms, Interfaces and Bindings.
    pub catalog: Arc<Catalog>,
    validators: BTreeMap<FormRef, Validator>,
}

/// One reason why a set cannot be installed.
#[derive(Debug, thiserror::Error)]
pub enum ContractError {
    /// A file of the set cannot be read.
    #[error("{path} cannot be read")]
    Read {
        /// The file, relative to the set.
        path: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A file is no I-JSON document.
    #[error("{path} is no valid JSON document")]
    Json {
        /// The file.
        path: String,
        /// Why.
        #[source]
        source: JsonError,
    },
    /// An index entry lacks a member.
    #[error("{path}: an entry has no {member}")]
    Entry {
        /// The index.
        path: String,
        /// What it lacks.
        member: &'static str,
    },
    /// A document has another digest than the index says.
    #[error("{path} has digest {found}, the index says {expected}")]
    Digest {
        /// The document.
        path: String,
        /// Computed.
        found: String,
        /// Promised.
        expected: String,
    },
    /// A document names itself differently than the index.
    #[error("{path} states another identity than the index")]
    Identity {
        /// The document.
        path: String,
    },
    /// A Form definition is malformed.
    #[error("{path}: {source}")]
    Form {
        /// The document.
        path: String,
        /// Why.
        source: FormError,
    },
    /// An Interface or Binding definition is malformed.
    #[error("{path}: the definition lacks a member")]
    Definition {
        /// The document.
        path: String,
    },
    /// A desired schema does not compile.
    #[error("{path}: the desired schema does not compile: {reason}")]
    Schema {
        /// The document.
        path: String,
        /// Why.
        reason: String,
    },
    /// The documents do not fit each other.
    #[error(transparent)]
    Set(CatalogError),
}

/// Every reason why a set cannot be installed.
#[derive(Debug)]
pub struct ContractErrors(pub Vec<ContractError>);

impl ContractErrors {
    /// Each reason with its causes, in one line.
    pub fn lines(&self) -> Vec<String> {
        let line = |error: &ContractError| {
            let mut line = error.to_string();
            let mut cause = std::error::Error::source(error);
            while let Some(inner) = cause {
                line.push_str(&format!(": {inner}"));
                cause = inner.source();
            }
            line
        };
        self.0.iter().map(line).collect()
    }
}

impl std::fmt::Display for ContractErrors {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the contract set cannot be installed")?;
        for line in self.lines() {
            write!(f, "\n  {line}")?;
        }
        Ok(())
    }
}

impl std::error::Error for ContractErrors {}

impl Contracts {
    /// The set at `directory`, or the embedded one. `extra` is a conformance contract directory
    /// whose test-only definitions are installed too (host API §25.2).
    ///
    /// Errors: every reason at once.
    pub fn load(
        directory: Option<&Path>,
        extra: Option<&Path>,
    ) -> Result<Contracts, ContractErrors> {
        let files = match directory {
            Some(directory) => Files::Directory(directory.to_owned()),
            None => Files::Embedded,
        };
        let mut errors = Vec::new();
        let mut forms = load_forms(&files, &mut errors);
        let interfaces = load_interfaces(&files, &mut errors);
        let bindings = load_bindings(&files, &mut errors);
        if let Some(directory) = extra {
            forms.extend(load_extra(directory, &mut errors));
        }
        let mut validators = BTreeMap::new();
        for (path, form) in &forms {
            match compile(&form.desired_schema) {
                Ok(validator) => {
                    validators.insert(form.form_ref.clone(), validator);
                }
                Err(reason) => errors.push(ContractError::Schema {
                    path: path.clone(),
                    reason,
                }),
            }
        }
        if !errors.is_empty() {
            return Err(ContractErrors(errors));
        }
        let forms = forms.into_iter().map(|(_, form)| form).collect();
        let catalog = Catalog::new(forms, interfaces, bindings).map_err(|errors| {
            ContractErrors(errors.into_iter().map(ContractError::Set).collect())
        })?;
        Ok(Contracts {
            catalog: Arc::new(catalog),
            validators,
        })
    }

    /// Writes the embedded set into a folder.
    pub fn extract_embedded(folder: &Path) -> std::io::Result<()> {
        EMBEDDED.extract(folder)
    }

    /// Whether a folder holds exactly the documents of the embedded set.
    pub fn is_embedded_set(folder: &Path) -> bool {
        fn files(dir: &'static Dir<'static>) -> Box<dyn Iterator<Item = &'static File<'static>>> {
            Box::new(dir.files().chain(dir.dirs().flat_map(files)))
        }
        files(&EMBEDDED).all(|file| {
            std::fs::read(folder.join(file.path())).is_ok_and(|bytes| bytes == file.contents())
        })
    }

    /// Fills in defaults and canonical spellings (host API §9.3 steps 1 and 2).
    pub fn materialise(&self, form: &Form, mut spec: Map<String, Value>) -> Value {
        for (name, default) in &form.defaults {
            if !spec.contains_key(name) {
                spec.insert(name.clone(), default.clone());
            }
        }
        if edge_kind(form) == Some(EdgeKind::WorkerCustomDomain)
            && let Some(Value::String(hostname)) = spec.get_mut("hostname")
        {
            let name = hostname.strip_suffix('.').unwrap_or(hostname);
            *hostname = name.to_ascii_lowercase();
        }
        Value::Object(spec)
    }

    /// Judges a materialised spec (host API §9.3 steps 3 to 5); empty when it is valid.
    pub fn diagnose(&self, form: &Form, spec: &Value) -> Vec<Diagnostic> {
        let mut found: Vec<Diagnostic> = self
            .validators
            .get(&form.form_ref)
            .into_iter()
            .flat_map(|validator| validator.iter_errors(spec))
            .take(MAX_DIAGNOSTICS)
            .map(|error| problem(&error.instance_path().to_string(), error.to_string()))
            .collect();
        match edge_kind(form) {
            // The canonical spelling has none, and a second one would be another name.
            Some(EdgeKind::WorkerCustomDomain) => {
                let hostname = spec.get("hostname").and_then(Value::as_str);
                if hostname.is_some_and(|name| name.ends_with('.')) {
                    let text = "a hostname ends in one dot at the most".to_owned();
                    found.push(problem("/hostname", text));
                }
            }
            Some(EdgeKind::WorkerVersion) => {
                let handlers = spec.get("handlers").and_then(Value::as_array);
                for (index, handler) in handlers.into_iter().flatten().enumerate() {
                    let name = handler.as_str().unwrap_or_default();
                    if !self.catalog.handlers().iter().any(|known| known == name) {
                        let text = format!("{handler} is no handler of the worker runtime");
                        found.push(problem(&format!("/handlers/{index}"), text));
                    }
                }
            }
            Some(EdgeKind::WorkerCronTrigger) => {
                if let Some(Err(error)) = spec.get("cron").and_then(Value::as_str).map(Cron::parse)
                {
                    found.push(problem("/cron", error.to_string()));
                }
            }
            _ => {}
        }
        found.truncate(MAX_DIAGNOSTICS);
        found
    }
}

fn problem(pointer: &str, message: String) -> Diagnostic {
    let cut: String = message.chars().take(1024).collect();
    let field = (!pointer.is_empty() && pointer.len() <= 512).then(|| pointer.to_owned());
    Diagnostic {
        severity: Severity::Error,
        field,
        message: cut,
    }
}

fn edge_kind(form: &Form) -> Option<EdgeKind> {
    EdgeKind::of_parts(&form.form_ref.api_version, &form.form_ref.kind)
}

fn compile(schema: &Value) -> Result<Validator, String> {
    jsonschema::options()
        .with_draft(jsonschema::Draft::Draft202012)
        .should_validate_formats(true)
        .build(schema)
        .map_err(|error| error.to_string())
}
