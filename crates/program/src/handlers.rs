//! Which events a worker's module handles, told from its text: it is never run here.

use oxc::{
    allocator::Allocator,
    ast::ast::{
        BindingPattern, ExportDefaultDeclarationKind, Expression, ObjectExpression,
        ObjectPropertyKind, Program, Statement,
    },
    parser::Parser,
    span::{GetSpan, SourceType},
};

/// Handlers that the edge host knows, in the order it lists them.
pub(crate) const HANDLERS: [&str; 3] = ["fetch", "scheduled", "queue"];

/// Why the handlers cannot be told, and where in the module (bytes).
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Unreadable {
    pub message: String,
    pub offset: u32,
}

/// The handlers of an ES module in JavaScript: members of the object literal that it exports as
/// default, directly or through a constant.
pub(crate) fn handlers(module: &str) -> Result<Vec<&'static str>, Unreadable> {
    let allocator = Allocator::default();
    let parsed = Parser::new(&allocator, module, SourceType::mjs()).parse();
    let object = default_object(&parsed.program)?;
    let mut found = Vec::new();
    collect(&parsed.program, object, &mut found, 0)?;
    let handlers: Vec<_> = HANDLERS
        .into_iter()
        .filter(|handler| found.iter().any(|name| name == handler))
        .collect();
    if handlers.is_empty() {
        return Err(Unreadable {
            message: "the default export has none of the handlers `fetch`, `scheduled` and `queue`"
                .into(),
            offset: object.span.start,
        });
    }
    Ok(handlers)
}

fn default_object<'b, 'a>(
    program: &'b Program<'a>,
) -> Result<&'b ObjectExpression<'a>, Unreadable> {
    for statement in &program.body {
        match statement {
            Statement::ExportDefaultDeclaration(exported) => {
                return match exported.declaration.as_expression() {
                    Some(value) => object_of(program, value, 0),
                    None => Err(not_an_object(
                        match &exported.declaration {
                            ExportDefaultDeclarationKind::ClassDeclaration(_) => "a class",
                            ExportDefaultDeclarationKind::FunctionDeclaration(_) => "a function",
                            _ => "a declaration",
                        },
                        exported.span.start,
                    )),
                };
            }
            Statement::ExportNamedDeclaration(exported) => {
                for specifier in &exported.specifiers {
                    if specifier.exported.name() == "default" {
                        return named(program, &specifier.local.name(), specifier.span.start, 0);
                    }
                }
            }
            _ => {}
        }
    }
    Err(Unreadable {
        message: "the module has no default export".into(),
        offset: 0,
    })
}

fn object_of<'b, 'a>(
    program: &'b Program<'a>,
    value: &'b Expression<'a>,
    depth: u8,
) -> Result<&'b ObjectExpression<'a>, Unreadable> {
    let offset = value.span().start;
    match value.get_inner_expression() {
        Expression::ObjectExpression(object) => Ok(object),
        Expression::Identifier(name) if depth < 16 => named(program, &name.name, offset, depth + 1),
        Expression::NewExpression(_) => Err(not_an_object("an instance of a class", offset)),
        Expression::CallExpression(_) => Err(not_an_object("what a call returns", offset)),
        Expression::ClassExpression(_) => Err(not_an_object("a class", offset)),
        Expression::ArrowFunctionExpression(_) | Expression::FunctionExpression(_) => {
            Err(not_an_object("a function", offset))
        }
        _ => Err(not_an_object("not an object literal", offset)),
    }
}

/// What a top-level constant of that name is.
fn named<'b, 'a>(
    program: &'b Program<'a>,
    name: &str,
    offset: u32,
    depth: u8,
) -> Result<&'b ObjectExpression<'a>, Unreadable> {
    for statement in &program.body {
        match statement {
            Statement::VariableDeclaration(declaration) => {
                for declarator in &declaration.declarations {
                    let BindingPattern::BindingIdentifier(id) = &declarator.id else {
                        continue;
                    };
                    if let Some(value) = declarator.init.as_ref().filter(|_| id.name == name) {
                        return object_of(program, value, depth);
                    }
                }
            }
            Statement::ClassDeclaration(class)
                if class.id.as_ref().is_some_and(|id| id.name == name) =>
            {
                return Err(not_an_object("a class", class.span.start));
            }
            Statement::FunctionDeclaration(function)
                if function.id.as_ref().is_some_and(|id| id.name == name) =>
            {
                return Err(not_an_object("a function", function.span.start));
            }
            _ => {}
        }
    }
    Err(not_an_object("not an object literal", offset))
}

fn collect(
    program: &Program<'_>,
    object: &ObjectExpression<'_>,
    found: &mut Vec<String>,
    depth: u8,
) -> Result<(), Unreadable> {
    for property in &object.properties {
        match property {
            ObjectPropertyKind::ObjectProperty(property) => {
                let nothing = matches!(
                    property.value.get_inner_expression(),
                    Expression::NullLiteral(_)
                ) || property.value.get_inner_expression().is_undefined();
                match property.key.static_name() {
                    Some(name) if nothing => found.retain(|other| *other != name),
                    Some(name) => found.push(name.into_owned()),
                    None => {
                        return Err(Unreadable {
                            message: "a member of the default export has a computed name".into(),
                            offset: property.span.start,
                        });
                    }
                }
            }
            ObjectPropertyKind::SpreadProperty(spread) if depth < 16 => {
                let inner = object_of(program, &spread.argument, 0)?;
                collect(program, inner, found, depth + 1)?;
            }
            ObjectPropertyKind::SpreadProperty(spread) => {
                return Err(not_an_object("spread too deep", spread.span.start));
            }
        }
    }
    Ok(())
}

fn not_an_object(what: &str, offset: u32) -> Unreadable {
    Unreadable {
        message: format!("the default export is {what}, so its handlers cannot be told"),
        offset,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(module: &str) -> Result<Vec<&'static str>, String> {
        handlers(module).map_err(|unreadable| unreadable.message)
    }

    #[test]
    fn members_of_an_object_literal_are_handlers() {
        assert_eq!(
            read("export default { async fetch() {}, other: 1 }"),
            Ok(vec!["fetch"])
        );
        assert_eq!(
            read("const a = { queue() {}, fetch: x.fetch }; export { a as default };"),
            Ok(vec!["fetch", "queue"])
        );
        assert_eq!(
            read(
                "const base = { fetch() {} }; var d = { ...base, 'scheduled': f }; export { d as default }"
            ),
            Ok(vec!["fetch", "scheduled"])
        );
    }

    #[test]
    fn what_the_text_does_not_tell_is_refused() {
        for (module, word) in [
            ("class A { fetch() {} } export default new A()", "instance"),
            ("class A {} export { A as default }", "a class"),
            ("export default make()", "call"),
            ("export const fetch = 1", "no default export"),
            (
                "export default { fetch: undefined }",
                "none of the handlers",
            ),
            ("export default { [name]() {} }", "computed"),
            ("export default () => {}", "a function"),
        ] {
            let message = read(module).expect_err(module);
            assert!(message.contains(word), "{module}: {message}");
        }
    }
}
