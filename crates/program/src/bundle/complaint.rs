//! What the bundler says, as problems of the project.

use std::{collections::BTreeMap, path::Path, sync::Arc};

use oxc::{allocator::Allocator, diagnostics::LabeledSpan, parser::Parser, span::SourceType};
use rolldown_error::{BuildDiagnostic, DiagnosticOptions, EventKind};

use super::{Dangling, Imports, MAIN_MARK, Purpose};
use crate::{
    codes, imports, near_files,
    nearest::{list, nearest, suggestion},
    nesting::DEEPEST,
    problem::Problem,
    sdk::{self, PACKAGES},
    source::{Place, SourceFile, Sources, normal},
};

/// Modules of Node.js that have no package of the same name worth installing.
const NODE_BUILTINS: &[&str] = &[
    "assert",
    "async_hooks",
    "buffer",
    "child_process",
    "cluster",
    "console",
    "constants",
    "crypto",
    "dgram",
    "diagnostics_channel",
    "dns",
    "domain",
    "events",
    "fs",
    "http",
    "http2",
    "https",
    "inspector",
    "module",
    "net",
    "os",
    "path",
    "perf_hooks",
    "process",
    "punycode",
    "querystring",
    "readline",
    "repl",
    "stream",
    "string_decoder",
    "sys",
    "timers",
    "tls",
    "trace_events",
    "tty",
    "url",
    "util",
    "v8",
    "vm",
    "wasi",
    "worker_threads",
    "zlib",
];

/// Whether a warning of the bundler means that its output cannot run.
pub(crate) fn is_fatal(complaint: &BuildDiagnostic) -> bool {
    matches!(
        complaint.kind(),
        EventKind::UnresolvedImport | EventKind::UnresolvedEntry | EventKind::ImportIsUndefined
    )
}

/// Complaints of the bundler as problems, each once; those that are known already stay as they are.
/// `main` is the file that was bundled.
pub(crate) fn explain(
    complaints: Vec<BuildDiagnostic>,
    sources: &Sources,
    main: &Path,
    imports: &Imports,
    problems: &mut Vec<Problem>,
) {
    let options = DiagnosticOptions {
        cwd: sources.root().to_owned(),
    };
    let reader = Reader {
        sources,
        main: sources.name_of(main),
    };
    for complaint in &complaints {
        for problem in one(complaint, &reader, imports, &options) {
            let origin =
                |problem: &Problem| problem.place.as_ref().map(|place| place.origin.clone());
            let known = problems.iter().any(|other| {
                origin(other) == origin(&problem)
                    && (other.message == problem.message
                        || other.code == problem.code && problem.code == codes::EXPORT_NOT_FOUND)
            });
            if !known {
                problems.push(problem);
            }
        }
    }
}

/// Files that nest deeper than can be followed, by their paths, and where.
pub(crate) fn too_deep(files: &BTreeMap<String, usize>, sources: &Sources) -> Vec<Problem> {
    let problem = |(path, at): (&String, &usize)| {
        let name = sources.name_of(Path::new(path));
        let place = sources.get(&name).map(|file| file.place(*at, 1));
        Problem::new(
            codes::TOO_DEEP,
            format!("{name} nests more than {DEEPEST} levels deep"),
        )
        .help("give parts of it names of their own, or make it flat")
        .at(place)
    };
    files.iter().map(problem).collect()
}

/// Finds the file that a complaint speaks of.
struct Reader<'a> {
    sources: &'a Sources,
    /// The main file's name; the bundler may know it by an alias.
    main: String,
}

impl Reader<'_> {
    fn file(&self, name: &str) -> Option<Arc<SourceFile>> {
        if name.ends_with(MAIN_MARK) {
            return self.sources.get(&self.main);
        }
        if Path::new(name).is_absolute() {
            return self.sources.get(&self.sources.name_of(Path::new(name)));
        }
        self.sources.get(name)
    }

    /// A module as people call it.
    fn spoken(&self, id: &str) -> String {
        match sdk::package(id) {
            Some(package) => package.to_owned(),
            None if id.ends_with(MAIN_MARK) => self.main.clone(),
            None => self.sources.name_of(Path::new(id)),
        }
    }

    /// The message with the main file's own name in it, and with packages by their names.
    fn text(&self, message: &str) -> String {
        let mut message = message.trim_end_matches(['.', '\n', ' ']).to_owned();
        for package in PACKAGES {
            for prefix in [sdk::PREFIX, &sdk::PREFIX[1..], "\\0sdk:", "\\0", "\0"] {
                for file in ["/index.ts", ""] {
                    message =
                        message.replace(&format!("{prefix}{}{file}", package.name), package.name);
                }
            }
        }
        if !message.contains(MAIN_MARK) {
            return message;
        }
        message
            .split_inclusive(MAIN_MARK)
            .map(|part| match part.strip_suffix(MAIN_MARK) {
                Some(before) => {
                    let start = before.rfind(['"', '\'', '`', ' ']).map_or(0, |at| at + 1);
                    format!("{}{}", &before[..start], self.main)
                }
                None => part.to_owned(),
            })
            .collect()
    }
}

fn one(
    complaint: &BuildDiagnostic,
    reader: &Reader<'_>,
    imports: &Imports,
    options: &DiagnosticOptions,
) -> Vec<Problem> {
    let location = complaint.to_diagnostic_with(options).get_primary_location();
    let place = location.and_then(|(file, line, column, _)| {
        let file = reader.file(&file)?;
        let offset = file.offset(line as u32 - 1, column as u32);
        Some(file.word(offset))
    });
    let message = complaint.to_message_with(options);
    match complaint.kind() {
        EventKind::ParseError | EventKind::TransformError => {
            let file = complaint.id().and_then(|id| reader.file(&id));
            match file.map(|file| syntax(&file)) {
                Some(problems) if !problems.is_empty() => problems,
                _ => vec![Problem::new(codes::SYNTAX, reader.text(&message)).at(place)],
            }
        }
        EventKind::ImportIsUndefined => {
            vec![unknown_member(
                &reader.text(&message),
                place,
                reader,
                imports,
            )]
        }
        EventKind::MissingExportError => {
            vec![Problem::new(codes::EXPORT_NOT_FOUND, reader.text(&message)).at(place)]
        }
        _ => vec![Problem::new(codes::BUNDLE, reader.text(&message)).at(place)],
    }
}

/// `edge.Wroker` of `import * as edge`. The bundler tells the name in back quotes and the module in
/// plain ones.
fn unknown_member(
    message: &str,
    place: Option<Place>,
    reader: &Reader<'_>,
    imports: &Imports,
) -> Problem {
    let quoted = |mark: char| message.split(mark).nth(1).unwrap_or_default();
    let (name, module) = (quoted('`'), quoted('\''));
    let id = sdk::resolve(module, None).unwrap_or_else(|| {
        reader
            .sources
            .root()
            .join(module)
            .to_string_lossy()
            .into_owned()
    });
    let place = place.map(|place| {
        let text = &place.source.text;
        let at = text[place.offset..].find(&format!(".{name}"));
        let at = at.map_or(place.offset, |at| place.offset + at + 1);
        place.source.word(at)
    });
    let known = imports::exported(&id, &imports.modules);
    let visible: Vec<&str> = known.iter().map(String::as_str).collect();
    Problem::new(
        codes::EXPORT_NOT_FOUND,
        format!("`{name}` is not exported by `{module}`"),
    )
    .help(suggestion(name, &visible))
    .at(place)
}

/// Imports that lead nowhere, and names that are not exported.
pub(crate) fn of_imports(
    imports: &Imports,
    sources: &Sources,
    main: &Path,
    purpose: Purpose,
) -> Vec<Problem> {
    let reader = Reader {
        sources,
        main: sources.name_of(main),
    };
    let unknown = imports::unknown_names(
        &imports.modules,
        |id, range| Some(reader.file(id)?.range(range)),
        |id| reader.spoken(id),
    );
    let nowhere = imports.dangling.iter().map(|dangling| {
        let written = imports
            .modules
            .get(&dangling.importer)
            .and_then(|module| {
                let mut imports = module.imports.iter();
                imports.find(|import| import.specifier == dangling.specifier)
            })
            .map(|import| import.at.clone());
        let place = reader.file(&dangling.importer).map(|file| match written {
            Some(range) => file.range(range),
            // `import(..)` of a text.
            None => {
                let at = ['"', '\'', '`'].into_iter().find_map(|quote| {
                    file.text
                        .find(&format!("{quote}{}{quote}", dangling.specifier))
                });
                file.word(at.unwrap_or(0))
            }
        });
        import_not_found(dangling, place, purpose)
    });
    let outside = imports.modules.iter().flat_map(|(id, module)| {
        let leads_out = imports::leading_out(module, id, sources.root());
        leads_out.map(|import| {
            let place = reader.file(id).map(|file| file.range(import.at.clone()));
            import_outside(&import.specifier, place)
        })
    });
    nowhere.chain(outside).chain(unknown).collect()
}

fn import_outside(specifier: &str, place: Option<Place>) -> Problem {
    Problem::new(
        codes::IMPORT_OUTSIDE,
        format!("`{specifier}` is outside of the project"),
    )
    .help("move the file into the folder of notation.config.ts, or make it a package and import it by its name")
    .at(place)
}

fn import_not_found(dangling: &Dangling, place: Option<Place>, purpose: Purpose) -> Problem {
    let specifier = dangling.specifier.as_str();
    let bare = specifier.strip_prefix("node:").unwrap_or(specifier);
    let top = bare.split('/').next().unwrap_or(bare);
    if specifier.starts_with("node:") || NODE_BUILTINS.contains(&top) {
        let (message, help) = match purpose {
            Purpose::Program => (
                "a program",
                "a program has no files, no network and no clock: it only describes what is to be made. Packages in pure JavaScript can be used",
            ),
            Purpose::Code => (
                "a worker",
                "a worker has what the web platform offers. Packages in pure JavaScript can be used",
            ),
        };
        return Problem::new(
            codes::NODE_BUILTIN,
            format!("`{specifier}` is part of Node.js, and {message} does not run there"),
        )
        .help(help)
        .at(place);
    }
    let help = if specifier.starts_with("@notation/") && purpose == Purpose::Code {
        "this package describes infrastructure; code that runs later uses what it is given in `env`"
            .to_owned()
    } else if specifier.starts_with("@notation/") {
        let known: Vec<_> = PACKAGES.iter().map(|package| package.name).collect();
        match nearest(specifier, known.iter().copied()) {
            Some(package) => format!("did you mean `{package}`?"),
            None => format!("the packages of notation are {}", list(&known)),
        }
    } else if specifier.starts_with('.') || specifier.starts_with('/') {
        match similar_import(dangling) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "check the path; it is relative to the file that imports it".to_owned(),
        }
    } else {
        format!(
            "install it (`npm install {top}`), or write `./{specifier}` for a file beside this one"
        )
    };
    Problem::new(
        codes::IMPORT_NOT_FOUND,
        format!("`{specifier}` cannot be found"),
    )
    .help(help)
    .at(place.map(|place| place.with_label("imported here")))
}

/// The import of a file that is there and has nearly the same name.
fn similar_import(dangling: &Dangling) -> Option<String> {
    let specifier = Path::new(&dangling.specifier);
    let folder = Path::new(&dangling.importer).parent()?;
    let wanted = specifier.file_name()?.to_str()?;
    let file = normal(&folder.join(specifier));
    let mut names = near_files::names(file.parent()?);
    // Written without its extension, a file is found by its stem.
    if specifier.extension().is_none() {
        names = names
            .iter()
            .filter_map(|name| Some(Path::new(name).file_stem()?.to_str()?.to_owned()))
            .collect();
    }
    let near = nearest(wanted, names.iter().map(String::as_str))?;
    let before = dangling.specifier.strip_suffix(wanted)?;
    Some(format!("{before}{near}"))
}

/// Every syntax error of a file.
fn syntax(file: &Arc<SourceFile>) -> Vec<Problem> {
    let allocator = Allocator::default();
    let kind = SourceType::from_path(Path::new(&*file.name)).unwrap_or_else(|_| SourceType::ts());
    let parsed = Parser::new(&allocator, &file.text, kind).parse();
    parsed
        .diagnostics
        .iter()
        .map(|error| {
            let mut labels = error.labels.iter();
            let place =
                |label: &LabeledSpan| file.place(label.offset() as usize, label.len() as usize);
            let mut problem = Problem::new(codes::SYNTAX, error.message.to_string());
            if let Some(first) = labels.next() {
                let own = match first.label() {
                    Some(text) => place(first).with_label(text.to_owned()),
                    None => place(first),
                };
                problem = problem.at(Some(own));
            }
            for label in labels {
                let text = label.label().map_or_else(String::new, ToString::to_string);
                problem = problem.also(text, Some(place(label)));
            }
            match &error.help {
                Some(help) => problem.help(help.to_string()),
                None => problem,
            }
        })
        .collect()
}
