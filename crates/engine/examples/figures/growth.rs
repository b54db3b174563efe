//! Planning work of every kind, at sizes ten times apart.

use std::collections::BTreeMap;

use notation_model::DesiredGraph;
use notation_planner::{PlanOptions, Prior};

use crate::{
    Failure,
    cycles::{plan_with, recorded_of},
    figure::{Figure, Report, Target},
    programs::{Program, Shape},
    turns::{Growth, Worker, in_turn, serve},
};

/// First argument of the process of a size.
pub const CHILD: &str = "--plan-in-turn";

const SHAPES: [Shape; 8] = [
    Shape::Tree,
    Shape::Chain,
    Shape::Wide,
    Shape::Star,
    Shape::Read,
    Shape::Bound,
    Shape::Pairs,
    Shape::Ring,
];

const KINDS: [&str; 4] = [
    "all new",
    "nothing to do",
    "all replaced in place",
    "removed",
];

/// Prints how each kind of plan of each shape grows.
pub fn print(report: &mut Report) -> Result<(), Failure> {
    for shape in SHAPES {
        let word = shape.to_string();
        let mut small = Worker::start(&[CHILD, &word, "1000"])?;
        let mut large = Worker::start(&[CHILD, &word, "10000"])?;
        for kind in KINDS {
            let Growth {
                less,
                more,
                wall,
                cpu,
                rounds,
            } = in_turn(&mut small, &mut large, kind)?;
            for (count, took) in [(1_000, less), (10_000, more)] {
                report.put(&Figure {
                    name: format!("planner: {shape} {count}, {kind}"),
                    value: took.median_ms,
                    unit: "ms",
                    target: Target::None,
                    note: took.note(),
                });
            }
            report.put(&Figure {
                name: format!("planner: {shape} 10000, {kind}: against a tenth of it"),
                value: cpu,
                unit: "times",
                target: Target::AtMost(15.0),
                note: format!("on the wall {wall:.1} times; {rounds}"),
            });
        }
        small.end()?;
        large.end()?;
    }
    Ok(())
}

/// The process of a size: plans what each line of stdin names, and prints what it took.
pub async fn child(arguments: &[String]) -> Result<(), Failure> {
    let [shape, count] = arguments else {
        return Err(format!("{CHILD} SHAPE COUNT").into());
    };
    let shape = Shape::named(shape).ok_or("no such shape")?;
    let program = Program::new(shape, count.parse()?);
    let fixed_in = |region| {
        Program {
            fixed_in: Some(region),
            ..program
        }
        .graph()
    };
    let (here, there) = (fixed_in("here")?, fixed_in("there")?);
    let none = Prior::default();
    let prior = recorded_of(&here).await?;
    let empty = DesiredGraph::default();
    let kinds = [
        (&here, &none),
        (&here, &prior),
        (&there, &prior),
        (&empty, &prior),
    ];
    let kinds: BTreeMap<&str, (&DesiredGraph, &Prior)> = KINDS.into_iter().zip(kinds).collect();
    serve(async |kind| {
        let (desired, prior) = kinds.get(kind).ok_or("no such kind of plan")?;
        plan_with(desired, prior, &PlanOptions::default())
    })
    .await
}
