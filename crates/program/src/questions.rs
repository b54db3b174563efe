//! Where a program asks what a value is: conditions, comparisons, sums, look-ups. Each asked value
//! goes through a function of the sandbox, which refuses what only deploying can tell. The language
//! itself asks no object whether it is true, so a reference would silently be (ADR 0007).
//!
//! Works on the tree that the bundler has parsed anyway. Every node keeps its place, so that the
//! source map stays as it was.

use oxc::{
    allocator::{Allocator, ArenaVec, CloneIn, GetAllocator, ReplaceWith},
    ast::{
        ast::{
            Argument, AssignmentOperator, AssignmentTarget, BinaryExpression, BinaryOperator,
            CallExpression, ComputedMemberExpression, ConditionalExpression, DoWhileStatement,
            Expression, ForInStatement, ForOfStatement, ForStatement, IfStatement,
            LogicalExpression, LogicalOperator, NumberBase, Program, SpreadElement, Statement,
            StaticMemberExpression, SwitchStatement, TSEnumDeclaration, UnaryExpression,
            UnaryOperator, WhileStatement,
        },
        builder::AstBuilder,
    },
    ast_visit::{VisitJsMut, walk_js_mut as walk},
    span::{GetSpan, Span},
};

use crate::asking;

/// Name of the sandbox's function: `(question, value, from, to, name)`, gives the value back.
/// `sandbox/prelude.js` defines it.
const ASK: &str = "__notation_ask";
/// Name of a function of the sandbox that is called in every turn of a loop: an evaluation that is
/// stopped there knows where it was, also when the loop does nothing else.
const TURN: &str = "__notation_turn";

/// Makes every question of a module go through the sandbox.
pub(crate) fn watch<'a>(program: &mut Program<'a>, allocator: &'a Allocator) {
    let mut watcher = Watcher {
        ast: AstBuilder::new(allocator),
    };
    watcher.visit_program(program);
}

struct Watcher<'a> {
    ast: AstBuilder<'a>,
}

impl<'a> Watcher<'a> {
    /// `value` becomes `ask(question, value, from, to)`, unless its text tells what it is.
    fn ask(&self, question: &'static str, value: &mut Expression<'a>) {
        self.ask_by(question, value, None);
    }

    fn ask_by(&self, question: &'static str, value: &mut Expression<'a>, name: Option<&str>) {
        // A list may hold references: what it is, is known; what it includes, is not.
        let is_list = matches!(value.get_inner_expression(), Expression::ArrayExpression(_));
        if is_plain(value) && !(is_list && question == "text") {
            return;
        }
        let span = value.get_inner_expression().span();
        value.replace_with(|value| self.asked(question, value, span, name));
    }

    fn asked(
        &self,
        question: &'static str,
        value: Expression<'a>,
        span: Span,
        name: Option<&str>,
    ) -> Expression<'a> {
        let ast = &self.ast;
        let number = |value: u32| {
            let value = f64::from(value);
            Argument::from(Expression::new_numeric_literal(
                span,
                value,
                None,
                NumberBase::Decimal,
                ast,
            ))
        };
        let text =
            |value: &'a str| Argument::from(Expression::new_string_literal(span, value, None, ast));
        let mut arguments = ArenaVec::from_array_in(
            [
                text(question),
                value.into(),
                number(span.start),
                number(span.end),
            ],
            ast,
        );
        if let Some(name) = name {
            arguments.push(text(ast.allocator().alloc_str(name)));
        }
        let callee = Expression::new_identifier(span, ASK, ast);
        Expression::new_call_expression(span, callee, None, arguments, false, ast)
    }

    /// What decides whether an expression is true: the expression, or the parts that it hands on.
    fn ask_test(&self, test: &mut Expression<'a>) {
        match test {
            Expression::ParenthesizedExpression(inner) => self.ask_test(&mut inner.expression),
            // The left side was asked where it stands.
            Expression::LogicalExpression(logical) => self.ask_test(&mut logical.right),
            Expression::ConditionalExpression(choice) => {
                self.ask_test(&mut choice.consequent);
                self.ask_test(&mut choice.alternate);
            }
            other => self.ask("decide", other),
        }
    }

    /// `typeof x`. A name that does not exist may be asked so and must not fail; a reference is a
    /// function to the language, so only what is one is looked at.
    fn ask_type(&self, it: &mut Expression<'a>) {
        let Expression::UnaryExpression(unary) = it else {
            return;
        };
        let Expression::Identifier(id) = unary.argument.get_inner_expression() else {
            self.ask("typeof", &mut unary.argument);
            return;
        };
        let (ast, span, name) = (&self.ast, id.span, id.name);
        let read = || Expression::new_identifier(span, name, ast);
        let kind_of =
            |value| Expression::new_unary_expression(span, UnaryOperator::Typeof, value, ast);
        let function = Expression::new_string_literal(span, "function", None, ast);
        let is_function = Expression::new_binary_expression(
            span,
            kind_of(read()),
            BinaryOperator::StrictEquality,
            function,
            ast,
        );
        let asked = kind_of(self.asked("typeof", read(), span, None));
        it.replace_with(|kind| {
            Expression::new_conditional_expression(span, is_function, asked, kind, ast)
        });
    }

    /// `x ||= y`, `x += y`: the target is read in front of the assignment.
    fn ask_target(&self, it: &mut Expression<'a>) {
        let Expression::AssignmentExpression(assignment) = it else {
            return;
        };
        let question = match assignment.operator {
            AssignmentOperator::LogicalAnd => "decide",
            AssignmentOperator::LogicalOr => "||",
            AssignmentOperator::LogicalNullish => "??",
            AssignmentOperator::Addition => "+",
            AssignmentOperator::Assign => return,
            _ => "number",
        };
        if matches!(question, "+" | "number") {
            self.ask(question, &mut assignment.right);
        }
        let Some(target) = self.readable(&assignment.left) else {
            return;
        };
        let span = assignment.span;
        let asked = self.asked(question, target, assignment.left.span(), None);
        it.replace_with(|assignment| {
            let both = ArenaVec::from_array_in([asked, assignment], &self.ast);
            Expression::new_sequence_expression(span, both, &self.ast)
        });
    }

    /// What an assignment's target is read as; `None` when reading it twice could do something.
    fn readable(&self, target: &AssignmentTarget<'a>) -> Option<Expression<'a>> {
        match target {
            AssignmentTarget::AssignmentTargetIdentifier(id) => {
                Some(Expression::new_identifier(id.span, id.name, &self.ast))
            }
            AssignmentTarget::StaticMemberExpression(member)
                if matches!(
                    member.object,
                    Expression::Identifier(_) | Expression::ThisExpression(_)
                ) =>
            {
                Some(Expression::StaticMemberExpression(
                    member.clone_in(self.ast.allocator()),
                ))
            }
            _ => None,
        }
    }

    /// The body of a loop begins with a place of its own.
    fn mark_turn(&self, body: &mut Statement<'a>, span: Span) {
        let ast = &self.ast;
        let turn = Expression::new_identifier(span, TURN, ast);
        let turn =
            Expression::new_call_expression(span, turn, None, ArenaVec::new_in(ast), false, ast);
        let turn = Statement::new_expression_statement(span, turn, ast);
        body.replace_with(|body| {
            let span = body.span();
            let mut all = ArenaVec::from_value_in(turn, ast);
            match body {
                Statement::BlockStatement(block) => all.extend(block.unbox().body),
                Statement::EmptyStatement(_) => {}
                other => all.push(other),
            }
            Statement::new_block_statement(span, all, ast)
        });
    }
}

/// Whether the text alone tells that a value is no reference and holds none.
fn is_plain(value: &Expression<'_>) -> bool {
    match value.get_inner_expression() {
        Expression::BooleanLiteral(_)
        | Expression::NullLiteral(_)
        | Expression::NumericLiteral(_)
        | Expression::BigIntLiteral(_)
        | Expression::RegExpLiteral(_)
        | Expression::StringLiteral(_)
        | Expression::ArrayExpression(_)
        | Expression::ObjectExpression(_)
        | Expression::ArrowFunctionExpression(_)
        | Expression::FunctionExpression(_)
        | Expression::ClassExpression(_)
        | Expression::NewExpression(_)
        | Expression::ThisExpression(_)
        | Expression::Super(_)
        | Expression::UpdateExpression(_)
        | Expression::UnaryExpression(_) => true,
        // A sum of texts may hold a reference; what the others give is a number or a truth.
        Expression::BinaryExpression(binary) => binary.operator != BinaryOperator::Addition,
        Expression::TemplateLiteral(template) => template.expressions.is_empty(),
        Expression::Identifier(id) => matches!(id.name.as_str(), "undefined" | "NaN" | "Infinity"),
        _ => false,
    }
}

/// `x === undefined`, `typeof x === "undefined"`: whether something was given is known.
fn asks_whether_given(it: &BinaryExpression<'_>) -> bool {
    let is_undefined = |value: &Expression<'_>| {
        let value = value.get_inner_expression();
        value.is_undefined() || value.is_void_0()
    };
    let is_type = |value: &Expression<'_>| matches!(value, Expression::UnaryExpression(unary) if unary.operator == UnaryOperator::Typeof);
    let says_undefined = |value: &Expression<'_>| matches!(value, Expression::StringLiteral(text) if text.value == "undefined");
    it.operator.is_equality()
        && (is_undefined(&it.left)
            || is_undefined(&it.right)
            || is_type(&it.left) && says_undefined(&it.right)
            || is_type(&it.right) && says_undefined(&it.left))
}

impl<'a> VisitJsMut<'a> for Watcher<'a> {
    // Its members are known while compiling, and must stay so.
    fn visit_ts_enum_declaration(&mut self, _: &mut TSEnumDeclaration<'a>) {}

    fn visit_if_statement(&mut self, it: &mut IfStatement<'a>) {
        walk::walk_if_statement(self, it);
        self.ask_test(&mut it.test);
    }

    fn visit_while_statement(&mut self, it: &mut WhileStatement<'a>) {
        walk::walk_while_statement(self, it);
        self.ask_test(&mut it.test);
        self.mark_turn(&mut it.body, it.span);
    }

    fn visit_do_while_statement(&mut self, it: &mut DoWhileStatement<'a>) {
        walk::walk_do_while_statement(self, it);
        self.ask_test(&mut it.test);
        self.mark_turn(&mut it.body, it.span);
    }

    fn visit_for_statement(&mut self, it: &mut ForStatement<'a>) {
        walk::walk_for_statement(self, it);
        if let Some(test) = &mut it.test {
            self.ask_test(test);
        }
        self.mark_turn(&mut it.body, it.span);
    }

    fn visit_for_in_statement(&mut self, it: &mut ForInStatement<'a>) {
        walk::walk_for_in_statement(self, it);
        self.ask("list", &mut it.right);
        self.mark_turn(&mut it.body, it.span);
    }

    fn visit_for_of_statement(&mut self, it: &mut ForOfStatement<'a>) {
        walk::walk_for_of_statement(self, it);
        self.ask("list", &mut it.right);
        self.mark_turn(&mut it.body, it.span);
    }

    fn visit_switch_statement(&mut self, it: &mut SwitchStatement<'a>) {
        walk::walk_switch_statement(self, it);
        self.ask("switch", &mut it.discriminant);
        for case in &mut it.cases {
            if let Some(test) = &mut case.test {
                self.ask("switch", test);
            }
        }
    }

    fn visit_conditional_expression(&mut self, it: &mut ConditionalExpression<'a>) {
        walk::walk_conditional_expression(self, it);
        self.ask_test(&mut it.test);
    }

    fn visit_logical_expression(&mut self, it: &mut LogicalExpression<'a>) {
        walk::walk_logical_expression(self, it);
        match it.operator {
            LogicalOperator::And => self.ask_test(&mut it.left),
            LogicalOperator::Or => self.ask("||", &mut it.left),
            LogicalOperator::Coalesce => self.ask("??", &mut it.left),
        }
    }

    fn visit_expression(&mut self, it: &mut Expression<'a>) {
        walk::walk_expression(self, it);
        match it {
            Expression::UnaryExpression(unary) if unary.operator == UnaryOperator::Typeof => {
                self.ask_type(it);
            }
            Expression::AssignmentExpression(_) => self.ask_target(it),
            _ => {}
        }
    }

    fn visit_spread_element(&mut self, it: &mut SpreadElement<'a>) {
        walk::walk_spread_element(self, it);
        self.ask("list", &mut it.argument);
    }

    fn visit_unary_expression(&mut self, it: &mut UnaryExpression<'a>) {
        walk::walk_unary_expression(self, it);
        match it.operator {
            UnaryOperator::LogicalNot => self.ask_test(&mut it.argument),
            UnaryOperator::UnaryPlus | UnaryOperator::UnaryNegation | UnaryOperator::BitwiseNot => {
                self.ask("number", &mut it.argument);
            }
            UnaryOperator::Typeof | UnaryOperator::Void | UnaryOperator::Delete => {}
        }
    }

    fn visit_binary_expression(&mut self, it: &mut BinaryExpression<'a>) {
        use BinaryOperator::*;
        let given = asks_whether_given(it);
        for side in [&mut it.left, &mut it.right] {
            match side {
                // The type of what was given is not asked, only whether it was.
                Expression::UnaryExpression(unary) if given => {
                    self.visit_expression(&mut unary.argument);
                }
                side => self.visit_expression(side),
            }
        }
        if given {
            return;
        }
        let question = match it.operator {
            Equality | Inequality | StrictEquality | StrictInequality => "equal",
            LessThan | LessEqualThan | GreaterThan | GreaterEqualThan => "order",
            Addition => "+",
            Instanceof => {
                self.ask("instanceof", &mut it.left);
                return;
            }
            In => {
                self.ask("key", &mut it.left);
                self.ask("list", &mut it.right);
                return;
            }
            ShiftLeft | ShiftRight | ShiftRightZeroFill | Subtraction | Multiplication
            | Division | Remainder | Exponential | BitwiseOR | BitwiseXOR | BitwiseAnd => "number",
        };
        self.ask(question, &mut it.left);
        self.ask(question, &mut it.right);
    }

    fn visit_static_member_expression(&mut self, it: &mut StaticMemberExpression<'a>) {
        walk::walk_static_member_expression(self, it);
        let name = it.property.name;
        if asking::looks_at_the_text(&name) {
            self.ask_by("text", &mut it.object, Some(&name));
        }
    }

    fn visit_computed_member_expression(&mut self, it: &mut ComputedMemberExpression<'a>) {
        walk::walk_computed_member_expression(self, it);
        self.ask("key", &mut it.expression);
    }

    fn visit_call_expression(&mut self, it: &mut CallExpression<'a>) {
        walk::walk_call_expression(self, it);
        let (asks, question, name) = match it.callee.get_inner_expression() {
            Expression::Identifier(id) => (asking::function(&id.name), "call", id.name),
            Expression::StaticMemberExpression(member) => {
                let name = member.property.name;
                match &member.object {
                    Expression::Identifier(object) => match asking::member(&object.name, &name) {
                        Some(asks) => (asks, "call", name),
                        None => (asking::searches(&name), "search", name),
                    },
                    _ => (asking::searches(&name), "search", name),
                }
            }
            _ => return,
        };
        if !asks {
            return;
        }
        for argument in it.arguments.iter_mut().take(1) {
            if let Some(argument) = argument.as_expression_mut() {
                self.ask_by(question, argument, Some(&name));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use oxc::{codegen::Codegen, parser::Parser, span::SourceType};

    use super::*;

    fn watched(text: &str) -> String {
        let allocator = Allocator::default();
        let mut program = Parser::new(&allocator, text, SourceType::ts())
            .parse()
            .program;
        watch(&mut program, &allocator);
        Codegen::new().build(&program).code
    }

    #[test]
    fn what_is_asked_passes_the_sandbox_with_its_place() {
        assert_eq!(
            watched("if (a.url) b();"),
            "if (__notation_ask(\"decide\", a.url, 4, 9)) b();\n"
        );
        assert_eq!(
            watched("x === 'y'"),
            "__notation_ask(\"equal\", x, 0, 1) === \"y\";\n"
        );
        assert_eq!(
            watched("for (;;) {}"),
            "for (;;) {\n\t__notation_turn();\n}\n"
        );
    }

    #[test]
    fn what_the_text_tells_is_left_as_it_is() {
        for text in [
            "x === undefined;\n",
            "typeof x === \"undefined\";\n",
            "1 + 2;\n",
        ] {
            assert_eq!(watched(text), text);
        }
        let constants = "enum Size {\n\tSmall = 1 + 2,\n\tName = \"x\".length\n}\n";
        assert_eq!(watched(constants), constants);
    }
}
