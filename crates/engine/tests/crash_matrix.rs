//! The crash matrix: every story times every fault times every instant at which the run may end
//! times everything a person may do next. Each case must end in the world that was asked for,
//! with one live object per record, no binding to a dead one, and nothing left to do.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "its helpers are test code, and it says how many cases there were"
)]

mod support;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use notation_engine::deploy;
use notation_model::Standing;
use support::{
    Bench, Fault, Program,
    cloud::What,
    power::{Power, powered},
    program::worker,
};

/// From one program to the next, and a smaller one that somebody may go on with instead.
struct Story {
    name: &'static str,
    first: Program,
    second: Program,
    smaller: Program,
    /// Calls that change something, when nothing goes wrong.
    calls: u32,
}

/// What goes wrong besides the run ending.
#[derive(Clone, Copy, Debug)]
enum Trouble {
    None,
    /// With the call of this number, from 1.
    Call(u32, Ill),
    /// With two calls of one run, or twice with one.
    Calls((u32, Ill), (u32, Ill)),
    /// The read of this number of the next run answers what was true before the last write.
    StaleRead(u32),
}

#[derive(Clone, Copy, Debug)]
enum Ill {
    LosesItsReply,
    TakesItsTime,
    IsThrottled,
}

const NEXT: [Next; 4] = [
    Next::Again,
    Next::Destroyed,
    Next::MadeSmaller,
    Next::TakenBack,
];

#[derive(Clone, Copy, Debug, PartialEq)]
enum Next {
    Again,
    Destroyed,
    MadeSmaller,
    TakenBack,
}

impl Story {
    fn then(&self, next: Next) -> Program {
        match next {
            Next::Again => self.second.clone(),
            Next::Destroyed => Program::default(),
            Next::MadeSmaller => self.smaller.clone(),
            Next::TakenBack => self.first.clone(),
        }
    }
}

/// Who refers to whom and with what parameters, by resource.
type World = BTreeMap<String, Vec<(String, String)>>;

/// What must come out.
struct Expected {
    /// The world that each program makes on a fresh stage.
    worlds: Vec<World>,
    /// Names after the story, when nothing disturbs it.
    names: Vec<String>,
}

async fn expected(story: &Story) -> Expected {
    let mut worlds = Vec::new();
    for next in NEXT {
        let fresh = Bench::new();
        fresh.done(&story.then(next)).await;
        worlds.push(fresh.cloud.world());
    }
    let (whole, _) = cut(story, Trouble::None, 0).await;
    Expected {
        worlds,
        names: whole.cloud.names(),
    }
}

fn faults(trouble: Trouble) -> Vec<Fault> {
    let with = |(number, ill): (u32, Ill)| match ill {
        Ill::LosesItsReply => Fault::nth("write", number, What::LoseReply, 1),
        Ill::TakesItsTime => Fault::nth("write", number, What::Wait, 2),
        Ill::IsThrottled => Fault::nth("write", number, What::Throttle, 2),
    };
    match trouble {
        Trouble::None | Trouble::StaleRead(_) => Vec::new(),
        Trouble::Call(number, ill) => vec![with((number, ill))],
        Trouble::Calls(one, other) => vec![with(one), with(other)],
    }
}

/// Deploys the first program, then the second until the power goes at a seam. True when the seam
/// was reached. Seams lie before and after every call and every journal append.
async fn cut(story: &Story, trouble: Trouble, at: u32) -> (Bench, bool) {
    let bench = Bench::new();
    bench.done(&story.first).await;
    bench.cloud.forget_calls();
    for fault in faults(trouble) {
        bench.cloud.fault(fault);
    }
    let power = Power::cut_at(at);
    let session = powered(&bench, &power);
    let reached = tokio::select! {
        report = deploy(&session, Arc::new(story.second.graph()), &bench.options) => {
            let report = report.unwrap();
            assert!(report.failed.is_empty(), "{}: {trouble:?}: {:?}", story.name, report.failed);
            false
        }
        () = power.went() => true,
    };
    (bench, reached)
}

/// Goes on after a cut. True when the trouble happened.
async fn go_on(
    (story, expected): (&Story, &Expected),
    (bench, trouble, at): (&Bench, Trouble, u32),
    next: Next,
) -> bool {
    let case = || {
        format!(
            "{}, {trouble:?}, cut at seam {at}, then {next:?}",
            story.name
        )
    };
    if let Trouble::StaleRead(number) = trouble {
        bench
            .cloud
            .fault(Fault::nth("read", number, What::Stale, 1));
    }
    let wanted = story.then(next);
    let report = bench
        .deploy(&wanted)
        .await
        .unwrap_or_else(|error| panic!("{}: {error}", case()));
    assert!(report.failed.is_empty(), "{}: {:?}", case(), report.failed);
    assert_eq!(bench.cloud.refusals(), Vec::<String>::new(), "{}", case());
    let happened = bench.cloud.faults_left() == 0;
    bench.cloud.forget_faults();

    // The world of a fresh stage, and under the very names of a run that nothing disturbed.
    let world = &expected.worlds[next as usize];
    assert_eq!(bench.cloud.world(), *world, "{}", case());
    if next == Next::Again {
        assert_eq!(bench.cloud.names(), expected.names, "{}", case());
    }
    let shape = bench.cloud.shape();
    for (name, bound) in &shape {
        for target in bound {
            assert!(shape.contains_key(target), "{}: {name} -> {target}", case());
        }
    }
    bench.consistent().await;
    bench.cloud.forget_calls();
    let report = bench.deploy(&wanted).await.unwrap();
    assert!(report.failed.is_empty(), "{}", case());
    assert_eq!(bench.cloud.writes(), Vec::<String>::new(), "{}", case());
    happened
}

/// One current incarnation per resource, whatever instant it is: a successor and the end of what
/// it takes over from are one commit.
async fn has_one_current(bench: &Bench, story: &Story, at: u32) {
    let state = bench.store.load(&bench.session.deployment).await.unwrap();
    let current = state
        .records
        .values()
        .filter(|record| record.standing == Standing::Current);
    let mut seen = BTreeSet::new();
    for record in current {
        let resource = record.incarnation.resource.clone();
        assert!(seen.insert(resource), "{}, cut at {at}", story.name);
    }
}

/// Every seam of a story with one trouble. Returns how many cases there were, and whether the
/// trouble ever happened.
async fn at_every_seam(story: &Story, expected: &Expected, trouble: Trouble) -> (u32, bool) {
    let mut cases = 0;
    let mut happened = false;
    for at in 1.. {
        let mut reached = false;
        for next in NEXT {
            let shortened = match trouble {
                Trouble::None => false,
                Trouble::Call(..) | Trouble::StaleRead(_) => next == Next::TakenBack,
                Trouble::Calls(..) => !matches!(next, Next::Again | Next::Destroyed),
            };
            if shortened {
                continue;
            }
            let (bench, cut) = cut(story, trouble, at).await;
            reached = cut;
            has_one_current(&bench, story, at).await;
            happened |= go_on((story, expected), (&bench, trouble, at), next).await;
            cases += 1;
        }
        if !reached {
            break;
        }
    }
    (cases, happened)
}

async fn matrix(story: Story) {
    let expected = expected(&story).await;
    let (whole, _) = cut(&story, Trouble::None, 0).await;
    let calls = whole.cloud.writes();
    assert_eq!(calls.len() as u32, story.calls, "{}: {calls:?}", story.name);
    let (mut cases, _) = at_every_seam(&story, &expected, Trouble::None).await;
    // Before and after each call, and each append (an intent and an outcome per call, at least).
    assert!(cases > 4 * 4 * story.calls, "{}: {cases} cases", story.name);
    for number in 1..=story.calls {
        for ill in [Ill::LosesItsReply, Ill::TakesItsTime, Ill::IsThrottled] {
            let trouble = Trouble::Call(number, ill);
            let (more, happened) = at_every_seam(&story, &expected, trouble).await;
            assert!(happened, "{}: {ill:?} of call {number}", story.name);
            cases += more;
        }
    }
    for number in 1.. {
        let trouble = Trouble::StaleRead(number);
        let (more, happened) = at_every_seam(&story, &expected, trouble).await;
        if !happened {
            break;
        }
        cases += more;
    }
    println!("{}: {cases} cases", story.name);
}

/// Two things go wrong in one run, each with each, and then the power goes at every seam.
async fn pairs_of_troubles(story: Story) {
    const ILLS: [Ill; 3] = [Ill::LosesItsReply, Ill::TakesItsTime, Ill::IsThrottled];
    let expected = expected(&story).await;
    let each = (1..=story.calls).flat_map(|number| ILLS.map(|ill| (number, ill)));
    let each: Vec<(u32, Ill)> = each.collect();
    let mut cases = 0;
    for (at, one) in each.iter().enumerate() {
        for other in &each[at..] {
            let trouble = Trouble::Calls(*one, *other);
            let (more, happened) = at_every_seam(&story, &expected, trouble).await;
            assert!(happened, "{}: {trouble:?}", story.name);
            cases += more;
        }
    }
    println!("{}: {cases} cases with two troubles", story.name);
}

#[tokio::test]
async fn with_two_troubles_while_a_pair_is_set_up() {
    pairs_of_troubles(pair_set_up()).await;
}

#[tokio::test]
async fn with_two_troubles_while_a_member_is_replaced() {
    pairs_of_troubles(replaced_side_by_side()).await;
}

fn pair_in(region: &str) -> Program {
    Program::new([
        worker("a").set("region", region).binds("b"),
        worker("b").binds("a"),
    ])
}

fn named_pair_in(region: &str) -> Program {
    Program::new([
        worker("a").named("a").set("region", region).binds("b"),
        worker("b").named("b").binds("a"),
    ])
}

fn ring_in(region: &str) -> Program {
    Program::new([
        worker("a").binds("b"),
        worker("b").set("region", region).binds("c"),
        worker("c").binds("a"),
    ])
}

fn pair_set_up() -> Story {
    Story {
        name: "T1 pair set up",
        first: Program::default(),
        second: Program::pair(),
        smaller: Program::new([worker("a")]),
        calls: 3,
    }
}

fn replaced_side_by_side() -> Story {
    Story {
        name: "T11 replaced side by side",
        first: pair_in("us"),
        second: pair_in("eu"),
        smaller: Program::new([worker("b")]),
        calls: 3,
    }
}

#[tokio::test]
async fn while_a_pair_is_set_up() {
    matrix(pair_set_up()).await;
}

#[tokio::test]
async fn while_a_pair_is_destroyed() {
    matrix(Story {
        name: "T7 pair destroyed",
        first: Program::pair(),
        second: Program::default(),
        smaller: Program::new([worker("b")]),
        calls: 4,
    })
    .await;
}

#[tokio::test]
async fn while_a_member_is_replaced_side_by_side() {
    matrix(replaced_side_by_side()).await;
}

#[tokio::test]
async fn while_a_member_with_a_written_name_is_replaced() {
    matrix(Story {
        name: "T12 replaced under a written name",
        first: named_pair_in("us"),
        second: named_pair_in("eu"),
        smaller: Program::new([worker("b").named("b")]),
        calls: 4,
    })
    .await;
}

#[tokio::test]
async fn while_a_ring_of_three_has_one_replaced() {
    matrix(Story {
        name: "ring of three, one replaced",
        first: ring_in("us"),
        second: ring_in("eu"),
        smaller: Program::pair(),
        calls: 3,
    })
    .await;
}
