//! A graph built in Rust is told what its types do not have, all of it at once.

mod world;

use notation_model::{DesiredGraph, Expr, OutputRef, Segment};
use notation_planner::{PlanError, judge};
use world::program::{id, program, types};

fn source(resource: &str, path: &[Segment]) -> Expr {
    Expr::Output(OutputRef {
        resource: id(resource),
        path: path.iter().cloned().collect(),
    })
}

fn told(graph: &DesiredGraph) -> Vec<String> {
    let problems = judge(graph, &types()).expect_err("it cannot be deployed");
    let coded = problems.iter().map(|problem| {
        assert!(!problem.help().is_empty());
        format!("{}: {problem}", problem.code())
    });
    let coded = coded.collect();
    // The same without a state and with one.
    assert!(PlanError { problems }.to_string().contains('`'));
    coded
}

#[test]
fn what_a_type_does_not_declare_is_neither_given_nor_read() {
    let key = |name: &str| Segment::Key(name.into());
    let mut graph = program("a W >b.nonsense x=1 arn=mine; b W; c T >b parent<b.Name");
    let a = graph.resources.get_mut(&id("a")).expect("it is declared");
    a.config.insert(
        "code".to_owned(),
        Expr::List(vec![
            source("b", &[]),
            source("b", &[key("arn"), key("part")]),
            source("b", &[key("bindings"), Segment::Index(0)]),
            source("b", &[Segment::Index(7)]),
        ]),
    );
    graph.exports = [
        ("url", source("b", &[key("url")])),
        ("other", source("gone", &[key("Name")])),
        ("fine", source("b", &[key("region")])),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into();
    assert_eq!(
        told(&graph),
        [
            "plan::unknown_field: a is given `arn`, which the provider of sim/Worker sets",
            "plan::unknown_field: a is given `x`, which sim/Worker does not have",
            "plan::unknown_output: a refers to `b` (a sim/Worker): no output is named",
            "plan::unknown_output: a refers to `b.arn.part` (a sim/Worker): `arn` is a text and has \
             no `part`",
            "plan::unknown_output: a refers to `b[7]` (a sim/Worker): there is no output `7`",
            "plan::unknown_output: a refers to `b.nonsense` (a sim/Worker): there is no output \
             `nonsense`",
            "plan::unknown_field: c is given `bindings`, which sim/Thing does not have",
            "plan::unknown_reference: the export `other` refers to gone, which the program does \
             not have",
            "plan::unknown_output: the export `url` refers to `b.url` (a sim/Worker): there is no \
             output `url`",
        ]
    );
}
