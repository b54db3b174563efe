//! Finds the words of the source that a problem is about. Only asked when there is a problem.

use std::{ops::Range, sync::Arc};

use notation_model::Origin;
use oxc::{
    ast::ast::{
        Argument, ArrowFunctionExpression, AwaitExpression, BindingIdentifier, BindingPattern,
        Declaration, ExportDefaultDeclarationKind, ExportSpecifier, Expression, Function,
        Statement, VariableDeclaration,
    },
    ast_visit::Visit,
    span::{GetSpan, Span},
    syntax::scope::ScopeFlags,
};

use crate::{
    call_index::{Part, member_of},
    raw::RawStep,
    source::{Place, SourceFile, Sources},
    syntax::parsed,
};

/// The place of a member of the object that is given to the call at `origin`. As deep as the
/// source spells it out; the call itself when nothing of it is spelt out there.
pub(crate) fn member(
    sources: &Sources,
    origin: &Origin,
    path: &[RawStep],
    part: Part,
) -> Option<Place> {
    let file = sources.get(&origin.file)?;
    let offset = file.offset_of(origin);
    Some(match file.calls().innermost(offset) {
        Some(call) => {
            let head = || call.head.clone();
            file.range(call.member(path, part).unwrap_or_else(head))
        }
        None => file.word(offset),
    })
}

/// The place of an argument (from 0) of the call at `origin`; the call when it has no such one.
pub(crate) fn argument(sources: &Sources, origin: &Origin, index: usize) -> Option<Place> {
    let file = sources.get(&origin.file)?;
    let offset = file.offset_of(origin);
    Some(match file.calls().innermost(offset) {
        Some(call) => {
            let given = call.arguments.get(index);
            file.range(given.unwrap_or(&call.head).clone())
        }
        None => file.word(offset),
    })
}

/// The place of `.name` inside the call at `origin`, e.g. of a property that does not exist.
pub(crate) fn property(sources: &Sources, origin: &Origin, name: &str) -> Option<Place> {
    let file = sources.get(&origin.file)?;
    let offset = file.offset_of(origin);
    let calls = file.calls();
    Some(match calls.innermost(offset) {
        Some(call) => {
            let head = || call.head.clone();
            file.range(calls.property(call, name).unwrap_or_else(head))
        }
        None => file.word(offset),
    })
}

/// The place of a member of the file's default export, an object literal or the argument of a
/// call.
pub(crate) fn default_export(
    file: &Arc<SourceFile>,
    path: &[RawStep],
    part: Part,
) -> Option<Place> {
    let range = parsed(&file.name, &file.text, |program| {
        let exported = program.body.iter().find_map(|statement| match statement {
            Statement::ExportDefaultDeclaration(declaration) => Some(declaration),
            _ => None,
        })?;
        let object = match &exported.declaration {
            kind @ ExportDefaultDeclarationKind::CallExpression(call) => {
                match call.arguments.first().and_then(ArgumentExt::inner) {
                    Some(Expression::ObjectExpression(object)) => object,
                    _ => return Some(bytes(kind.span())),
                }
            }
            kind => match kind.as_expression().map(Expression::get_inner_expression) {
                Some(Expression::ObjectExpression(object)) => object,
                _ => return Some(bytes(kind.span())),
            },
        };
        let brace = Span::sized(object.span.start, 1);
        Some(member_of(object, path, part).unwrap_or_else(|| bytes(brace)))
    })?;
    Some(file.range(range))
}

/// The place of a named export.
pub(crate) fn export(file: &Arc<SourceFile>, name: &str) -> Option<Place> {
    let span = parsed(&file.name, &file.text, |program| {
        program.body.iter().find_map(|statement| match statement {
            Statement::ExportDefaultDeclaration(declaration) if name == "default" => {
                Some(declaration.span)
            }
            Statement::ExportDeclaration(exported) => {
                let mut finder = BindingFinder { name, found: None };
                finder.visit_declaration(&exported.declaration);
                finder.found
            }
            Statement::ExportNamedDeclaration(exported) => {
                of_specifiers(&exported.specifiers, name)
            }
            Statement::ExportFromDeclaration(exported) => of_specifiers(&exported.specifiers, name),
            _ => None,
        })
    })?;
    Some(file.span(span))
}

/// The place of `.property` in the value of a named export; the export when its value does not
/// spell it out.
pub(crate) fn export_property(file: &Arc<SourceFile>, name: &str, property: &str) -> Option<Place> {
    let value = parsed(&file.name, &file.text, |program| {
        let local = program.body.iter().find_map(|statement| match statement {
            Statement::ExportNamedDeclaration(exported) => {
                let mut specifiers = exported.specifiers.iter();
                let specifier = specifiers.find(|one| one.exported.name() == name)?;
                Some(specifier.local.name().to_string())
            }
            _ => None,
        });
        let local = local.as_deref().unwrap_or(name);
        program.body.iter().find_map(|statement| match statement {
            Statement::ExportDefaultDeclaration(declaration) if local == "default" => {
                Some(bytes(declaration.span))
            }
            Statement::VariableDeclaration(variables) => value_of(variables, local),
            Statement::ExportDeclaration(exported) => match &exported.declaration {
                Declaration::VariableDeclaration(variables) => value_of(variables, local),
                _ => None,
            },
            _ => None,
        })
    });
    let found = value.and_then(|value| file.calls().property_within(&value, property));
    match found {
        Some(range) => Some(file.range(range)),
        None => export(file, name),
    }
}

fn value_of(variables: &VariableDeclaration<'_>, name: &str) -> Option<Range<usize>> {
    let mut variables = variables.declarations.iter();
    let of_name = |id: &BindingPattern<'_>| id.get_identifier_name().is_some_and(|id| id == name);
    let variable = variables.find(|variable| of_name(&variable.id))?;
    variable.init.as_ref().map(|value| bytes(value.span()))
}

fn of_specifiers(specifiers: &[ExportSpecifier<'_>], name: &str) -> Option<Span> {
    specifiers
        .iter()
        .find(|specifier| specifier.exported.name() == name)
        .map(|specifier| specifier.span)
}

/// Every `await` of a module that is not inside a function.
pub(crate) fn top_level_awaits(file: &Arc<SourceFile>) -> Vec<Place> {
    let spans = parsed(&file.name, &file.text, |program| {
        let mut finder = AwaitFinder { found: Vec::new() };
        finder.visit_program(program);
        Some(finder.found)
    });
    spans
        .unwrap_or_default()
        .into_iter()
        .map(|span| file.span(span))
        .collect()
}

trait ArgumentExt<'a> {
    /// The expression without parentheses, `as` and `satisfies`.
    fn inner(&self) -> Option<&Expression<'a>>;
}

impl<'a> ArgumentExt<'a> for Argument<'a> {
    fn inner(&self) -> Option<&Expression<'a>> {
        self.as_expression().map(Expression::get_inner_expression)
    }
}

fn bytes(span: Span) -> Range<usize> {
    span.start as usize..span.end as usize
}

struct BindingFinder<'n> {
    name: &'n str,
    found: Option<Span>,
}

impl<'a> Visit<'a> for BindingFinder<'_> {
    fn visit_binding_identifier(&mut self, it: &BindingIdentifier<'a>) {
        if self.found.is_none() && it.name == self.name {
            self.found = Some(it.span);
        }
    }
}

struct AwaitFinder {
    found: Vec<Span>,
}

impl<'a> Visit<'a> for AwaitFinder {
    fn visit_await_expression(&mut self, it: &AwaitExpression<'a>) {
        self.found.push(it.span);
    }

    // An `await` inside a function is not the module's.
    fn visit_function(&mut self, _: &Function<'a>, _: ScopeFlags) {}

    fn visit_arrow_function_expression(&mut self, _: &ArrowFunctionExpression<'a>) {}
}
