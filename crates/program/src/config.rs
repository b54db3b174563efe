//! The project file, `notation.config.ts` (`engine.md` §9, *The project file*).

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use indexmap::IndexMap;
use notation_model::{AppName, EntryName, NameError, StageName, TypeSet};

use crate::{
    Limits,
    bundle::{self, Purpose, runtime},
    call_index::Part,
    codes,
    declared::{Program, key},
    failure, locate, near_files,
    nearest::suggestion,
    own_stack::{self, Watch},
    problem::{Problem, in_order},
    raw::{RawStep, RawValue},
    sandbox,
    source::{Place, SourceFile, Sources},
    trace::Trace,
};

/// Name of the project file.
pub const CONFIG_FILE: &str = "notation.config.ts";

/// A project file, read and judged.
#[derive(Debug, Clone)]
pub struct ProjectConfig {
    /// The folder of the project file.
    pub root: PathBuf,
    /// Names the app.
    pub app: AppName,
    /// Entry files by name, as declared. At least one; every file exists.
    pub entries: IndexMap<EntryName, EntryFile>,
    /// Globs of function modules, relative to the project.
    pub runtime_modules: Vec<String>,
    /// The stage that is meant when none is said.
    pub default_stage: Option<StageName>,
    /// Where state is kept (URL); in `.notation/` when absent.
    pub state: Option<String>,
}

/// One entry file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryFile {
    /// Relative to the project, with `/`, without `.` and `..`.
    pub path: String,
}

impl ProjectConfig {
    /// The entry whose file a path is, as a person may type it in `current_dir`.
    pub fn entry_of_path(&self, path: &str, current_dir: &Path) -> Option<&EntryName> {
        let file = crate::source::normal(&current_dir.join(path));
        self.entries
            .iter()
            .find(|(_, entry)| self.root.join(&entry.path) == file)
            .map(|(name, _)| name)
    }
}

const FIELDS: [&str; 5] = ["app", "entries", "runtimeModules", "defaultStage", "state"];

/// The folder of the nearest project file upwards from `start_dir`, with links resolved: the
/// bundler resolves them too, and one file must have one name.
pub fn find_project(start_dir: &Path) -> Option<PathBuf> {
    let start = std::fs::canonicalize(start_dir).ok()?;
    start
        .ancestors()
        .find(|folder| folder.join(CONFIG_FILE).is_file())
        .map(Path::to_owned)
}

/// Reads the nearest project file upwards from `start_dir`. Blocks, as `evaluate` does.
///
/// Errors: no project file, or everything that is wrong with it.
pub fn load_config(start_dir: &Path) -> Result<ProjectConfig, Vec<Problem>> {
    load_config_with(start_dir, EntryFiles::Needed)
}

/// Whether a command evaluates an entry, so that the entry files have to be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryFiles {
    /// A missing file is a problem.
    Needed,
    /// Only the names matter: state is read, or everything is taken away.
    Unneeded,
}

/// As [`load_config`], for commands that need no entry file (`spec/cli.md`, `destroy`).
pub fn load_config_with(
    start_dir: &Path,
    entry_files: EntryFiles,
) -> Result<ProjectConfig, Vec<Problem>> {
    let Some(root) = find_project(start_dir) else {
        return Err(vec![
            Problem::new(
                codes::NO_PROJECT,
                format!("there is no {CONFIG_FILE} in {} or above", start_dir.display()),
            )
            .help("go to the project's folder, say it with `--project DIR`, or make one with `notation init`"),
        ]);
    };
    let limits = Limits::default();
    own_stack::run(&limits, |watch| {
        load_here(&root, entry_files, &limits, watch)
    })
    .unwrap_or_else(|error| Err(vec![Problem::new(codes::BUNDLE, error.to_string())]))
    .map_err(in_order)
}

fn load_here(
    root: &Path,
    entry_files: EntryFiles,
    limits: &Limits,
    watch: &Watch,
) -> Result<ProjectConfig, Vec<Problem>> {
    let sources = Sources::of(root);
    let file = root.join(CONFIG_FILE);
    let bundled = runtime()?.block_on(bundle::bundle(&sources, &file, Purpose::Program))?;
    let ran = watch
        .timed(|| sandbox::run(&bundled, limits, Arc::clone(&watch.stop)))
        .map_err(|broken| vec![Problem::new(codes::BUNDLE, broken.to_string())])?;
    let Some(file) = sources.get(CONFIG_FILE) else {
        return Err(vec![Problem::new(
            codes::NO_PROJECT,
            format!("{} cannot be read", file.display()),
        )]);
    };
    let mut reader = Reader {
        root,
        entry_files,
        file,
        problems: Vec::new(),
        told: Vec::new(),
    };
    if !ran.failures.is_empty() {
        let program = Program {
            raw: &ran.raw,
            trace: &Trace::of(&bundled, &sources),
            sources: &sources,
            // A project file declares nothing.
            types: &TypeSet::default(),
            entry: CONFIG_FILE,
        };
        return Err(ran
            .failures
            .iter()
            .map(|failure| failure::explain(failure, &program, limits))
            .collect());
    }
    for problem in &ran.raw.problems {
        let path = problem.path.get(1..).unwrap_or(&[]);
        let place = locate::default_export(&reader.file, path, Part::Value);
        let found = Problem::new(codes::known(&problem.code), &problem.message).at(place);
        reader.told.push(path.to_vec());
        reader.problems.push(match &problem.help {
            Some(help) => found.help(help),
            None => found,
        });
    }
    let exported = ran
        .raw
        .exports
        .iter()
        .find(|(name, _)| name == "default")
        .map(|(_, value)| value);
    let config = reader.config(exported);
    match config {
        Some(config) if reader.problems.is_empty() => Ok(config),
        _ => Err(reader.problems),
    }
}

/// Reads the exported value and gathers what is wrong with it.
struct Reader<'a> {
    root: &'a Path,
    entry_files: EntryFiles,
    file: Arc<SourceFile>,
    problems: Vec<Problem>,
    /// Members of which it is told already that they are no data.
    told: Vec<Vec<RawStep>>,
}

impl Reader<'_> {
    fn config(&mut self, exported: Option<&RawValue>) -> Option<ProjectConfig> {
        let Some(RawValue::Map(members)) = exported else {
            let place = locate::default_export(&self.file, &[], Part::Key);
            self.problems.push(
                Problem::new(
                    codes::CONFIG_SHAPE,
                    format!("{CONFIG_FILE} does not export a project"),
                )
                .help("write `export default defineConfig({ app: \"...\", entries: { ... } })`")
                .at(place.or_else(|| Some(self.file.word(0)))),
            );
            return None;
        };
        for (field, _) in members {
            if !FIELDS.contains(&field.as_str()) {
                let problem = Problem::new(
                    codes::UNKNOWN_FIELD,
                    format!("{CONFIG_FILE} has no field `{field}`"),
                )
                .help(suggestion(field, &FIELDS));
                self.push(problem, &[field], Part::Key);
            }
        }
        let get = |name: &str| {
            members
                .iter()
                .find(|(field, _)| field == name)
                .map(|(_, value)| value)
        };
        let app = self.app(get("app"));
        let entries = self.entries(get("entries"));
        let runtime_modules = self.runtime_modules(get("runtimeModules"));
        let default_stage = self
            .text("defaultStage", get("defaultStage"))
            .and_then(|text| self.name(&text, &["defaultStage"], Part::Value));
        let state = self.text("state", get("state"));
        Some(ProjectConfig {
            root: self.root.to_owned(),
            app: app?,
            entries: entries?,
            runtime_modules,
            default_stage,
            state,
        })
    }

    fn app(&mut self, value: Option<&RawValue>) -> Option<AppName> {
        if value.is_none() {
            self.missing("app", "it names the app, for example `app: \"orders-app\"`");
        }
        let text = self.text("app", value)?;
        self.name(&text, &["app"], Part::Value)
    }

    fn entries(&mut self, value: Option<&RawValue>) -> Option<IndexMap<EntryName, EntryFile>> {
        let example = "name at least one entry file: `entries: { main: \"infra/main.ts\" }`";
        let members = match value {
            None => {
                self.missing("entries", example);
                return None;
            }
            Some(RawValue::Map(members)) if members.is_empty() => {
                let problem = Problem::new(codes::CONFIG_FIELD, "`entries` is empty").help(example);
                self.push(problem, &["entries"], Part::Value);
                return None;
            }
            Some(RawValue::Map(members)) => members,
            Some(_) => {
                let problem =
                    Problem::new(codes::CONFIG_FIELD, "`entries` must be an object").help(example);
                self.push(problem, &["entries"], Part::Value);
                return None;
            }
        };
        let mut entries = IndexMap::new();
        for (name, value) in members {
            let path = ["entries", name.as_str()];
            let parsed: Option<EntryName> = self.name(name, &path, Part::Key);
            let RawValue::Text(file) = value else {
                let problem = Problem::new(
                    codes::CONFIG_FIELD,
                    format!("entry {name} must be the path of a file"),
                );
                self.push(problem, &path, Part::Value);
                continue;
            };
            let file = self.entry_file(name, file);
            if let (Some(name), Some(file)) = (parsed, file) {
                entries.insert(name, file);
            }
        }
        Some(entries)
    }

    fn entry_file(&mut self, name: &str, path: &str) -> Option<EntryFile> {
        let file = crate::source::normal(&self.root.join(path));
        let inside = file.starts_with(self.root) && !Path::new(path).is_absolute();
        if inside && (self.entry_files == EntryFiles::Unneeded || file.is_file()) {
            return Some(EntryFile {
                path: crate::source::relative(self.root, &file),
            });
        }
        let (message, help) = if inside {
            let otherwise =
                format!("make the file, or correct the path; it is relative to {CONFIG_FILE}");
            let help = near_files::advice(self.root, &file, &otherwise);
            (format!("entry {name}: there is no file `{path}`"), help)
        } else {
            (
                format!("entry {name}: `{path}` is outside the project"),
                format!("give a path relative to {CONFIG_FILE}"),
            )
        };
        let problem = Problem::new(codes::ENTRY_NOT_FOUND, message).help(help);
        self.push(problem, &["entries", name], Part::Value);
        None
    }

    fn runtime_modules(&mut self, value: Option<&RawValue>) -> Vec<String> {
        let items = match value {
            None => return Vec::new(),
            Some(RawValue::List(items)) => items.as_slice(),
            Some(one) => std::slice::from_ref(one),
        };
        let texts: Option<Vec<String>> = items
            .iter()
            .map(|item| match item {
                RawValue::Text(text) if !text.is_empty() => Some(text.clone()),
                _ => None,
            })
            .collect();
        texts.unwrap_or_else(|| {
            let problem = Problem::new(
                codes::CONFIG_FIELD,
                "`runtimeModules` must be a glob or a list of globs",
            )
            .help("for example `runtimeModules: \"src/**/*.fn.ts\"`");
            self.push(problem, &["runtimeModules"], Part::Value);
            Vec::new()
        })
    }

    fn text(&mut self, field: &str, value: Option<&RawValue>) -> Option<String> {
        match value? {
            RawValue::Text(text) => Some(text.clone()),
            _ => {
                let problem =
                    Problem::new(codes::CONFIG_FIELD, format!("`{field}` must be a text"));
                self.push(problem, &[field], Part::Value);
                None
            }
        }
    }

    fn name<T: std::str::FromStr<Err = NameError>>(
        &mut self,
        text: &str,
        path: &[&str],
        part: Part,
    ) -> Option<T> {
        match text.parse() {
            Ok(name) => Some(name),
            Err(error) => {
                let problem = Problem::new(codes::CONFIG_NAME, error.to_string()).help(
                    "a name is made of a-z, 0-9 and -, and neither starts nor ends with a hyphen",
                );
                self.push(problem, path, part);
                None
            }
        }
    }

    fn missing(&mut self, field: &str, help: &str) {
        let problem = Problem::new(codes::CONFIG_FIELD, format!("`{field}` is missing")).help(help);
        self.push(problem, &[], Part::Key);
    }

    fn push(&mut self, problem: Problem, path: &[&str], part: Part) {
        let steps: Vec<RawStep> = path.iter().map(|name| key(name)).collect();
        if self.told.contains(&steps) {
            return;
        }
        let place: Option<Place> = locate::default_export(&self.file, &steps, part);
        self.problems.push(problem.at(place));
    }
}
