//! A name that is used before its declaration has run. What a newcomer writes first is two
//! resources that name each other in their configs: the way out is a contribution.

use std::ops::Range;

use notation_model::Origin;
use oxc::{
    ast::ast::{
        BindingIdentifier, Expression, ObjectExpression, ObjectPropertyKind, VariableDeclarator,
    },
    ast_visit::{Visit, walk},
    span::{GetSpan, Span},
};

use crate::{codes, problem::Problem, source::Sources, syntax::parsed};

/// The value of a field longer than this is not repeated in the advice, in bytes.
const SHOWN_VALUE_BYTES: usize = 80;

/// What to say of the name at `at`; the place is added by who knows the callers.
pub(crate) fn explain(at: &Origin, sources: &Sources) -> Option<Problem> {
    let file = sources.get(&at.file)?;
    let place = sources.place(at)?;
    let offset = place.offset;
    let name = file.text.get(offset..offset + place.length)?;
    let found = parsed(&file.name, &file.text, |program| {
        let mut reader = Reader {
            name,
            offset,
            giving: None,
            declared: None,
        };
        reader.visit_program(program);
        Some((reader.giving, reader.declared))
    });
    let (giving, declared) = found.unwrap_or_default();
    let help = match giving {
        Some(giving) => {
            let value = file.text.get(giving.value.clone()).unwrap_or_default();
            repair(name, &giving, value)
        }
        None => format!(
            "declare `{name}` first; where two resources refer to each other, declare both and \
             add one of the references after that: `a.contribute({{ field: ... }})`"
        ),
    };
    let problem = Problem::new(
        codes::USED_TOO_EARLY,
        format!("`{name}` is used before it is declared"),
    );
    let declared = declared.map(|range| file.range(range));
    Some(
        problem
            .help(help)
            .at(Some(place))
            .also("declared here", declared),
    )
}

fn repair(name: &str, giving: &Giving, value: &str) -> String {
    let Giving { owner, field, .. } = giving;
    let short = value.len() <= SHOWN_VALUE_BYTES && !value.contains('\n');
    let value = if short { value } else { "..." };
    let contribute = format!("`{owner}.contribute({{ {field}: {value} }})`");
    if name == owner {
        return format!(
            "a config can only name what was declared before it: leave `{field}` out of it, and \
             write after the declaration: {contribute}"
        );
    }
    format!(
        "a config can only name what was declared before it: declare `{name}` before `{owner}`, \
         or, when they refer to each other, leave `{field}` out of the config of `{owner}` and \
         write after both: {contribute}"
    )
}

/// The field of a config that uses the name.
struct Giving {
    /// The variable that holds the resource.
    owner: String,
    field: String,
    value: Range<usize>,
}

struct Reader<'n> {
    name: &'n str,
    offset: usize,
    giving: Option<Giving>,
    /// The nearest declaration of the name that comes later, or around the use.
    declared: Option<Range<usize>>,
}

impl Reader<'_> {
    fn holds(&self, span: Span) -> bool {
        bytes(span).contains(&self.offset)
    }

    /// The field of `new Type({ config: { field: .. } })` around the use.
    fn field(&self, made: &Expression<'_>) -> Option<(String, Range<usize>)> {
        let Expression::NewExpression(made) = made.get_inner_expression() else {
            return None;
        };
        let options = made.arguments.first()?.as_expression()?;
        let (name, config) = self.member(object(options)?)?;
        if name != "config" {
            return None;
        }
        let (field, value) = self.member(object(config)?)?;
        Some((field, bytes(value.span())))
    }

    /// The member of an object around the use.
    fn member<'e, 'a>(
        &self,
        object: &'e ObjectExpression<'a>,
    ) -> Option<(String, &'e Expression<'a>)> {
        object
            .properties
            .iter()
            .find_map(|property| match property {
                ObjectPropertyKind::ObjectProperty(property) if self.holds(property.span) => {
                    Some((property.key.static_name()?.into_owned(), &property.value))
                }
                ObjectPropertyKind::ObjectProperty(_) | ObjectPropertyKind::SpreadProperty(_) => {
                    None
                }
            })
    }
}

impl<'a> Visit<'a> for Reader<'_> {
    fn visit_variable_declarator(&mut self, it: &VariableDeclarator<'a>) {
        if self.holds(it.span)
            && let Some(init) = &it.init
            && let Some((field, value)) = self.field(init)
            && let Some(owner) = it.id.get_identifier_name()
        {
            self.giving = Some(Giving {
                owner: owner.to_string(),
                field,
                value,
            });
        }
        if self.declared.is_none() && it.span.end as usize > self.offset {
            let mut binding = Binding {
                name: self.name,
                found: None,
            };
            binding.visit_binding_pattern(&it.id);
            self.declared = binding.found;
        }
        walk::walk_variable_declarator(self, it);
    }
}

struct Binding<'n> {
    name: &'n str,
    found: Option<Range<usize>>,
}

impl<'a> Visit<'a> for Binding<'_> {
    fn visit_binding_identifier(&mut self, it: &BindingIdentifier<'a>) {
        if self.found.is_none() && it.name == self.name {
            self.found = Some(bytes(it.span));
        }
    }
}

fn object<'e, 'a>(value: &'e Expression<'a>) -> Option<&'e ObjectExpression<'a>> {
    match value.get_inner_expression() {
        Expression::ObjectExpression(object) => Some(object),
        _ => None,
    }
}

fn bytes(span: Span) -> Range<usize> {
    span.start as usize..span.end as usize
}
