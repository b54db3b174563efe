//! Programs in a few words.

use std::collections::BTreeMap;

use notation_model::{
    Contribution, DependOn, Desired, DesiredGraph, Expr, Map, Marks, Origin, OutputRef, ResourceId,
    Segment, Value,
};

/// Resources in declaration order, and exports.
#[derive(Clone, Default)]
pub struct Program {
    resources: Vec<Desired>,
    exports: BTreeMap<String, Expr>,
}

/// A `sim/Worker`.
pub fn worker(id: &str) -> Item {
    resource("sim/Worker", id)
}

/// A resource of some type.
pub fn resource(ty: &str, id: &str) -> Item {
    Item(Desired {
        id: id.parse().unwrap(),
        ty: ty.parse().unwrap(),
        config: Map::new(),
        contributions: Vec::new(),
        depend_on: Vec::new(),
        marks: Marks::default(),
        formerly: Vec::new(),
        origin: Origin::default(),
    })
}

#[derive(Clone)]
pub struct Item(pub Desired);

impl Item {
    pub fn set(mut self, field: &str, value: impl Into<Expr>) -> Item {
        self.0.config.insert(field, value.into());
        self
    }

    /// A written name.
    pub fn named(self, name: &str) -> Item {
        self.set("Name", name)
    }

    /// Bound, by contribution, to the name of another worker.
    pub fn binds(self, other: &str) -> Item {
        self.binds_output(other, "Name")
    }

    /// A binding that names the other worker and carries another output of it.
    pub fn binds_version(self, other: &str, output: &str) -> Item {
        let value = Expr::Map(Map::from([
            ("type", "service".into()),
            ("service", out(other, "Name")),
            ("version", out(other, output)),
        ]));
        self.contributes("bindings", value)
    }

    fn binds_output(self, other: &str, output: &str) -> Item {
        let value = Expr::Map(Map::from([
            ("type", "service".into()),
            ("service", out(other, output)),
        ]));
        self.contributes("bindings", value)
    }

    pub fn contributes(mut self, field: &str, value: Expr) -> Item {
        self.0.contributions.push(Contribution {
            field: field.into(),
            value,
            origin: Origin::default(),
        });
        self
    }

    pub fn after(mut self, other: &str) -> Item {
        self.0.depend_on.push(DependOn {
            target: other.parse().unwrap(),
            origin: Origin::default(),
        });
        self
    }

    /// Bound, in the config, to the name of a worker that was declared before.
    pub fn made_with(self, other: &str) -> Item {
        let binding = Expr::Map(Map::from([
            ("type", "service".into()),
            ("service", out(other, "Name")),
        ]));
        self.set("bindings", Expr::List(vec![binding]))
    }

    /// `placeholder: "never"`.
    pub fn never_bare(mut self) -> Item {
        self.0.marks.never_bare = true;
        self
    }

    /// `protect`.
    pub fn protected(mut self, protect: bool) -> Item {
        self.0.marks.protect = protect;
        self
    }

    pub fn formerly(mut self, id: &str) -> Item {
        self.0.formerly.push(id.parse().unwrap());
        self
    }
}

/// `resource.output`.
pub fn out(resource: &str, output: &str) -> Expr {
    Expr::Output(OutputRef {
        resource: id(resource),
        path: [Segment::Key(output.into())].into(),
    })
}

pub fn id(text: &str) -> ResourceId {
    text.parse().unwrap()
}

pub fn text(value: &str) -> Value {
    Value::text(value)
}

impl Program {
    pub fn new(items: impl IntoIterator<Item = Item>) -> Program {
        Program {
            resources: items.into_iter().map(|item| item.0).collect(),
            exports: BTreeMap::new(),
        }
    }

    /// a and b, bound to each other, with generated names.
    pub fn pair() -> Program {
        Program::new([worker("a").binds("b"), worker("b").binds("a")])
    }

    pub fn export(mut self, name: &str, expr: Expr) -> Program {
        self.exports.insert(name.into(), expr);
        self
    }

    pub fn graph(&self) -> DesiredGraph {
        DesiredGraph {
            resources: self
                .resources
                .iter()
                .map(|desired| (desired.id.clone(), desired.clone()))
                .collect(),
            exports: self.exports.clone(),
        }
    }
}
