//! From an entry to the desired graph (`architecture.md` §2, row 4).

use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

use notation_model::{Desired, DesiredGraph, EntryName, Expr, Origin, TypeSet};

use crate::{
    Limits, ProjectConfig,
    bundle::{self, Purpose, no_thread, runtime},
    call_index::Part,
    codes,
    declared::Program,
    failure,
    graph::{self, Built},
    locate,
    own_stack::{self, Watch},
    problem::{Problem, in_order},
    sandbox, sdk,
    source::{Place, Sources},
    trace::Trace,
    worker_code::{self, Assets, CodeValue},
};

/// A program as data.
#[derive(Debug)]
pub struct Evaluated {
    /// What is desired, with places in the user's source.
    pub graph: DesiredGraph,
    /// Bytes that the graph names by digest.
    pub assets: BTreeMap<String, Arc<[u8]>>,
    /// What the program printed with `console`, in order.
    pub said: Vec<String>,
    /// Where each secret is first asked for, by its name.
    pub secrets: BTreeMap<String, Origin>,
    sources: Sources,
}

impl Evaluated {
    /// Source files that were read, by name relative to the project.
    pub fn sources(&self) -> BTreeMap<Arc<str>, Arc<str>> {
        self.sources.texts()
    }

    /// The words at an origin of the graph: `new Worker`, `a.contribute`. `None` when it is not
    /// from this program.
    pub fn place(&self, origin: &Origin) -> Option<Place> {
        locate::member(&self.sources, origin, &[], Part::Key)
    }
}

/// Evaluates an entry: bundles it, runs it once, judges what it declared and bundles the code it
/// names. Not to be called from async code: it blocks, on a thread and a runtime of its own.
///
/// Errors: every problem that was found, in the order of the source.
pub fn evaluate(
    config: &ProjectConfig,
    entry: &EntryName,
    types: &TypeSet,
    limits: &Limits,
) -> Result<Evaluated, Vec<Problem>> {
    let Some(file) = config.entries.get(entry) else {
        return Err(vec![Problem::new(
            codes::ENTRY_NOT_FOUND,
            format!("the project has no entry {entry}"),
        )]);
    };
    let installed = sdk::installed_differently(&config.root);
    if !installed.is_empty() {
        return Err(installed);
    }
    let sources = Sources::of(&config.root);
    own_stack::run(limits, |watch| {
        evaluate_here(sources, &file.path, types, limits, watch)
    })
    .unwrap_or_else(|error| Err(vec![no_thread(&error)]))
    .map_err(in_order)
}

fn evaluate_here(
    sources: Sources,
    entry: &str,
    types: &TypeSet,
    limits: &Limits,
    watch: &Watch,
) -> Result<Evaluated, Vec<Problem>> {
    let tokio = runtime()?;
    let file = sources.root().join(entry);
    let bundled = tokio.block_on(bundle::bundle(&sources, &file, Purpose::Program))?;
    let trace = Trace::of(&bundled, &sources);
    let ran = watch
        .timed(|| sandbox::run(&bundled, limits, Arc::clone(&watch.stop)))
        .map_err(|broken| vec![Problem::new(codes::BUNDLE, broken.to_string())])?;

    let program = Program {
        raw: &ran.raw,
        trace: &trace,
        sources: &sources,
        types,
        entry,
    };
    let Built {
        mut graph,
        modules,
        mut problems,
    } = graph::build(&program);
    problems.extend(
        ran.failures
            .iter()
            .map(|failure| failure::explain(failure, &program, limits)),
    );

    // Each file once, however many resources run it.
    let mut files: BTreeMap<PathBuf, Option<CodeValue>> = BTreeMap::new();
    let mut uses = Vec::new();
    for (id, field, request) in modules {
        match worker_code::find(&sources, &request) {
            Ok(file) => {
                files.entry(file.clone()).or_default();
                uses.push((id, field, file));
            }
            Err(problem) => problems.push(*problem),
        }
    }
    problems.extend(tokio.block_on(build_all(&sources, &mut files)));
    if !problems.is_empty() {
        return Err(problems);
    }

    let mut assets = Assets::new();
    for (id, field, file) in uses {
        if let (Some(Some(code)), Some(desired)) = (files.get(&file), graph.resources.get_mut(&id))
        {
            put(desired, &field, code);
            assets.extend(code.assets.clone());
        }
    }
    let mut secrets = BTreeMap::new();
    for secret in &ran.raw.secrets {
        if let Some(origin) = trace.call(&secret.stack, &sources) {
            secrets.entry(secret.name.clone()).or_insert(origin);
        }
    }
    Ok(Evaluated {
        graph,
        assets,
        said: ran.raw.said,
        secrets,
        sources,
    })
}

/// Replaces the path of a module field by its code.
fn put(desired: &mut Desired, field: &str, code: &CodeValue) {
    let value = Expr::Known(code.value.clone());
    if let Some(given) = desired.config.get_mut(field) {
        *given = value.clone();
    }
    for contribution in &mut desired.contributions {
        if contribution.field == field {
            contribution.value = value.clone();
        }
    }
}

async fn build_all(
    sources: &Sources,
    files: &mut BTreeMap<PathBuf, Option<CodeValue>>,
) -> Vec<Problem> {
    let builds = files
        .iter_mut()
        .map(|(file, code)| async { (code, worker_code::build(sources, file).await) });
    let mut problems = Vec::new();
    for (code, built) in futures::future::join_all(builds).await {
        match built {
            Ok(value) => *code = Some(value),
            Err(found) => problems.extend(found),
        }
    }
    problems
}
