//! Code of workers: one module, its source map and its handlers, as assets.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use notation_model::{Asset, Map, Origin, Value};

use crate::{
    bundle::{self, Bundle, MAIN_MARK, Purpose},
    call_index::Part,
    codes, handlers, locate, near_files,
    problem::Problem,
    raw::RawStep,
    source::{Place, Sources, normal},
    trace::Trace,
};

/// Bytes by their digest.
pub(crate) type Assets = BTreeMap<String, Arc<[u8]>>;

/// A module field of a resource: the path as written, and where.
#[derive(Debug, Clone)]
pub(crate) struct ModuleRequest {
    pub path: String,
    /// The call that gave it.
    pub origin: Origin,
    /// The member of what was given to the call.
    pub at: Vec<RawStep>,
}

impl ModuleRequest {
    fn place(&self, sources: &Sources) -> Option<Place> {
        locate::member(sources, &self.origin, &self.at, Part::Value)
    }
}

/// The value of a module field: the same for equal code, whatever the file is called.
///
/// `{ "module": Asset, "sourceMap": Asset, "handlers": [Text] }`.
#[derive(Debug, Clone)]
pub(crate) struct CodeValue {
    pub value: Value,
    pub assets: Assets,
}

/// The file of a request.
///
/// Errors: outside the project, not there, or not a file.
pub(crate) fn find(sources: &Sources, request: &ModuleRequest) -> Result<PathBuf, Box<Problem>> {
    let root = sources.root();
    let file = normal(&root.join(&request.path));
    let problem =
        |message: String| Problem::new(codes::MODULE_NOT_FOUND, message).at(request.place(sources));
    if Path::new(&request.path).is_absolute() || !file.starts_with(root) {
        let problem = problem(format!("`{}` is outside the project", request.path))
            .help("give a path relative to the project file, such as `src/api.ts`");
        return Err(Box::new(problem));
    }
    if file.is_file() {
        return Ok(file);
    }
    let otherwise = "the path is relative to the project file, `notation.config.ts`";
    let help = near_files::advice(root, &file, otherwise);
    let problem = problem(format!("there is no file `{}`", request.path)).help(help);
    Err(Box::new(problem))
}

/// Bundles one file.
///
/// Errors: the bundler's, and a default export whose handlers cannot be told.
pub(crate) async fn build(sources: &Sources, file: &Path) -> Result<CodeValue, Vec<Problem>> {
    let bundle = bundle::bundle(sources, file, Purpose::Code).await?;
    let found = handlers::handlers(&bundle.code).map_err(|unreadable| {
        let place = in_source(&bundle, unreadable.offset, sources, file);
        vec![
            Problem::new(codes::MODULE_HANDLERS, unreadable.message)
                .help("write `export default { async fetch(request, env) { ... } }`: an object literal with `fetch`, `scheduled` or `queue`, directly or through a constant. For an instance: `export default { fetch: (request, env, ctx) => app.fetch(request, env, ctx) }`")
                .at(place),
        ]
    })?;
    let map = source_map(bundle.map, sources, file);
    let mut assets = Assets::new();
    let mut keep = |bytes: Vec<u8>| {
        let asset = Asset::of(&bytes);
        assets.insert(asset.digest.clone(), bytes.into());
        Value::from(asset)
    };
    let value = Value::Map(Map::from([
        ("module".to_owned(), keep(bundle.code.into_bytes())),
        ("sourceMap".to_owned(), keep(map.into_bytes())),
        (
            "handlers".to_owned(),
            Value::List(found.into_iter().map(Value::from).collect()),
        ),
    ]));
    Ok(CodeValue { value, assets })
}

/// The map's text. Its sources are relative to the project; the main file is called `main`, so
/// that renaming or moving it changes nothing.
fn source_map(mut map: rolldown_sourcemap::SourceMap, sources: &Sources, file: &Path) -> String {
    let extension = file.extension().and_then(|e| e.to_str()).unwrap_or("js");
    let main = format!("main.{extension}");
    let own = sources.name_of(file);
    let names: Vec<String> = map
        .get_sources()
        .map(|name| {
            if name.ends_with(MAIN_MARK) || *name == own {
                main.clone()
            } else {
                name.to_owned()
            }
        })
        .collect();
    map.set_sources(names);
    map.set_file("index.js");
    map.to_json_string()
}

/// The place in the user's source of an offset in the bundle; the file's start when unknown.
fn in_source(bundle: &Bundle, offset: u32, sources: &Sources, file: &Path) -> Option<Place> {
    let main = sources.get(&sources.name_of(file))?;
    let before = &bundle.code[..offset as usize];
    let line = before.matches('\n').count() as u32;
    let column = before.len() - before.rfind('\n').map_or(0, |at| at + 1);
    let trace = Trace::of_code(bundle, sources, file);
    let origin = trace.map(line, column as u32, sources);
    match origin {
        Some(origin) => sources.place(&origin),
        None => Some(main.word(0)),
    }
}
