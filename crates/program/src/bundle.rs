//! One ES module of many files: rolldown with the embedded packages, as fast as it goes.

use std::{
    borrow::Cow,
    path::{Path, PathBuf},
    sync::Arc,
};

use rolldown::{
    AttachDebugInfo, Bundler, BundlerBuilder, BundlerOptions, CodeSplittingMode, CommentsOptions,
    ExperimentalOptions, InputItem, LogLevel, OutputFormat, Platform, PreserveEntrySignatures,
    SourceMapType, TreeshakeOptions,
};
use rolldown_common::{ModuleType, Output, OutputChunk};
use rolldown_error::{BuildDiagnostic, BuildResult};
use rolldown_plugin::{
    HookLoadArgs, HookLoadOutput, HookLoadReturn, HookResolveIdArgs, HookResolveIdOutput,
    HookResolveIdReturn, HookUsage, Plugin, PluginContext, PluginContextResolveOptions,
    SharedLoadPluginContext,
};
use rolldown_sourcemap::SourceMap;

use crate::{bundle_problem, problem::Problem, sdk, source::Sources};

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
    let chunk = match generate(sources.root(), file, purpose).await {
        Ok(Outcome::One(chunk)) => chunk,
        Ok(Outcome::Complaints(complaints)) => {
            return Err(bundle_problem::explain(complaints, sources, file));
        }
        Err(complaints) => return Err(bundle_problem::explain(complaints.into_vec(), sources, file)),
    };
    let chunk = Arc::unwrap_or_clone(chunk);
    let map = chunk.map.unwrap_or_else(rolldown_sourcemap::empty_sourcemap);
    Ok(Bundle {
        code: chunk.code,
        map,
    })
}

enum Outcome {
    One(Arc<OutputChunk>),
    Complaints(Vec<BuildDiagnostic>),
}

async fn generate(root: &Path, file: &Path, purpose: Purpose) -> BuildResult<Outcome> {
    let main = match purpose {
        Purpose::Program => None,
        Purpose::Code => Some(Main::of(file)),
    };
    let mut bundler: Bundler = BundlerBuilder::default()
        .with_options(options(root, file, purpose))
        .with_plugins(vec![Arc::new(Project { main })])
        .build()?;
    let output = bundler.generate().await?;
    // An import that leads nowhere is a warning to the bundler: it would stay in the output.
    let (complaints, _): (Vec<_>, Vec<_>) = output
        .warnings
        .into_iter()
        .partition(bundle_problem::is_fatal);
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
        log_level: Some(LogLevel::Silent),
        resolve: Some(rolldown::ResolveOptions {
            // Pure JavaScript packages are found through either field.
            main_fields: Some(vec!["module".into(), "main".into()]),
            ..rolldown::ResolveOptions::default()
        }),
        ..BundlerOptions::default()
    }
}

/// Lends the embedded packages to the bundler, and hides the main file's name from it.
#[derive(Debug)]
struct Project {
    main: Option<Main>,
}

/// The main file of worker code. It is known to the bundler as `main` beside the real one, so
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
    fn of(file: &Path) -> Main {
        let extension = file.extension().and_then(|e| e.to_str()).unwrap_or("js");
        Main {
            real: file.to_owned(),
            alias: file
                .with_file_name(format!("main.{extension}{MAIN_MARK}"))
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
        HookUsage::ResolveId | HookUsage::Load
    }

    async fn resolve_id(
        &self,
        ctx: &PluginContext,
        args: &HookResolveIdArgs<'_>,
    ) -> HookResolveIdReturn {
        if let Some(id) = sdk::resolve(args.specifier, args.importer) {
            return Ok(Some(HookResolveIdOutput::from_id(id)));
        }
        let Some(main) = &self.main else {
            return Ok(None);
        };
        if args.is_entry {
            return Ok(Some(HookResolveIdOutput::from_id(main.alias.as_str())));
        }
        // Only a relative import can mean the main file.
        if !args.specifier.starts_with('.') {
            return Ok(None);
        }
        let skip = PluginContextResolveOptions {
            skip_self: true,
            ..PluginContextResolveOptions::default()
        };
        match ctx.resolve(args.specifier, args.importer, Some(skip)).await? {
            Ok(found) if Path::new(found.id.as_str()) == main.real => {
                Ok(Some(HookResolveIdOutput::from_id(main.alias.as_str())))
            }
            Ok(found) => Ok(Some(HookResolveIdOutput::from_resolved_id(found))),
            Err(_) => Ok(None),
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
        match &self.main {
            Some(main) if args.id == main.alias => Ok(Some(HookLoadOutput {
                code: std::fs::read_to_string(&main.real)?.into(),
                module_type: Some(main.kind.clone()),
                ..HookLoadOutput::default()
            })),
            _ => Ok(None),
        }
    }
}
