//! Finds the words of the source that a problem is about. Only asked when there is a problem.

use std::{path::Path, sync::Arc};

use notation_model::Origin;
use oxc::{
    allocator::Allocator,
    ast::ast::{
        Argument, ArrowFunctionExpression, AwaitExpression, BindingIdentifier, CallExpression,
        ExportDefaultDeclarationKind, ExportSpecifier, Expression, Function, NewExpression,
        ObjectExpression, ObjectPropertyKind, Program, Statement, StaticMemberExpression,
    },
    ast_visit::{Visit, walk},
    parser::Parser,
    span::{GetSpan, SourceType, Span},
    syntax::scope::ScopeFlags,
};

use crate::{
    problem::Place,
    raw::RawStep,
    source::{SourceFile, Sources},
};

/// Which end of a member is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// Its name.
    Key,
    /// What it is given.
    Value,
}

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
    let found = parsed(&file, |program| {
        let call = innermost_call(program, offset, path, part)?;
        Some(call.member.unwrap_or(call.head))
    });
    Some(match found {
        Some(span) => file.span(span),
        None => file.word(offset),
    })
}

/// The place of `.name` inside the call at `origin`, e.g. of a property that does not exist.
pub(crate) fn property(sources: &Sources, origin: &Origin, name: &str) -> Option<Place> {
    let file = sources.get(&origin.file)?;
    let offset = file.offset_of(origin);
    let found = parsed(&file, |program| {
        let call = innermost_call(program, offset, &[], Part::Key)?;
        let mut finder = PropertyFinder {
            within: call.whole,
            name,
            found: None,
        };
        finder.visit_program(program);
        Some(finder.found.unwrap_or(call.head))
    });
    Some(match found {
        Some(span) => file.span(span),
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
    let span = parsed(file, |program| {
        let exported = program.body.iter().find_map(|statement| match statement {
            Statement::ExportDefaultDeclaration(declaration) => Some(declaration),
            _ => None,
        })?;
        let object = match &exported.declaration {
            kind @ ExportDefaultDeclarationKind::CallExpression(call) => {
                match call.arguments.first().and_then(ArgumentExt::inner) {
                    Some(Expression::ObjectExpression(object)) => object,
                    _ => return Some(kind.span()),
                }
            }
            kind => match kind.as_expression().map(Expression::get_inner_expression) {
                Some(Expression::ObjectExpression(object)) => object,
                _ => return Some(kind.span()),
            },
        };
        Some(follow(object, path, part).unwrap_or(Span::sized(object.span.start, 1)))
    })?;
    Some(file.span(span))
}

/// The place of a named export.
pub(crate) fn export(file: &Arc<SourceFile>, name: &str) -> Option<Place> {
    let span = parsed(file, |program| {
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

fn of_specifiers(specifiers: &[ExportSpecifier<'_>], name: &str) -> Option<Span> {
    specifiers
        .iter()
        .find(|specifier| specifier.exported.name() == name)
        .map(|specifier| specifier.span)
}

/// Every `await` of a module that is not inside a function.
pub(crate) fn top_level_awaits(file: &Arc<SourceFile>) -> Vec<Place> {
    let spans = parsed(file, |program| {
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

/// Every call and construction of a file, by start.
pub(crate) fn calls(file: &SourceFile) -> Vec<CallSite> {
    let calls = parsed(file, |program| {
        let mut finder = CallLister { found: Vec::new() };
        finder.visit_program(program);
        Some(finder.found)
    });
    let mut calls = calls.unwrap_or_default();
    calls.sort_by_key(|call| call.whole.start);
    let mut reach = 0;
    for call in &mut calls {
        reach = reach.max(call.whole.end);
        call.reach = reach;
    }
    calls
}

/// A call or construction as it is written.
#[derive(Debug)]
pub(crate) struct CallSite {
    /// Bytes from start to end.
    pub whole: std::ops::Range<usize>,
    /// Farthest end of this and every earlier one: where a search backwards may stop.
    pub reach: usize,
    /// Where a person would say it is: its start, or the method's name in a chain of calls.
    pub at: usize,
    /// Last name of what is called: `bind` of `a.bind(..)`.
    pub name: String,
    /// `new` or `super`.
    pub constructs: bool,
}

fn parsed<T>(file: &SourceFile, read: impl FnOnce(&Program<'_>) -> Option<T>) -> Option<T> {
    let allocator = Allocator::default();
    let kind = SourceType::from_path(Path::new(&*file.name)).unwrap_or_else(|_| SourceType::ts());
    read(&Parser::new(&allocator, &file.text, kind).parse().program)
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

fn follow(object: &ObjectExpression<'_>, path: &[RawStep], part: Part) -> Option<Span> {
    let (RawStep::Key(key), rest) = path.split_first()? else {
        return None;
    };
    let property = object
        .properties
        .iter()
        .find_map(|property| match property {
            ObjectPropertyKind::ObjectProperty(property)
                if property.key.static_name().as_deref() == Some(key) =>
            {
                Some(property)
            }
            _ => None,
        })?;
    if rest.is_empty() {
        return Some(match part {
            Part::Key => property.key.span(),
            Part::Value => property.value.span(),
        });
    }
    let value = property.value.get_inner_expression();
    Some(into(value, rest, part).unwrap_or(value.span()))
}

fn into(value: &Expression<'_>, path: &[RawStep], part: Part) -> Option<Span> {
    match (value, path) {
        (Expression::ObjectExpression(object), _) => follow(object, path, part),
        (Expression::ArrayExpression(array), [RawStep::Index(index), rest @ ..]) => {
            let item = array
                .elements
                .get(*index)?
                .as_expression()?
                .get_inner_expression();
            Some(into(item, rest, part).unwrap_or(item.span()))
        }
        _ => None,
    }
}

/// Finds the smallest call or construction around an offset, and reads its arguments.
struct CallFinder<'p> {
    offset: u32,
    path: &'p [RawStep],
    part: Part,
    best: Option<Call>,
}

#[derive(Clone, Copy)]
struct Call {
    whole: Span,
    /// From the start to the opening parenthesis.
    head: Span,
    /// The member that was asked for.
    member: Option<Span>,
}

fn innermost_call(
    program: &Program<'_>,
    offset: usize,
    path: &[RawStep],
    part: Part,
) -> Option<Call> {
    let mut finder = CallFinder {
        offset: offset as u32,
        path,
        part,
        best: None,
    };
    finder.visit_program(program);
    finder.best
}

impl CallFinder<'_> {
    fn offer(&mut self, whole: Span, callee: Span, arguments: &[Argument<'_>]) {
        let around = whole.start <= self.offset && self.offset < whole.end;
        let smaller = self
            .best
            .is_none_or(|best| whole.size() < best.whole.size());
        if !around || !smaller {
            return;
        }
        let object = arguments
            .iter()
            .find_map(|argument| match argument.inner() {
                Some(Expression::ObjectExpression(object)) => Some(&**object),
                _ => None,
            });
        self.best = Some(Call {
            whole,
            head: Span::new(whole.start, callee.end),
            member: object.and_then(|object| follow(object, self.path, self.part)),
        });
    }
}

impl<'a> Visit<'a> for CallFinder<'_> {
    fn visit_new_expression(&mut self, it: &NewExpression<'a>) {
        self.offer(it.span, it.callee.span(), &it.arguments);
        walk::walk_new_expression(self, it);
    }

    fn visit_call_expression(&mut self, it: &CallExpression<'a>) {
        self.offer(it.span, it.callee.span(), &it.arguments);
        walk::walk_call_expression(self, it);
    }
}

struct PropertyFinder<'n> {
    within: Span,
    name: &'n str,
    found: Option<Span>,
}

impl<'a> Visit<'a> for PropertyFinder<'_> {
    fn visit_static_member_expression(&mut self, it: &StaticMemberExpression<'a>) {
        let inside = self.within.start <= it.span.start && it.span.end <= self.within.end;
        if self.found.is_none() && inside && it.property.name == self.name {
            self.found = Some(it.property.span);
        }
        walk::walk_static_member_expression(self, it);
    }
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

struct CallLister {
    found: Vec<CallSite>,
}

impl CallLister {
    fn add(&mut self, whole: Span, callee: &Expression<'_>, new: bool) {
        let (name, chained) = match callee.get_inner_expression() {
            Expression::Identifier(id) => (id.name.as_str(), None),
            Expression::StaticMemberExpression(member) => {
                let chained = matches!(
                    member.object.get_inner_expression(),
                    Expression::CallExpression(_)
                );
                (
                    member.property.name.as_str(),
                    chained.then_some(member.property.span.start),
                )
            }
            _ => ("", None),
        };
        self.found.push(CallSite {
            whole: whole.start as usize..whole.end as usize,
            reach: 0,
            at: chained.unwrap_or(whole.start) as usize,
            name: name.to_owned(),
            constructs: new || matches!(callee, Expression::Super(_)),
        });
    }
}

impl<'a> Visit<'a> for CallLister {
    fn visit_new_expression(&mut self, it: &NewExpression<'a>) {
        self.add(it.span, &it.callee, true);
        walk::walk_new_expression(self, it);
    }

    fn visit_call_expression(&mut self, it: &CallExpression<'a>) {
        self.add(it.span, &it.callee, false);
        walk::walk_call_expression(self, it);
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
