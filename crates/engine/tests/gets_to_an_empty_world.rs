//! Whatever was typed before, and whatever somebody did at the console: a destroy leaves nothing,
//! no call is refused, and no state is one that neither a deploy nor a destroy gets out of.
#![allow(clippy::unwrap_used, reason = "its helpers are test code")]

mod support;

use std::sync::Arc;

use notation_engine::{
    DriftCheck, EngineError, FailedStep, Report, RunOptions, deploy, destroy, forget, import,
    refresh,
};
use notation_model::{Incarnation, Record, Standing};
use notation_planner::{PlanProblem, judge};
use proptest::prelude::*;
use support::{
    Bench, Fault, Program,
    cloud::What,
    power::{Power, powered},
    program::{id, resource},
    random::{IDS, Wanted, program, wanted},
};

#[derive(Debug, Clone)]
enum Move {
    /// Another program, deployed until the power goes at this seam, if there are as many.
    Deploy {
        program: Vec<Wanted>,
        asked: Asked,
        cut: u32,
        /// These calls of one worker go wrong.
        fault: Option<(Ill, usize)>,
    },
    /// The program of before once more.
    Again {
        cut: u32,
    },
    Destroy {
        cut: u32,
    },
    Refresh,
    /// Forgotten, and imported for this program, which is deployed then.
    Imported {
        program: Vec<Wanted>,
        who: usize,
    },
    /// Forgotten, and taken away at the console.
    Forgotten(usize),
    /// Taken away at the console, whoever refers to it.
    TakenAway(usize),
    /// Its bindings are taken off at the console.
    Unbound(usize),
    /// What cannot be changed is another one: it was made anew at the console.
    MadeAnew(usize),
}

#[derive(Debug, Clone, Copy)]
enum Ill {
    Fails,
    LosesItsReply,
    TakesItsTime,
}

#[derive(Debug, Clone)]
enum Asked {
    Nothing,
    Target(usize),
    Replace(usize),
    NoRefresh,
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let programs = || prop::collection::vec(wanted(), IDS.len());
    let who = || 0..IDS.len();
    let cut = || 0..40u32;
    let asked = prop_oneof![
        4 => Just(Asked::Nothing),
        2 => who().prop_map(Asked::Target),
        1 => who().prop_map(Asked::Replace),
        1 => Just(Asked::NoRefresh),
    ];
    let ill = prop_oneof![
        Just(Ill::Fails),
        Just(Ill::LosesItsReply),
        Just(Ill::TakesItsTime)
    ];
    let fault = prop::option::weighted(0.2, (ill, who()));
    let deploy = (programs(), asked, cut(), fault);
    let deploy = deploy.prop_map(|(program, asked, cut, fault)| Move::Deploy {
        program,
        asked,
        cut,
        fault,
    });
    let imported = (programs(), who()).prop_map(|(program, who)| Move::Imported { program, who });
    let one = prop_oneof![
        5 => deploy,
        1 => cut().prop_map(|cut| Move::Again { cut }),
        1 => cut().prop_map(|cut| Move::Destroy { cut }),
        1 => Just(Move::Refresh),
        2 => imported,
        1 => who().prop_map(Move::Forgotten),
        2 => who().prop_map(Move::TakenAway),
        1 => who().prop_map(Move::Unbound),
        1 => who().prop_map(Move::MadeAnew),
    ];
    prop::collection::vec(one, 1..7)
}

struct Game {
    bench: Bench,
    program: Program,
    /// Something was done by hand since the last look: not to look then is to be wrong.
    by_hand: bool,
    /// Who went by another id once.
    renamed: [bool; IDS.len()],
    /// Somebody has an id again under which it was renamed: its name may have been another's that
    /// was taken away by hand, whom others still name. Who has it now is held by them, which no
    /// record tells; the provider says so, and the delete is repeated.
    names_moved: bool,
}

impl Game {
    /// The object of a worker that is the newest by its name, which says no more than that.
    fn key(&self, who: usize) -> Option<String> {
        let mut names = self.bench.cloud.names().into_iter().rev();
        names.find(|name| name.starts_with(&format!("shop-dev-{}", IDS[who])))
    }

    fn goes_on_with(&mut self, wanted: &[Wanted]) {
        for (who, wanted) in wanted.iter().enumerate().filter(|(_, one)| one.declared) {
            self.names_moved |= self.renamed[who] && !wanted.renamed;
            self.renamed[who] |= wanted.renamed;
        }
        self.program = program(wanted);
    }

    fn nothing_was_refused(&self) {
        let mut refused = self.bench.cloud.refusals();
        refused.retain(|refusal| !(self.names_moved && refusal.contains(" is held by ")));
        assert_eq!(refused, Vec::<String>::new());
    }

    fn is_deployable(&self, program: &Program) -> bool {
        judge(&program.graph(), self.bench.session.registry.types()).is_ok()
    }

    async fn deploy(&self, program: &Program, options: &RunOptions, cut: u32) {
        let power = Power::cut_at(cut);
        let session = powered(&self.bench, &power);
        let ended = tokio::select! {
            ended = deploy(&session, Arc::new(program.graph()), options) => Some(ended),
            () = power.went() => None,
        };
        self.ended(ended).await;
    }

    async fn ended(&self, ended: Option<Result<Report, EngineError>>) {
        match ended {
            None => {}
            Some(Ok(report)) => {
                let by_fault = |failed: &FailedStep| failed.error.to_string().contains("it broke");
                let failed: Vec<_> = report.failed.iter().filter(|one| !by_fault(one)).collect();
                assert!(failed.is_empty(), "{failed:?}");
            }
            Some(Err(error)) => match mixed(&error) {
                Some(members) => self.helped(members).await,
                None => assert_eq!(error.code(), "plan::unknown_id", "{error}"),
            },
        }
        self.nothing_was_refused();
    }

    /// What the help of a mixed state says: one of them is kept, without its references and with
    /// nothing that replaces it.
    async fn helped(&self, members: &[Incarnation]) {
        let bench = &self.bench;
        let state = bench.store.load(&bench.session.deployment).await.unwrap();
        let records = members
            .iter()
            .filter_map(|member| state.records.get(member));
        let needs_none = |record: &&Record| {
            let ty = record.ty.as_str();
            record.standing == Standing::Current
                && ["sim/Worker", "sim/GuardedWorker"].contains(&ty)
        };
        let kept = { records }.find(needs_none).expect("one that needs none");
        let kept_id = kept.incarnation.resource.to_string();
        let mut item = resource(kept.ty.as_str(), &kept_id).named(&kept.key);
        if let Some(region) = bench.cloud.object(&kept.key).unwrap().params.get("region") {
            item = item.set("region", region.clone());
        }
        let report = bench.deploy(&Program::new([item])).await.unwrap();
        assert!(report.failed.is_empty(), "{:?}", report.failed);
        assert_eq!(bench.cloud.names(), [kept.key.to_string()]);
    }

    /// Keys of what is left behind.
    async fn forget(&self, who: usize) -> Vec<String> {
        let mut behind = Vec::new();
        for known in [id(IDS[who]), id(&format!("{}2", IDS[who]))] {
            let left = forget(&self.bench.session, &known, &RunOptions::default()).await;
            behind.extend(left.unwrap_or_default().into_iter().map(|left| left.key));
        }
        behind
    }

    async fn one(&mut self, one: Move) {
        let mut options = RunOptions::default();
        self.by_hand |= matches!(
            one,
            Move::Forgotten(_) | Move::TakenAway(_) | Move::Unbound(_) | Move::MadeAnew(_)
        );
        match one {
            Move::Deploy {
                program: wanted,
                asked,
                cut,
                fault,
            } => {
                let next = program(&wanted);
                if !self.is_deployable(&next) {
                    return;
                }
                match asked {
                    Asked::Nothing => {}
                    Asked::Target(who) => {
                        options.plan.target.insert(id(&wanted[who].id(who)));
                    }
                    Asked::Replace(who) if wanted[who].declared => {
                        options.plan.replace.insert(id(&wanted[who].id(who)));
                    }
                    Asked::Replace(_) => {}
                    Asked::NoRefresh if self.by_hand => {}
                    Asked::NoRefresh => options.drift = DriftCheck::Skip,
                }
                if let Some((ill, who)) = fault {
                    let what = match ill {
                        Ill::Fails => What::Fail,
                        Ill::LosesItsReply => What::LoseReply,
                        Ill::TakesItsTime => What::Wait,
                    };
                    self.bench
                        .cloud
                        .fault(Fault::new("write", IDS[who], what, 1));
                }
                self.goes_on_with(&wanted);
                self.deploy(&next, &options, cut).await;
                self.bench.cloud.forget_faults();
            }
            Move::Again { cut } => self.deploy(&self.program, &options, cut).await,
            Move::Destroy { cut } => {
                let power = Power::cut_at(cut);
                let session = powered(&self.bench, &power);
                let ended = tokio::select! {
                    ended = destroy(&session, &options) => Some(ended),
                    () = power.went() => None,
                };
                self.ended(ended).await;
            }
            Move::Refresh => {
                refresh(&self.bench.session, &options).await.unwrap();
                self.by_hand = false;
            }
            Move::Imported {
                program: wanted,
                who,
            } => {
                let next = program(&wanted);
                let key = self.key(who).filter(|_| wanted[who].declared);
                let Some(key) = key.filter(|_| self.is_deployable(&next)) else {
                    return;
                };
                let resource = id(&wanted[who].id(who));
                let graph = next.graph();
                let thing = self.bench.cloud.object(&key).unwrap();
                if graph.resources[&resource].ty.as_str() != thing.ty {
                    return;
                }
                // Its tags may name the id that it had.
                options.plan.adopt.insert(resource.clone());
                let behind = self.forget(who).await;
                import(&self.bench.session, &graph, &resource, &key, &options)
                    .await
                    .unwrap();
                // One command imports one object.
                for left in behind.iter().filter(|left| **left != key) {
                    self.bench.cloud.take_away(left);
                }
                self.goes_on_with(&wanted);
                self.deploy(&next, &RunOptions::default(), 0).await;
            }
            Move::Forgotten(who) => {
                for left in self.forget(who).await {
                    self.bench.cloud.take_away(&left);
                }
            }
            Move::TakenAway(who) => {
                if let Some(key) = self.key(who) {
                    self.bench.cloud.take_away(&key);
                }
            }
            Move::Unbound(who) => {
                if let Some(key) = self.key(who) {
                    let mut thing = self.bench.cloud.object(&key).unwrap();
                    thing.params.remove("bindings");
                    self.bench.cloud.put(&key, thing);
                }
            }
            Move::MadeAnew(who) => {
                if let Some(key) = self.key(who) {
                    self.bench.cloud.change(&key, "region", "moon".into());
                }
            }
        }
    }
}

/// Who is named by a mixed state.
fn mixed(error: &EngineError) -> Option<&[Incarnation]> {
    let EngineError::Plan(error) = error else {
        return None;
    };
    error.problems.iter().find_map(|problem| match problem {
        PlanProblem::MixedState { members } => Some(members.as_slice()),
        _ => None,
    })
}

async fn play(moves: Vec<Move>) {
    let mut game = Game {
        bench: Bench::new(),
        program: Program::default(),
        by_hand: false,
        renamed: [false; IDS.len()],
        names_moved: false,
    };
    for one in moves {
        game.one(one).await;
    }
    let ended = game.bench.destroy().await;
    if ended.is_err() {
        game.ended(Some(ended)).await;
    }
    let report = game.bench.destroy().await.unwrap();
    assert!(report.failed.is_empty(), "{:?}", report.failed);
    game.nothing_was_refused();
    assert_eq!(game.bench.cloud.names(), Vec::<String>::new());
    game.bench.consistent().await;
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_was_typed_and_done_by_hand_before(moves in moves()) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(play(moves));
    }
}
