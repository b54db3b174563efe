//! Planning work of every kind, at sizes ten times apart.
//!
//! Each size has a process of its own, and the two plan in turn: a machine that is slower for a
//! second is so for both, and neither finds the memory as the other one left it.

use std::{
    collections::BTreeMap,
    io::{BufRead as _, BufReader, Write as _},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use notation_model::DesiredGraph;
use notation_planner::Prior;

use crate::{
    Failure,
    cycles::{plan_with, recorded_of},
    figure::{Figure, Report, Target},
    programs::{Program, Shape},
    stopwatch::{TIMES, Took, once},
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

/// The process of one size.
struct Planner {
    process: Child,
    ask: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Planner {
    fn start(shape: Shape, count: usize) -> Result<Planner, Failure> {
        let mut process = Command::new(std::env::current_exe()?)
            .args([CHILD, &shape.to_string(), &count.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let ask = process.stdin.take().ok_or("it has no stdin")?;
        let answers = BufReader::new(process.stdout.take().ok_or("it has no stdout")?);
        Ok(Planner {
            process,
            ask,
            answers,
        })
    }

    /// Milliseconds of one plan: on the wall, and of the processor.
    fn plan(&mut self, kind: &str) -> Result<(f64, f64), Failure> {
        writeln!(self.ask, "{kind}")?;
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        let mut numbers = line.split_whitespace().map(str::parse::<f64>);
        match (numbers.next(), numbers.next()) {
            (Some(Ok(wall_ms)), Some(Ok(cpu_ms))) => Ok((wall_ms, cpu_ms)),
            _ => Err(format!("{CHILD} printed {line:?}").into()),
        }
    }

    fn end(self) -> Result<(), Failure> {
        let Planner {
            mut process, ask, ..
        } = self;
        drop(ask);
        match process.wait()?.success() {
            true => Ok(()),
            false => Err(format!("{CHILD} failed").into()),
        }
    }
}

/// Prints how each kind of plan of each shape grows.
pub fn print(report: &mut Report) -> Result<(), Failure> {
    for shape in SHAPES {
        let mut small = Planner::start(shape, 1_000)?;
        let mut large = Planner::start(shape, 10_000)?;
        for kind in KINDS {
            let (mut less, mut more) = (Vec::new(), Vec::new());
            for _ in 0..TIMES {
                less.push(small.plan(kind)?);
                more.push(large.plan(kind)?);
            }
            let (less, more) = (Took::of(&less), Took::of(&more));
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
                value: more.work_over(&less),
                unit: "times",
                target: Target::AtMost(15.0),
                note: format!("on the wall {:.1} times", more.over(&less)),
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
    for line in std::io::stdin().lines() {
        let line = line?;
        let (desired, prior) = kinds.get(line.as_str()).ok_or("no such kind of plan")?;
        let options = notation_planner::PlanOptions::default();
        let ((wall_ms, cpu_ms), _) = once(async || plan_with(desired, prior, &options)).await?;
        println!("{wall_ms} {cpu_ms}");
    }
    Ok(())
}
