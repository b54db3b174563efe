//! Every call of a source file with what it is given, read once per file: places are asked for
//! once per resource, and more often when much is wrong.

use std::ops::Range;

use oxc::{
    ast::ast::{
        Argument, ArrayExpression, CallExpression, Expression, NewExpression, ObjectExpression,
        ObjectPropertyKind, StaticMemberExpression,
    },
    ast_visit::{Visit, walk},
    span::{GetSpan, Span},
};

use crate::{raw::RawStep, syntax::parsed};

/// Which end of a member is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// Its name.
    Key,
    /// What it is given.
    Value,
}

/// Calls and property names of one file.
#[derive(Debug, Default)]
pub(crate) struct CallIndex {
    /// By start.
    calls: Vec<CallSite>,
    /// Names after a dot, by start.
    properties: Vec<(Range<usize>, String)>,
}

/// A call or construction as it is written. All ranges in bytes.
#[derive(Debug)]
pub(crate) struct CallSite {
    pub whole: Range<usize>,
    /// From the start to the opening parenthesis.
    pub head: Range<usize>,
    /// Where a person would say it is: its start, or the method's name in a chain of calls.
    pub at: usize,
    /// Last name of what is called: `bind` of `a.bind(..)`.
    name: String,
    /// `new` or `super`.
    constructs: bool,
    /// Every argument.
    pub arguments: Vec<Range<usize>>,
    /// The first argument that is an object literal.
    argument: Literal,
    /// Farthest end of this and every earlier one: where a search backwards may stop.
    reach: usize,
}

/// What a value is spelt out as.
#[derive(Debug)]
enum Literal {
    Object(Vec<Member>),
    List(Vec<(Range<usize>, Literal)>),
    Other,
}

#[derive(Debug)]
struct Member {
    name: String,
    key: Range<usize>,
    value: Range<usize>,
    literal: Literal,
}

impl CallIndex {
    /// Reads a file; one that cannot be parsed has no calls.
    pub fn of(name: &str, text: &str) -> CallIndex {
        let index = parsed(name, text, |program| {
            let mut index = CallIndex::default();
            index.visit_program(program);
            Some(index)
        });
        let mut index = index.unwrap_or_default();
        index.calls.sort_by_key(|call| call.whole.start);
        index.properties.sort_by_key(|(range, _)| range.start);
        let mut reach = 0;
        for call in &mut index.calls {
            reach = reach.max(call.whole.end);
            call.reach = reach;
        }
        index
    }

    /// The smallest call around an offset.
    pub fn innermost(&self, offset: usize) -> Option<&CallSite> {
        self.smallest(offset, |_| true)
    }

    /// The call around an offset that called `callee`. The evaluator tells the line and column of
    /// some word inside the call's arguments; what it called is known by name.
    pub fn calling(&self, offset: usize, callee: &str) -> Option<&CallSite> {
        // The bundler makes equal names different by a suffix.
        let callee = callee.split('$').next().unwrap_or(callee);
        self.smallest(offset, |call| call.name == callee)
            .or_else(|| self.smallest(offset, |call| call.constructs))
            .or_else(|| self.innermost(offset))
    }

    /// `name` after a dot somewhere inside a call.
    pub fn property(&self, call: &CallSite, name: &str) -> Option<Range<usize>> {
        self.property_within(&call.whole, name)
    }

    /// `name` after a dot somewhere in a part of the file.
    pub fn property_within(&self, part: &Range<usize>, name: &str) -> Option<Range<usize>> {
        let first = self
            .properties
            .partition_point(|(range, _)| range.start < part.start);
        self.properties[first..]
            .iter()
            .take_while(|(range, _)| range.end <= part.end)
            .find(|(_, property)| property == name)
            .map(|(range, _)| range.clone())
    }

    fn smallest(&self, offset: usize, wanted: impl Fn(&CallSite) -> bool) -> Option<&CallSite> {
        let before = self
            .calls
            .partition_point(|call| call.whole.start <= offset);
        self.calls[..before]
            .iter()
            .rev()
            .take_while(|call| call.reach > offset)
            .filter(|call| call.whole.contains(&offset) && wanted(call))
            .min_by_key(|call| call.whole.len())
    }

    fn add(&mut self, whole: Span, callee: &Expression<'_>, new: bool, arguments: &[Argument<'_>]) {
        let (name, chained) = match callee.get_inner_expression() {
            Expression::Identifier(id) => (id.name.as_str(), None),
            Expression::StaticMemberExpression(member) => {
                let chained = matches!(
                    member.object.get_inner_expression(),
                    Expression::CallExpression(_)
                );
                let name = &member.property;
                (name.name.as_str(), chained.then_some(name.span.start))
            }
            _ => ("", None),
        };
        let argument = arguments
            .iter()
            .filter_map(|argument| argument.as_expression())
            .find_map(|argument| match argument.get_inner_expression() {
                Expression::ObjectExpression(object) => Some(object_literal(object)),
                _ => None,
            });
        self.calls.push(CallSite {
            whole: range(whole),
            head: range(Span::new(whole.start, callee.span().end)),
            at: chained.unwrap_or(whole.start) as usize,
            name: name.to_owned(),
            constructs: new || matches!(callee, Expression::Super(_)),
            arguments: arguments
                .iter()
                .map(|argument| range(argument.span()))
                .collect(),
            argument: argument.unwrap_or(Literal::Other),
            reach: 0,
        });
    }
}

impl CallSite {
    /// A member of what the call is given, as deep as the source spells it out.
    pub fn member(&self, path: &[RawStep], part: Part) -> Option<Range<usize>> {
        self.argument.follow(path, part)
    }
}

impl Literal {
    fn follow(&self, path: &[RawStep], part: Part) -> Option<Range<usize>> {
        let (step, rest) = path.split_first()?;
        match (self, step) {
            (Literal::Object(members), RawStep::Key(key)) => {
                let member = members.iter().find(|member| member.name == *key)?;
                if rest.is_empty() && part == Part::Key {
                    return Some(member.key.clone());
                }
                let inner = member.literal.follow(rest, part);
                Some(inner.unwrap_or_else(|| member.value.clone()))
            }
            (Literal::List(items), RawStep::Index(index)) => {
                let (range, literal) = items.get(*index)?;
                Some(literal.follow(rest, part).unwrap_or_else(|| range.clone()))
            }
            (Literal::Object(_) | Literal::List(_) | Literal::Other, _) => None,
        }
    }
}

fn literal(value: &Expression<'_>) -> Literal {
    match value.get_inner_expression() {
        Expression::ObjectExpression(object) => object_literal(object),
        Expression::ArrayExpression(list) => list_literal(list),
        _ => Literal::Other,
    }
}

fn object_literal(object: &ObjectExpression<'_>) -> Literal {
    let members = object.properties.iter().filter_map(|property| {
        let ObjectPropertyKind::ObjectProperty(property) = property else {
            return None;
        };
        Some(Member {
            name: property.key.static_name()?.into_owned(),
            key: range(property.key.span()),
            value: range(property.value.span()),
            literal: literal(&property.value),
        })
    });
    Literal::Object(members.collect())
}

fn list_literal(list: &ArrayExpression<'_>) -> Literal {
    let items = list.elements.iter().map(|item| {
        let inner = item.as_expression().map_or(Literal::Other, literal);
        (range(item.span()), inner)
    });
    Literal::List(items.collect())
}

fn range(span: Span) -> Range<usize> {
    span.start as usize..span.end as usize
}

/// The same, for an object literal that stands by itself.
pub(crate) fn member_of(
    object: &ObjectExpression<'_>,
    path: &[RawStep],
    part: Part,
) -> Option<Range<usize>> {
    object_literal(object).follow(path, part)
}

impl<'a> Visit<'a> for CallIndex {
    fn visit_new_expression(&mut self, it: &NewExpression<'a>) {
        self.add(it.span, &it.callee, true, &it.arguments);
        walk::walk_new_expression(self, it);
    }

    fn visit_call_expression(&mut self, it: &CallExpression<'a>) {
        self.add(it.span, &it.callee, false, &it.arguments);
        walk::walk_call_expression(self, it);
    }

    fn visit_static_member_expression(&mut self, it: &StaticMemberExpression<'a>) {
        self.properties
            .push((range(it.property.span), it.property.name.to_string()));
        walk::walk_static_member_expression(self, it);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_deep_inside_is_found_as_far_as_it_is_written() {
        let text = "make(new Thing({ id: 'a', list: [1, { x: shared }] }), b).bind('N', c());";
        let index = CallIndex::of("x.ts", text);
        let call = index.innermost(text.find("shared").unwrap()).unwrap();
        let at = |path: &[RawStep], part| call.member(path, part).map(|range| &text[range]);
        let key = |name: &str| RawStep::Key(name.into());
        assert_eq!(at(&[key("id")], Part::Value), Some("'a'"));
        let x = [key("list"), RawStep::Index(1), key("x"), key("deeper")];
        assert_eq!(at(&x, Part::Value), Some("shared"));
        assert_eq!(at(&x[..3], Part::Key), Some("x"));
        assert_eq!(at(&[key("none")], Part::Key), None);
        // The evaluator's position lies in the last argument; the callee decides.
        let bind = index.calling(text.find("c()").unwrap(), "bind").unwrap();
        assert_eq!(&text[bind.at..bind.at + 4], "bind");
    }
}
