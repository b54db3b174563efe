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
    random::{IDS, Wanted, program, wanted},
};

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
