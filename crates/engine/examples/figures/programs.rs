//! The programs that are planned and deployed: workers that refer to each other in one of a few
//! shapes.

use std::fmt;

use notation_model::{
    Contribution, Desired, DesiredGraph, Expr, Map, Marks, Origin, OutputRef, ResourceId, Segment,
    Value,
};

use crate::Failure;

/// Who refers to whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// Nobody refers to anybody.
    Wide,
    /// Each reads an output of the one before it.
    Chain,
    /// Each reads an output of its parent; ten children each.
    Tree,
    /// The first binds all the others.
    Star,
    /// All the others read an output of the first, which alone is replaced in its place.
    Read,
    /// All the others bind the first, which alone is replaced in its place.
    Bound,
    /// Two and two bind each other.
    Pairs,
    /// Each binds the next, the last the first.
    Ring,
    /// Everyone binds everyone else.
    Complete,
}

impl Shape {
    const ALL: [Shape; 9] = [
        Shape::Wide,
        Shape::Chain,
        Shape::Tree,
        Shape::Star,
        Shape::Read,
        Shape::Bound,
        Shape::Pairs,
        Shape::Ring,
        Shape::Complete,
    ];

    fn word(self) -> &'static str {
        match self {
            Shape::Wide => "wide",
            Shape::Chain => "chain",
            Shape::Tree => "tree of 10",
            Shape::Star => "star",
            Shape::Read => "read by all",
            Shape::Bound => "bound by all",
            Shape::Pairs => "pairs",
            Shape::Ring => "ring",
            Shape::Complete => "complete",
        }
    }

    /// The shape of this name.
    pub fn named(name: &str) -> Option<Shape> {
        Shape::ALL.into_iter().find(|shape| shape.word() == name)
    }

    /// Whose output this one reads in its config.
    fn read_by(self, number: usize) -> Option<usize> {
        match self {
            Shape::Chain => number.checked_sub(1),
            Shape::Tree => number.checked_sub(1).map(|before| before / 10),
            Shape::Read if number > 0 => Some(0),
            Shape::Read
            | Shape::Bound
            | Shape::Wide
            | Shape::Star
            | Shape::Pairs
            | Shape::Ring
            | Shape::Complete => None,
        }
    }

    /// Whether this one moves where the program moves.
    fn moves(self, number: usize) -> bool {
        number == 0 || !matches!(self, Shape::Read | Shape::Bound)
    }

    /// Whom this one binds.
    fn bound_by(self, number: usize, count: usize) -> Vec<usize> {
        match self {
            Shape::Wide | Shape::Chain | Shape::Tree | Shape::Read => Vec::new(),
            Shape::Bound if number > 0 => vec![0],
            Shape::Bound => Vec::new(),
            Shape::Star if number == 0 => (1..count).collect(),
            Shape::Star => Vec::new(),
            Shape::Pairs => vec![number ^ 1],
            Shape::Ring => vec![(number + 1) % count],
            Shape::Complete => (0..count).filter(|other| *other != number).collect(),
        }
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

/// A program of `count` workers.
#[derive(Debug, Clone, Copy)]
pub struct Program {
    /// Who refers to whom.
    pub shape: Shape,
    /// How many.
    pub count: usize,
    /// Where they run, with names written by hand: a move replaces each in its place.
    pub fixed_in: Option<&'static str>,
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.shape, self.count)
    }
}

impl Program {
    /// Workers with generated names.
    pub fn new(shape: Shape, count: usize) -> Program {
        Program {
            shape,
            count,
            fixed_in: None,
        }
    }

    /// What evaluating it gives.
    pub fn graph(self) -> Result<DesiredGraph, Failure> {
        let mut graph = DesiredGraph::default();
        graph.resources.reserve(self.count);
        for number in 0..self.count {
            let desired = self.worker(number)?;
            graph.resources.insert(desired.id.clone(), desired);
        }
        Ok(graph)
    }

    fn worker(self, number: usize) -> Result<Desired, Failure> {
        let mut code = vec![
            ("memory", Expr::Known(Value::Int(512))),
            ("runtime", Expr::from("js")),
            ("route", Expr::from("/api/v1/orders")),
        ];
        if let Some(peer) = self.shape.read_by(number) {
            code.push(("peer", output(peer, "arn")?));
        }
        let mut config = Map::from([("code", Expr::Map(Map::from_iter(code)))]);
        if let Some(region) = self.fixed_in.filter(|_| self.shape.moves(number)) {
            config.insert("region", Expr::from(region));
            let name = Value::text(format!("by-hand-{number}"));
            config.insert("Name", Expr::Known(name));
        }
        let contributions = self.shape.bound_by(number, self.count).into_iter();
        let contributions = contributions.map(|to| {
            let binding = Map::from([
                ("type", Expr::from("service")),
                ("service", output(to, "Name")?),
            ]);
            Ok(Contribution {
                field: "bindings".into(),
                value: Expr::Map(binding),
                origin: Origin::default(),
            })
        });
        Ok(Desired {
            id: id(number)?,
            ty: "sim/Worker".parse()?,
            config,
            contributions: contributions.collect::<Result<_, Failure>>()?,
            depend_on: Vec::new(),
            marks: Marks::default(),
            formerly: Vec::new(),
            origin: Origin::default(),
        })
    }
}

fn id(number: usize) -> Result<ResourceId, Failure> {
    Ok(format!("worker-{number}").parse()?)
}

fn output(number: usize, field: &str) -> Result<Expr, Failure> {
    Ok(Expr::Output(OutputRef {
        resource: id(number)?,
        path: [Segment::Key(field.into())].into(),
    }))
}
