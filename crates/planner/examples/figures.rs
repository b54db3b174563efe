//! Planning times: `cargo run --release -p notation-planner --example figures [NAME]`.
//!
//! Programs of independent resources, a chain, a tree of ten, pairs, a ring and complete graphs:
//! each planned fresh, planned again after it was deployed, and planned away. Memory and
//! evaluation of a program are measured with the whole product, not here.

#![expect(clippy::print_stdout, reason = "figures are what this program is for")]

use std::{collections::BTreeMap, time::Instant};

use notation_model::{
    Charset, Collector, Contribution, DeploymentId, Desired, DesiredGraph, Expr, Field, FieldKind,
    Incarnation, Look, Marks, NameKind, Naming, Origin, OutputRef, Params, Record, ResourceType,
    Scope, SecretName, Segment, Shape, Standing, TypeSet, Value,
};
use notation_planner::{
    Observed, Plan, PlanInput, PlanOptions, Prior, contributions_of, params_of,
};

fn main() {
    let wanted = std::env::args().nth(1).unwrap_or_default();
    let figure = |name: &str, desired: &dyn Fn() -> DesiredGraph| {
        if name.contains(&wanted) {
            figure(name, &desired());
        }
    };
    println!(
        "{:<28} {:>9} {:>9} {:>9}  steps",
        "program", "fresh", "no-op", "destroy"
    );
    for count in [1_000, 10_000, 100_000] {
        figure(&format!("wide {count}"), &|| independent(count));
        figure(&format!("chain {count}"), &|| chain(count));
        figure(&format!("tree of 10 {count}"), &|| tree(count));
    }
    figure("500 pairs", &|| pairs(500));
    figure("50000 pairs", &|| pairs(50_000));
    figure("ring of 300", &|| ring(300));
    figure("ring of 1000", &|| ring(1_000));
    figure("complete graph of 10", &|| complete(10));
    figure("complete graph of 40", &|| complete(40));
}

fn figure(name: &str, desired: &DesiredGraph) {
    let types = types();
    let deployment: DeploymentId = "shop:dev:main".parse().expect("a good id");
    let timed = |desired: &DesiredGraph, prior: &Prior| -> (f64, Plan) {
        let mut times = Vec::new();
        let mut last = None;
        for _ in 0..5 {
            let begun = Instant::now();
            let plan = notation_planner::plan(&PlanInput {
                deployment: &deployment,
                types: &types,
                desired,
                prior,
                observed: &Observed::default(),
                secrets: &BTreeMap::new(),
                options: &PlanOptions::default(),
            })
            .expect("the program can be deployed");
            times.push(begun.elapsed().as_secs_f64() * 1000.0);
            last = Some(plan);
        }
        times.sort_by(f64::total_cmp);
        (times[2], last.expect("it was planned"))
    };
    let (fresh, plan) = timed(desired, &Prior::default());
    let prior = Prior {
        records: deployed(&plan, &types),
    };
    let (again, quiet) = timed(desired, &prior);
    let (destroy, _) = timed(&DesiredGraph::default(), &prior);
    println!(
        "{name:<28} {fresh:>6.1} ms {again:>6.1} ms {destroy:>6.1} ms  {} fresh, {} again",
        plan.steps.len(),
        quiet.steps.len()
    );
}

/// Records as they are after running the plan in a cloud whose outputs are the parameters.
fn deployed(plan: &Plan, types: &TypeSet) -> BTreeMap<Incarnation, Record> {
    struct Names<'a>(&'a Plan);
    impl Scope for Names<'_> {
        fn output(&self, source: &OutputRef) -> Option<Value> {
            let who = Incarnation {
                resource: source.resource.clone(),
                generation: 0,
            };
            match self.0.intended.get(&who)?.config.get("Name") {
                Some(Expr::Known(name)) => Some(name.clone()),
                _ => None,
            }
        }
        fn name(&self) -> Option<Value> {
            None
        }
        fn secret(&self, _: &SecretName) -> Option<Value> {
            None
        }
    }
    let names = Names(plan);
    plan.intended
        .iter()
        .map(|(who, intended)| {
            let ty = types.get(&intended.ty).expect("it is registered");
            let params = |shape| -> Params {
                params_of(ty, intended, shape, &names).expect("contributions fit")
            };
            let applied = params(Shape::Complete);
            let key = applied["Name"].as_text().expect("a name").to_owned();
            let record = Record {
                incarnation: who.clone(),
                ty: intended.ty.clone(),
                shape: Shape::Complete,
                standing: Standing::Current,
                key,
                config: params(Shape::Placeholder),
                contributions: contributions_of(ty, intended, &names),
                outputs: applied.clone(),
                applied,
                edges: intended.edges.clone(),
                marks: intended.marks,
                can_be_bare: intended.can_be_bare,
                gone: false,
                in_doubt: false,
                former: Vec::new(),
                version: 1,
            };
            (who.clone(), record)
        })
        .collect()
}

fn types() -> TypeSet {
    let param = |kind| Field::param(kind, "");
    let fields = [
        (
            "Name",
            Field {
                key: true,
                ..param(FieldKind::Text)
            },
        ),
        ("code", param(FieldKind::Text)),
        (
            "bindings",
            Field {
                holds: true,
                unordered: true,
                collect: Some(Collector::Flatten),
                ..param(FieldKind::List)
            },
        ),
    ];
    TypeSet::new([ResourceType {
        name: "sim/Worker".parse().expect("a good type"),
        fields: fields
            .into_iter()
            .map(|(name, field)| (name.to_owned(), field))
            .collect(),
        naming: Some(Naming {
            kind: NameKind::Scoped,
            suffix: "",
            ending: "",
            max_length: 63,
            charset: Charset::Alphanumeric,
        }),
        identity_space: "sim".to_owned(),
        tags: true,
        never_bare: false,
        updates: true,
        look: Look::Key,
        read_lag: std::time::Duration::ZERO,
        concurrency: None,
    }])
}

/// `count` workers; `config` and `bound` say whom each refers to in its config and binds.
fn graph(
    count: usize,
    config: impl Fn(usize) -> Option<usize>,
    bound: impl Fn(usize) -> Vec<usize>,
) -> DesiredGraph {
    let id = |number: usize| format!("r{number}").parse().expect("a good id");
    let name_of = |number: usize| {
        Expr::Output(OutputRef {
            resource: id(number),
            path: vec![Segment::Key("Name".to_owned())],
        })
    };
    let mut graph = DesiredGraph::default();
    for number in 0..count {
        let code = config(number).map_or_else(|| Expr::from("x"), name_of);
        let contributions = bound(number)
            .into_iter()
            .map(|to| Contribution {
                field: "bindings".to_owned(),
                value: Expr::Map(BTreeMap::from([("service".to_owned(), name_of(to))])),
                origin: Origin::default(),
            })
            .collect();
        let desired = Desired {
            id: id(number),
            ty: "sim/Worker".parse().expect("a good type"),
            config: BTreeMap::from([("code".to_owned(), code)]),
            contributions,
            depend_on: Vec::new(),
            marks: Marks::default(),
            formerly: Vec::new(),
            origin: Origin::default(),
        };
        graph.resources.insert(desired.id.clone(), desired);
    }
    graph
}

fn independent(count: usize) -> DesiredGraph {
    graph(count, |_| None, |_| Vec::new())
}
fn chain(count: usize) -> DesiredGraph {
    graph(count, |number| number.checked_sub(1), |_| Vec::new())
}
fn tree(count: usize) -> DesiredGraph {
    graph(
        count,
        |number| number.checked_sub(1).map(|before| before / 10),
        |_| Vec::new(),
    )
}
fn pairs(count: usize) -> DesiredGraph {
    graph(2 * count, |_| None, |number| vec![number ^ 1])
}
fn ring(count: usize) -> DesiredGraph {
    graph(count, |_| None, |number| vec![(number + 1) % count])
}
fn complete(count: usize) -> DesiredGraph {
    graph(
        count,
        |_| None,
        |number| (0..count).filter(|other| *other != number).collect(),
    )
}
