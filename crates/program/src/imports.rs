//! What the modules of a project import from each other, as it is written: also what nothing uses.
//! The bundler leaves unused imports out before it looks for them, and a misspelt name in one would
//! only be found when it is first used.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
    path::Path,
};

use oxc::{
    ast::ast::{
        BindingIdentifier, Declaration, ExportSpecifier, ImportDeclarationSpecifier, Program,
        Statement,
    },
    ast_visit::VisitJs,
    span::{GetSpan, Span},
};

use crate::{
    codes,
    nearest::suggestion,
    problem::Problem,
    sdk,
    source::{Place, normal},
    syntax::parsed,
};

/// Imports and exports of one module.
#[derive(Debug, Default)]
pub(crate) struct Module {
    pub imports: Vec<Import>,
    /// Exported names, types included.
    exports: BTreeSet<String>,
}

/// One `import .. from`, `export .. from` or `export * from`.
#[derive(Debug)]
pub(crate) struct Import {
    pub specifier: String,
    /// The quoted specifier, in bytes.
    pub at: Range<usize>,
    /// Only types: whether there is a module does not matter.
    pub types_only: bool,
    /// Module id of what it leads to; `None` when nothing, or nothing of the project.
    pub target: Option<String>,
    /// Names that the target must export, with their places.
    names: Vec<(String, Range<usize>)>,
    /// Everything the target exports is exported again.
    again: bool,
}

/// Reads the imports and exports of a module.
pub(crate) fn read(program: &Program<'_>) -> Module {
    let mut module = Module::default();
    for statement in &program.body {
        module.read(statement);
    }
    module
}

impl Module {
    fn read(&mut self, statement: &Statement<'_>) {
        match statement {
            Statement::ImportDeclaration(import) => {
                let names =
                    import
                        .specifiers
                        .iter()
                        .flatten()
                        .filter_map(|specifier| match specifier {
                            ImportDeclarationSpecifier::ImportSpecifier(one) => {
                                let imported = &one.imported;
                                Some((imported.name().to_string(), bytes(imported.span())))
                            }
                            ImportDeclarationSpecifier::ImportDefaultSpecifier(one) => {
                                Some(("default".to_owned(), bytes(one.span)))
                            }
                            ImportDeclarationSpecifier::ImportNamespaceSpecifier(_) => None,
                        });
                self.imports.push(Import {
                    specifier: import.source.value.to_string(),
                    at: bytes(import.source.span),
                    types_only: import.import_kind.is_type(),
                    target: None,
                    names: names.collect(),
                    again: false,
                });
            }
            Statement::ExportFromDeclaration(export) => {
                self.export(&export.specifiers);
                let names = export.specifiers.iter();
                self.imports.push(Import {
                    specifier: export.source.value.to_string(),
                    at: bytes(export.source.span),
                    types_only: export.export_kind.is_type(),
                    target: None,
                    names: names
                        .map(|one| (one.local.name().to_string(), bytes(one.local.span())))
                        .collect(),
                    again: false,
                });
            }
            Statement::ExportAllDeclaration(export) => {
                if let Some(name) = &export.exported {
                    self.exports.insert(name.name().to_string());
                }
                self.imports.push(Import {
                    specifier: export.source.value.to_string(),
                    at: bytes(export.source.span),
                    types_only: export.export_kind.is_type(),
                    target: None,
                    names: Vec::new(),
                    again: export.exported.is_none(),
                });
            }
            Statement::ExportNamedDeclaration(export) => self.export(&export.specifiers),
            Statement::ExportDeclaration(export) => self.declared(&export.declaration),
            Statement::ExportDefaultDeclaration(_) => {
                self.exports.insert("default".to_owned());
            }
            _ => {}
        }
    }

    fn export(&mut self, specifiers: &[ExportSpecifier<'_>]) {
        let names = specifiers.iter();
        self.exports
            .extend(names.map(|one| one.exported.name().to_string()));
    }

    fn declared(&mut self, declaration: &Declaration<'_>) {
        match declaration {
            Declaration::VariableDeclaration(variables) => {
                for variable in &variables.declarations {
                    let mut bound = Bound(&mut self.exports);
                    bound.visit_binding_pattern(&variable.id);
                }
            }
            other => {
                let name = other.id().map(|id| id.name.to_string());
                self.exports.extend(name);
            }
        }
    }
}

/// Names that a pattern binds.
struct Bound<'e>(&'e mut BTreeSet<String>);

impl<'a> VisitJs<'a> for Bound<'_> {
    fn visit_binding_identifier(&mut self, it: &BindingIdentifier<'a>) {
        self.0.insert(it.name.to_string());
    }
}

fn bytes(span: Span) -> Range<usize> {
    span.start as usize..span.end as usize
}

/// Whether an import that the bundler cannot follow is a mistake: types alone may come from files
/// and packages that hold no code.
pub(crate) fn leads_nowhere(import: &Import, importer: &str) -> bool {
    let folder = Path::new(importer).parent().unwrap_or(Path::new("/"));
    if import.specifier.starts_with(['.', '/']) {
        let file = folder.join(&import.specifier);
        let types = [".d.ts", ".d.mts", ".d.cts"].map(|end| {
            let mut name = file.clone().into_os_string();
            name.push(end);
            name
        });
        return !import.types_only && !types.iter().any(|file| Path::new(file).is_file());
    }
    let mut parts = import.specifier.split('/');
    let package = match parts.next() {
        Some(scope) if scope.starts_with('@') => {
            format!("{scope}/{}", parts.next().unwrap_or_default())
        }
        Some(name) => name.to_owned(),
        None => return false,
    };
    let types = format!(
        "@types/{}",
        package.trim_start_matches('@').replace('/', "__")
    );
    let installed = folder.ancestors().any(|folder| {
        let modules = folder.join("node_modules");
        modules.join(&package).is_dir() || modules.join(&types).is_dir()
    });
    !import.types_only && !installed
}

/// Imports by path of a module of the project that lead to files outside of its folder. Packages
/// may lie anywhere.
pub(crate) fn leading_out<'m>(
    module: &'m Module,
    importer: &str,
    root: &Path,
) -> impl Iterator<Item = &'m Import> {
    let folder = Path::new(importer).parent().map(Path::to_owned);
    let real_root = root.canonicalize();
    let inside = move |file: &Path| {
        let real = real_root.as_ref().is_ok_and(|root| file.starts_with(root));
        real || file.starts_with(root)
    };
    let folder = folder.filter(|folder| inside(folder));
    module.imports.iter().filter(move |import| {
        let by_path = import.specifier.starts_with(['.', '/']) && import.target.is_some();
        let leads_to = folder
            .as_ref()
            .map(|folder| normal(&folder.join(&import.specifier)));
        by_path && leads_to.is_some_and(|file| !inside(&file))
    })
}

/// Names that are imported and not exported, each at its place. `place` finds words of a module,
/// `spoken` how people call one.
pub(crate) fn unknown_names(
    modules: &BTreeMap<String, Module>,
    place: impl Fn(&str, Range<usize>) -> Option<Place>,
    spoken: impl Fn(&str) -> String,
) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut others = BTreeMap::new();
    for (id, module) in modules {
        for import in module
            .imports
            .iter()
            .filter(|import| !import.names.is_empty())
        {
            let Some(target) = &import.target else {
                continue;
            };
            let Some(known) = exports(target, modules, &mut others, &mut BTreeSet::new()) else {
                continue;
            };
            for (name, at) in &import.names {
                if known.contains(name) {
                    continue;
                }
                let visible: Vec<&str> = known.iter().map(String::as_str).collect();
                let (what, help) = match name.as_str() {
                    "default" => {
                        let named = format!(
                            "import by name, `import {{ .. }} from \"{}\"`; {}",
                            import.specifier,
                            suggestion("", &visible)
                        );
                        ("nothing is exported as default".to_owned(), named)
                    }
                    _ => (
                        format!("`{name}` is not exported"),
                        suggestion(name, &visible),
                    ),
                };
                problems.push(
                    Problem::new(
                        codes::EXPORT_NOT_FOUND,
                        format!("{what} by `{}`", spoken(target)),
                    )
                    .help(help)
                    .at(place(id, at.clone())),
                );
            }
        }
    }
    problems
}

/// What a module exports, as far as that can be told.
pub(crate) fn exported(id: &str, modules: &BTreeMap<String, Module>) -> BTreeSet<String> {
    exports(id, modules, &mut BTreeMap::new(), &mut BTreeSet::new()).unwrap_or_default()
}

/// What a module exports; `None` when that cannot be told: it is no module of the project, or
/// exports something of another one that is not.
fn exports(
    id: &str,
    modules: &BTreeMap<String, Module>,
    others: &mut BTreeMap<String, Option<Module>>,
    above: &mut BTreeSet<String>,
) -> Option<BTreeSet<String>> {
    if !above.insert(id.to_owned()) {
        return Some(BTreeSet::new());
    }
    if !modules.contains_key(id) && !others.contains_key(id) {
        others.insert(id.to_owned(), unread(id));
    }
    let module = match modules.get(id) {
        Some(module) => module,
        None => others.get(id)?.as_ref()?,
    };
    // A file without either is a script, or a module of the older kind.
    if module.exports.is_empty() && module.imports.is_empty() {
        return None;
    }
    let mut all = module.exports.clone();
    let again: Option<Vec<String>> = module
        .imports
        .iter()
        .filter(|import| import.again)
        .map(|import| import.target.clone())
        .collect();
    for target in again? {
        let mut more = exports(&target, modules, others, above)?;
        more.remove("default");
        all.extend(more);
    }
    Some(all)
}

/// A module that only unused imports lead to: the bundler has not read it.
fn unread(id: &str) -> Option<Module> {
    let text = match sdk::load(id) {
        Some(text) => text.to_owned(),
        None if is_code(id) => std::fs::read_to_string(id).ok()?,
        None => return None,
    };
    let name = id.trim_start_matches('\0');
    parsed(name, &text, |program| Some(read(program)))
}

fn is_code(id: &str) -> bool {
    let extension = Path::new(id).extension().and_then(|e| e.to_str());
    !id.contains("/node_modules/")
        && matches!(extension, Some("ts" | "tsx" | "mts" | "js" | "jsx" | "mjs"))
}
