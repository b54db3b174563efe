//! One ES module of many files: rolldown with the embedded packages, as fast as it goes.

mod complaint;

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use rolldown::{
    AttachDebugInfo, Bundler, BundlerBuilder, BundlerOptions, CodeSplittingMode, CommentsOptions,
    ExperimentalOptions, InlineConstOption, InputItem, LogLevel, OptimizationOption, OutputFormat,
    Platform, PreserveEntrySignatures, RawMinifyOptions, SourceMapType, TreeshakeOptions,
};
use rolldown_common::{ModuleType, Output, OutputChunk, ResolvedExternal};
use rolldown_error::{BuildDiagnostic, BuildResult};
use rolldown_plugin::{
    HookLoadArgs, HookLoadOutput, HookLoadReturn, HookResolveIdArgs, HookResolveIdOutput,
    HookResolveIdReturn, HookTransformAstArgs, HookTransformAstReturn, HookUsage, Plugin,
    PluginContext, PluginContextResolveOptions, SharedLoadPluginContext,
};
use rolldown_sourcemap::SourceMap;

use crate::{
    codes,
    imports::{self, Import, Module},
    nesting,
    problem::Problem,
    questions, sdk,
    source::Sources,
};

/// What a bundle is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Evaluated here; every statement counts.
    Program,
    /// Sent to a provider; unused code is left out, and nothing in it names the main file.
    Code,
}

/// One module made of many files.
#[derive(Debug)]
pub(crate) struct Bundle {
    pub code: String,
    pub map: SourceMap,
}

/// Bundles a file of the project.
///
/// Errors: every complaint of the bundler, with its place.
pub(crate) async fn bundle(
    sources: &Sources,
    file: &Path,
    purpose: Purpose,
) -> Result<Bundle, Vec<Problem>> {
    let seen = Seen::default();
    let generated = generate(sources.root(), file, purpose, &seen).await;
    let imports = seen.take();
    if !imports.too_deep.is_empty() {
        return Err(complaint::too_deep(&imports.too_deep, sources));
    }
    let mut problems = complaint::of_imports(&imports, sources, file, purpose);
    let complaints = match generated {
        Ok(Outcome::One(chunk)) if problems.is_empty() => {
            return Ok(Bundle::of(Arc::unwrap_or_clone(chunk)));
        }
        Ok(Outcome::One(_)) => return Err(problems),
        Ok(Outcome::Complaints(complaints)) => complaints,
        Err(complaints) => complaints.into_vec(),
    };
    complaint::explain(complaints, sources, file, &imports, &mut problems);
    Err(problems)
}

/// A runtime for the bundler: it computes here, and reads files on a few threads.
pub(crate) fn runtime() -> Result<tokio::runtime::Runtime, Vec<Problem>> {
    tokio::runtime::Builder::new_current_thread()
        .build()
        .map_err(|error| vec![no_thread(&error)])
}

pub(crate) fn no_thread(error: &std::io::Error) -> Problem {
    Problem::new(
        codes::BUNDLE,
        format!("the program could not be evaluated on this machine: {error}"),
    )
}

impl Bundle {
    fn of(chunk: OutputChunk) -> Bundle {
        Bundle {
            code: chunk.code,
            map: chunk
                .map
                .unwrap_or_else(rolldown_sourcemap::empty_sourcemap),
        }
    }
}

enum Outcome {
    One(Arc<OutputChunk>),
    Complaints(Vec<BuildDiagnostic>),
}

/// An import that leads nowhere.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Dangling {
    /// Module id of the file that imports.
    pub importer: String,
    pub specifier: String,
}

/// What was seen while bundling, so that all mistakes of imports are told at once.
#[derive(Debug, Default)]
pub(crate) struct Imports {
    /// Imports that lead nowhere.
    pub dangling: BTreeSet<Dangling>,
    /// The project's own modules by id.
    pub modules: BTreeMap<String, Module>,
    /// Modules that nest too deep to be read, and where, in bytes.
    pub too_deep: BTreeMap<String, usize>,
}

/// Gathered from the bundler's tasks.
#[derive(Debug, Clone, Default)]
struct Seen(Arc<Mutex<Imports>>);

impl Seen {
    fn dangling(&self, importer: &str, specifier: &str) {
        self.locked().dangling.insert(Dangling {
            importer: importer.to_owned(),
            specifier: specifier.to_owned(),
        });
    }

    /// The text, or nothing in its place when it nests too deep: bundling goes on, and its output
    /// is not used.
    fn shallow(&self, id: &str, text: String) -> String {
        match nesting::too_deep(&text) {
            None => text,
            Some(at) => {
                self.locked().too_deep.insert(id.to_owned(), at);
                match id.ends_with(".json") {
                    true => "null".into(),
                    false => String::new(),
                }
            }
        }
    }

    fn module(&self, id: &str, module: Module) {
        self.locked().modules.insert(id.to_owned(), module);
    }

    fn take(&self) -> Imports {
        std::mem::take(&mut *self.locked())
    }

    fn locked(&self) -> MutexGuard<'_, Imports> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn generate(root: &Path, file: &Path, purpose: Purpose, seen: &Seen) -> BuildResult<Outcome> {
    let plugin = Project {
        purpose,
        main: Main::of(file, purpose),
        seen: seen.clone(),
    };
    let mut bundler: Bundler = BundlerBuilder::default()
        .with_options(options(root, file, purpose))
        .with_plugins(vec![Arc::new(plugin)])
        .build()?;
    let output = bundler.generate().await?;
    let complaints: Vec<_> = output
        .warnings
        .into_iter()
        .filter(complaint::is_fatal)
        .collect();
    if !complaints.is_empty() {
        return Ok(Outcome::Complaints(complaints));
    }
    let chunk = output.assets.into_iter().find_map(|output| match output {
        Output::Chunk(chunk) => Some(chunk),
        Output::Asset(_) => None,
    });
    chunk.map(Outcome::One).ok_or_else(|| {
        rolldown_error::BatchedBuildDiagnostic::new(vec![BuildDiagnostic::unhandleable_error(
            std::io::Error::other("the bundler returned no module").into(),
        )])
    })
}

fn options(root: &Path, file: &Path, purpose: Purpose) -> BundlerOptions {
    BundlerOptions {
        input: Some(vec![InputItem {
            name: Some("index".into()),
            import: file.to_string_lossy().into_owned(),
        }]),
        cwd: Some(root.to_owned()),
        dir: Some(root.to_string_lossy().into_owned()),
        platform: Some(Platform::Neutral),
        format: Some(OutputFormat::Esm),
        entry_filenames: Some("index.js".to_owned().into()),
        sourcemap: Some(SourceMapType::Hidden),
        // A program's texts are shown with its problems; a worker's places are enough.
        sourcemap_exclude_sources: Some(purpose == Purpose::Code),
        // One module: a dynamic import is put into it.
        code_splitting: Some(CodeSplittingMode::Bool(false)),
        preserve_entry_signatures: Some(PreserveEntrySignatures::Strict),
        // Whether a declaration is used cannot be told: making a resource is its effect.
        treeshake: match purpose {
            Purpose::Program => TreeshakeOptions::Boolean(false),
            Purpose::Code => TreeshakeOptions::default(),
        },
        comments: Some(CommentsOptions {
            legal: false,
            annotation: false,
            jsdoc: false,
        }),
        // Comments with file names would make equal code differ.
        experimental: Some(ExperimentalOptions {
            attach_debug_info: Some(AttachDebugInfo::None),
            ..ExperimentalOptions::default()
        }),
        // What is written is what runs: no rewriting, which would also move places.
        minify: Some(RawMinifyOptions::Bool(false)),
        optimization: Some(OptimizationOption {
            inline_const: Some(InlineConstOption::Bool(false)),
            ..OptimizationOption::default()
        }),
        log_level: Some(LogLevel::Silent),
        // Packages ask for it by this name; there is no environment behind it.
        define: Some(
            [(
                "process.env.NODE_ENV".to_owned(),
                "\"production\"".to_owned(),
            )]
            .into_iter()
            .collect(),
        ),
        resolve: Some(rolldown::ResolveOptions {
            condition_names: match purpose {
                Purpose::Program => None,
                Purpose::Code => Some(vec!["workerd".into(), "worker".into()]),
            },
            // Pure JavaScript packages are found through either field.
            main_fields: Some(vec!["module".into(), "main".into()]),
            ..rolldown::ResolveOptions::default()
        }),
        ..BundlerOptions::default()
    }
}

/// Lends the embedded packages to the bundler, hides the main file's name from it, and notes
/// imports that lead nowhere.
#[derive(Debug)]
struct Project {
    purpose: Purpose,
    main: Main,
    seen: Seen,
}

/// The main file. That of worker code is known to the bundler as `main` beside the real one, so
/// that names made of file names do not change when it is renamed.
#[derive(Debug)]
struct Main {
    real: PathBuf,
    alias: String,
    kind: ModuleType,
}

/// Ends the alias of a main file.
pub(crate) const MAIN_MARK: &str = "?notation";

impl Main {
    fn of(file: &Path, purpose: Purpose) -> Main {
        let extension = file.extension().and_then(|e| e.to_str()).unwrap_or("js");
        Main {
            real: file.to_owned(),
            alias: match purpose {
                Purpose::Program => file.to_owned(),
                Purpose::Code => file.with_file_name(format!("main.{extension}{MAIN_MARK}")),
            }
            .to_string_lossy()
            .into_owned(),
            kind: match extension {
                "ts" | "mts" | "cts" => ModuleType::Ts,
                "tsx" => ModuleType::Tsx,
                "jsx" => ModuleType::Jsx,
                _ => ModuleType::Js,
            },
        }
    }
}

impl Plugin for Project {
    fn name(&self) -> Cow<'static, str> {
        "notation".into()
    }

    fn register_hook_usage(&self) -> HookUsage {
        HookUsage::ResolveId | HookUsage::Load | HookUsage::TransformAst
    }

    async fn resolve_id(
        &self,
        ctx: &PluginContext,
        args: &HookResolveIdArgs<'_>,
    ) -> HookResolveIdReturn {
        if args.is_entry {
            return Ok(Some(HookResolveIdOutput::from_id(self.main.alias.as_str())));
        }
        if self.purpose == Purpose::Program
            && let Some(id) = sdk::resolve(args.specifier, args.importer)
        {
            return Ok(Some(HookResolveIdOutput::from_id(id)));
        }
        // Types for the editor may resolve these names to declarations; there is no code behind.
        let ours = args.specifier.starts_with("@notation/");
        let skip = PluginContextResolveOptions {
            skip_self: true,
            ..PluginContextResolveOptions::default()
        };
        let found = match ours {
            true => None,
            false => ctx
                .resolve(args.specifier, args.importer, Some(skip))
                .await?
                .ok(),
        };
        match found {
            Some(found) if Path::new(found.id.as_str()) == self.main.real => {
                Ok(Some(HookResolveIdOutput::from_id(self.main.alias.as_str())))
            }
            Some(found) => Ok(Some(HookResolveIdOutput::from_resolved_id(found))),
            None => {
                self.seen
                    .dangling(args.importer.unwrap_or_default(), args.specifier);
                // As if it were there: bundling goes on, and its output is not used.
                Ok(Some(HookResolveIdOutput {
                    external: Some(ResolvedExternal::Bool(true)),
                    ..HookResolveIdOutput::from_id(args.specifier)
                }))
            }
        }
    }

    async fn load(&self, _: SharedLoadPluginContext, args: &HookLoadArgs<'_>) -> HookLoadReturn {
        if let Some(text) = sdk::load(args.id) {
            return Ok(Some(HookLoadOutput {
                code: text.into(),
                module_type: Some(ModuleType::Ts),
                ..HookLoadOutput::default()
            }));
        }
        if args.id != self.main.alias {
            // Read here: handing a small file to another thread takes longer than reading it.
            // What cannot be read is left to the bundler, which knows how to say so.
            let text = is_text(args.id)
                .then(|| std::fs::read_to_string(args.id).ok())
                .flatten();
            return Ok(text.map(|text| HookLoadOutput {
                code: self.seen.shallow(args.id, text).into(),
                ..HookLoadOutput::default()
            }));
        }
        let text = std::fs::read_to_string(&self.main.real)?;
        let id = self.main.real.to_string_lossy();
        Ok(Some(HookLoadOutput {
            code: self.seen.shallow(&id, text).into(),
            module_type: Some(self.main.kind.clone()),
            ..HookLoadOutput::default()
        }))
    }

    async fn transform_ast(
        &self,
        ctx: &PluginContext,
        args: HookTransformAstArgs<'_>,
    ) -> HookTransformAstReturn {
        let mut ast = args.ast;
        if !is_own(args.id, args.module_type) {
            return Ok(ast);
        }
        let mut module = imports::read(ast.program());
        for import in &mut module.imports {
            self.follow(ctx, import, args.id).await;
        }
        self.seen.module(args.id, module);
        if self.purpose == Purpose::Program {
            ast.program
                .with_mut(|fields| questions::watch(fields.program, fields.allocator));
        }
        Ok(ast)
    }
}

impl Project {
    /// Finds where an import leads. One that nothing uses is never asked for again.
    async fn follow(&self, ctx: &PluginContext, import: &mut Import, importer: &str) {
        if let Some(id) = sdk::resolve(&import.specifier, None) {
            import.target = Some(id);
            return;
        }
        let skip = PluginContextResolveOptions {
            skip_self: true,
            ..PluginContextResolveOptions::default()
        };
        let found = match import.specifier.starts_with("@notation/") {
            true => None,
            false => ctx
                .resolve(&import.specifier, Some(importer), Some(skip))
                .await
                .ok()
                .and_then(Result::ok),
        };
        match found {
            Some(found) if Path::new(found.id.as_str()) == self.main.real => {
                import.target = Some(self.main.alias.clone());
            }
            Some(found) => import.target = Some(found.id.to_string()),
            None if imports::leads_nowhere(import, importer) => {
                self.seen.dangling(importer, &import.specifier);
            }
            None => {}
        }
    }
}

/// Code that the people of the project wrote. Packages hand values on as they are, and often ask
/// what they are only to do that.
fn is_own(id: &str, kind: &ModuleType) -> bool {
    let code = matches!(
        kind,
        ModuleType::Ts | ModuleType::Tsx | ModuleType::Js | ModuleType::Jsx
    );
    code && !id.starts_with(['\0', '?']) && !id.contains("/node_modules/")
}

/// Files whose kind the bundler tells by their extension.
fn is_text(id: &str) -> bool {
    let extension = Path::new(id).extension().and_then(|e| e.to_str());
    matches!(
        extension,
        Some("ts" | "tsx" | "mts" | "cts" | "js" | "jsx" | "mjs" | "cjs" | "json" | "txt")
    )
}
