//! Random programs one after the other, cut off or failing at random: the last one deployed ends
//! in the world it asks for, no call is refused, and deploying again does nothing.
#![allow(clippy::unwrap_used, reason = "its helpers are test code")]

mod support;

use std::sync::Arc;

use notation_engine::{EngineError, deploy};
use notation_model::DesiredGraph;
use notation_planner::judge;
use proptest::prelude::*;
use support::{
    Bench, Fault, Program,
    cloud::What,
    power::{Power, powered},
    program::{out, resource},
};

const IDS: [&str; 4] = ["a", "b", "c", "d"];

#[derive(Debug, Clone)]
struct Wanted {
    /// Which of `IDS`; absent ones are not declared.
    declared: bool,
    written_name: bool,
    region: u8,
    /// Who is bound to, by contribution.
    binds: Vec<usize>,
    /// A thing beside it that names it in config.
    thing: bool,
    /// `dependOn`.
    after: Option<usize>,
    /// Which of `TYPES`.
    ty: usize,
    /// Bound in the config to one that was declared before.
    made_with: Option<usize>,
    /// `placeholder: "never"`.
    never_bare: bool,
    /// A frozen thing beside it, which a change of this value replaces.
    frozen: Option<u8>,
}

const TYPES: [&str; 6] = [
    "sim/Worker",
    "sim/Worker",
    "sim/Worker",
    "sim/StrictWorker",
    "sim/PinnedWorker",
    "sim/GuardedWorker",
];

#[derive(Debug, Clone)]
struct Move {
    program: Vec<Wanted>,
    /// The power goes at this seam, if there are as many.
    cut: u32,
    fault: Option<(u8, usize)>,
    /// Taken away by hand afterwards.
    lost: Option<usize>,
    /// In which order calls end.
    chance: u64,
}

fn wanted() -> impl Strategy<Value = Wanted> {
    let plain = (
        prop::bool::weighted(0.8),
        any::<bool>(),
        0..2u8,
        prop::collection::vec(0..IDS.len(), 0..3),
        prop::bool::weighted(0.2),
        prop::option::weighted(0.2, 0..IDS.len()),
    );
    let odd = (
        0..TYPES.len(),
        prop::option::weighted(0.2, 0..IDS.len()),
        prop::bool::weighted(0.1),
        prop::option::weighted(0.2, 0..3u8),
    );
    (plain, odd).prop_map(
        |(
            (declared, written_name, region, binds, thing, after),
            (ty, made_with, never_bare, frozen),
        )| Wanted {
            declared,
            written_name,
            region,
            binds,
            thing,
            after,
            ty,
            made_with,
            never_bare,
            frozen,
        },
    )
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let one = (
        prop::collection::vec(wanted(), IDS.len()),
        0..40u32,
        prop::option::weighted(0.3, (0..4u8, 0..IDS.len())),
        prop::option::weighted(0.2, 0..IDS.len()),
        any::<u64>(),
    )
        .prop_map(|(program, cut, fault, lost, chance)| Move {
            program,
            cut,
            fault,
            lost,
            chance,
        });
    prop::collection::vec(one, 1..5)
}

fn program(wanted: &[Wanted]) -> Program {
    let declared = |index: &usize| wanted[*index].declared;
    let mut items = Vec::new();
    for (index, one) in wanted.iter().enumerate().filter(|(_, one)| one.declared) {
        let id = IDS[index];
        let made_with = one
            .made_with
            .filter(|target| *target < index && declared(target));
        let mut bound = one.binds.clone();
        bound.sort_unstable();
        bound.dedup();
        bound.retain(declared);
        // What is required must be given.
        let given = made_with.is_some() || !bound.is_empty();
        let ty = TYPES[if given { one.ty } else { 0 }];
        let mut item = resource(ty, id).set("region", ["us", "eu"][usize::from(one.region)]);
        if one.written_name {
            item = item.named(&format!("shop-dev-{id}-x"));
        }
        if one.never_bare {
            item = item.never_bare();
        }
        if let Some(target) = made_with {
            item = item.made_with(IDS[target]);
        }
        for target in bound {
            item = item.binds(IDS[target]);
        }
        if let Some(target) = one.after.filter(declared) {
            item = item.after(IDS[target]);
        }
        items.push(item);
    }
    for (index, one) in wanted.iter().enumerate().filter(|(_, one)| one.declared) {
        if one.thing {
            let thing = resource("sim/Thing", &format!("t{}", IDS[index]));
            items.push(thing.set("parent", out(IDS[index], "Name")));
        }
        if let Some(value) = one.frozen {
            let frozen = resource("sim/Frozen", &format!("f{}", IDS[index]));
            items.push(frozen.set("value", ["one", "two", "three"][usize::from(value)]));
        }
    }
    Program::new(items)
}

fn is_deployable(bench: &Bench, graph: &DesiredGraph) -> bool {
    judge(graph, bench.session.registry.types()).is_ok()
}

async fn play(moves: Vec<Move>) {
    let bench = Bench::new();
    let mut last = Program::default();
    for one in moves {
        bench.cloud.shuffle(one.chance);
        if let Some((what, target)) = one.fault {
            let what = [What::Fail, What::LoseReply, What::Wait, What::Transient]
                [usize::from(what)]
            .clone();
            bench.cloud.fault(Fault::new("any", IDS[target], what, 1));
        }
        let power = Power::cut_at(one.cut);
        let session = powered(&bench, &power);
        let wanted = program(&one.program);
        let graph = Arc::new(wanted.graph());
        let deployable = is_deployable(&bench, &graph);
        let calls = bench.cloud.writes();
        let ended = tokio::select! {
            ended = deploy(&session, graph, &bench.options) => Some(ended),
            () = power.went() => None,
        };
        // A state mixed from two programs may be refused (engine.md §5); whatever else is not.
        if let Some(Err(error)) = ended {
            assert!(matches!(error, EngineError::Plan(_)), "{error}");
            match deployable {
                true => assert_eq!(error.code(), "plan::mixed_state", "{error}"),
                false => assert_eq!(error.code(), "plan::unbreakable_loop", "{error}"),
            }
        }
        if deployable {
            last = wanted;
        } else {
            assert_eq!(bench.cloud.writes(), calls, "nothing is called");
        }
        assert_eq!(bench.cloud.refusals(), Vec::<String>::new());
        if let Some(lost) = one.lost {
            let id = IDS[lost];
            for name in bench.cloud.names() {
                let held = bench
                    .cloud
                    .shape()
                    .values()
                    .any(|bound| bound.contains(&support::cloud::short(&name)));
                if name.starts_with(&format!("shop-dev-{id}")) && !held {
                    bench.cloud.take_away(&name);
                }
            }
        }
    }
    bench.cloud.forget_faults();
    let graph = Arc::new(last.graph());
    let report = match deploy(&bench.session, graph.clone(), &bench.options).await {
        Ok(report) => report,
        Err(error) if error.code() == "plan::mixed_state" => return,
        Err(error) => panic!("{error}"),
    };
    assert!(report.failed.is_empty(), "{:?}", report.failed);
    assert_eq!(bench.cloud.refusals(), Vec::<String>::new());
    assert_eq!(bench.cloud.names().len(), graph.resources.len());
    let shape = bench.cloud.shape();
    for bound in shape.values().flatten() {
        assert!(shape.contains_key(bound), "{bound} lives: {shape:?}");
    }
    let state = bench.store.load(&bench.session.deployment).await.unwrap();
    for (incarnation, record) in &state.records {
        let wanted = &graph.resources[&incarnation.resource];
        let asked =
            wanted.contributions.len() + usize::from(wanted.config.contains_key("bindings"));
        let object = bench.cloud.object(&record.key).unwrap();
        let has = match object.params.get("bindings") {
            Some(notation_model::Value::List(items)) => items.len(),
            _ => 0,
        };
        assert_eq!(has, asked, "{incarnation}");
    }
    bench.consistent().await;
    bench.quiet(&last).await;
    let report = bench.destroy().await.unwrap();
    assert!(report.failed.is_empty(), "{:?}", report.failed);
    assert_eq!(bench.cloud.refusals(), Vec::<String>::new());
    assert_eq!(bench.cloud.names(), Vec::<String>::new());
    bench.consistent().await;
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_happened_before(moves in moves()) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(play(moves));
    }
}
