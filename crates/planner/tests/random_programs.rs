//! Random programs over several generations of edits, replacements and hand deletions, with
//! steps in random order, in a cloud that refuses what a real one might let pass.

mod world;

use std::collections::BTreeSet;

use notation_model::{Incarnation, ResourceId};
use notation_planner::{PlanOptions, PlanProblem, Role, StepKey, Subject, Transition, Why};
use proptest::prelude::*;
use world::{
    Dice, Outcome, World, line,
    random::{Sketch, edit, is_deployable, sketch},
    run,
};

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_strict_cloud_accepts_every_call_and_the_order_changes_none(seed in any::<u64>()) {
        generations(seed)?;
    }

    #[test]
    fn a_stop_between_two_calls_or_in_one_is_gone_on_from(seed in any::<u64>()) {
        stops(seed)?;
    }

    #[test]
    fn a_failing_call_blocks_only_what_depends_on_it(seed in any::<u64>()) {
        failures(seed)?;
    }

    #[test]
    fn what_was_found_gone_keeps_no_written_name_from_being_replaced(seed in any::<u64>()) {
        replaced_beside_something_gone(seed)?;
    }

    #[test]
    fn a_side_by_side_replacement_touches_nothing_that_serves(seed in any::<u64>()) {
        side_by_side(seed)?;
    }
}

/// More with `NOTATION_CASES`.
fn cases() -> u32 {
    std::env::var("NOTATION_CASES")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(300)
}

fn say(message: impl Into<String>, history: &[String]) -> TestCaseError {
    TestCaseError::fail(format!("{}\n  history: {history:#?}", message.into()))
}

/// A world after a few random generations, and the programs it went through.
fn grown(dice: &mut Dice) -> Result<(World, Sketch, Vec<String>), TestCaseError> {
    let mut world = World::default();
    let mut history = Vec::new();
    let mut program = Sketch::default();
    for _ in 0..1 + dice.roll(3) {
        program = next(dice, &program);
        let text = program.to_string();
        history.push(text.clone());
        world
            .bring_to(&text, dice)
            .map_err(|message| say(message, &history))?;
    }
    Ok((world, program, history))
}

fn next(dice: &mut Dice, program: &Sketch) -> Sketch {
    if dice.one_in(4) {
        sketch(dice, 6)
    } else {
        edit(dice, program, 6)
    }
}

fn generations(seed: u64) -> Result<(), TestCaseError> {
    let dice = &mut Dice::new(seed);
    let mut world = World::default();
    let mut program = sketch(dice, 6);
    let mut history = Vec::new();
    let mut accepted = String::new();
    for _ in 0..4 {
        let text = program.to_string();
        history.push(text.clone());
        if dice.one_in(3) && !program.pieces.is_empty() {
            let at = dice.roll(program.pieces.len());
            let id = program.pieces[at].id.to_string();
            // Nothing at a real console stops somebody from deleting what others refer to.
            world.delete_by_hand(&id);
            history.push(format!("({id} deleted by hand)"));
        }
        let mut options = PlanOptions::default();
        if dice.one_in(4) && !program.pieces.is_empty() {
            let at = dice.roll(program.pieces.len());
            let id = program.pieces[at].id.to_string();
            history.push(format!("(--replace {id})"));
            options.replace.insert(world::program::id(&id));
        }
        let mut outcomes = Vec::new();
        for _ in 0..3 {
            let mut copy = world.clone();
            let outcome = copy
                .bring_to_with(&text, options.clone(), dice)
                .map_err(|message| say(message, &history))?;
            outcomes.push((copy, outcome));
        }
        let (after, first) = outcomes.remove(0);
        match &first {
            Outcome::Refused(error) => {
                let loops = error
                    .problems
                    .iter()
                    .any(|problem| matches!(problem, PlanProblem::Loop(_)));
                if is_deployable(&text) == loops {
                    return Err(say(format!("judged wrongly: {text}: {error}"), &history));
                }
                if !loops && world.records.is_empty() {
                    return Err(say(
                        format!("refused on a fresh stage: {text}: {error}"),
                        &history,
                    ));
                }
            }
            Outcome::Done(calls) => {
                if !is_deployable(&text) {
                    return Err(say(format!("accepted: {text}"), &history));
                }
                for (copy, outcome) in &outcomes {
                    match outcome {
                        Outcome::Done(other)
                            if other == calls && copy.cloud.objects == after.cloud.objects => {}
                        Outcome::Done(other) => {
                            return Err(say(
                                format!("another order, other calls: {calls:?} {other:?}"),
                                &history,
                            ));
                        }
                        Outcome::Refused(error) => {
                            return Err(say(
                                format!("refused in another order: {error}"),
                                &history,
                            ));
                        }
                    }
                }
                let again = after.line(&text);
                if again != "nothing" {
                    return Err(say(format!("planned again: {again}"), &history));
                }
                world = after;
                accepted = text;
            }
        }
        program = next(dice, &program);
    }
    history.push("(destroy)".to_owned());
    for goes_first in [None, Some(accepted)] {
        if let Some(text) = goes_first {
            // Something was deleted by hand that a recorded config refers to: deploying makes it
            // again, and then nothing is in the way.
            world
                .bring_to(&text, dice)
                .map_err(|message| say(message, &history))?;
        }
        match world
            .bring_to("", dice)
            .map_err(|message| say(message, &history))?
        {
            Outcome::Done(_) if world.records.is_empty() && world.cloud.objects.is_empty() => {
                return Ok(());
            }
            Outcome::Done(_) => return Err(say("something is left", &history)),
            Outcome::Refused(error) if is_mixed(&world, &error) => {}
            Outcome::Refused(error) => {
                return Err(say(format!("destroy refused: {error}"), &history));
            }
        }
    }
    Err(say("destroy refused after a deploy", &history))
}

/// A mixed state, and none of its members could have fallen back to less than its config.
fn is_mixed(world: &World, error: &notation_planner::PlanError) -> bool {
    let falls_back = |member: &Incarnation| {
        let record = world.records.get(member);
        record.is_some_and(|record| {
            ["sim/Worker", "sim/Thing"].contains(&record.ty.as_str()) && !record.marks.never_bare
        })
    };
    error.problems.iter().all(|problem| match problem {
        PlanProblem::MixedState { members } => !members.iter().any(falls_back),
        _ => false,
    })
}

fn stops(seed: u64) -> Result<(), TestCaseError> {
    let dice = &mut Dice::new(seed);
    let (mut world, program, mut history) = grown(dice)?;
    if dice.one_in(3) && !program.pieces.is_empty() {
        let at = dice.roll(program.pieces.len());
        let id = program.pieces[at].id.to_string();
        world.delete_by_hand(&id);
        history.push(format!("({id} deleted by hand)"));
    }
    let after = next(dice, &program);
    let wanted = after.to_string();
    history.push(wanted.clone());
    let mut options = PlanOptions::default();
    if dice.one_in(3) && !after.pieces.is_empty() {
        let at = dice.roll(after.pieces.len());
        let id = after.pieces[at].id.to_string();
        history.push(format!("(--target {id})"));
        options.target.insert(world::program::id(&id));
    }
    let Ok(plan) = world.plan_with(&wanted, &options) else {
        return Ok(());
    };
    let calls = dice.roll(plan.steps.len() + 1);
    let end = [run::End::Between, run::End::Unheard, run::End::Lost][dice.roll(3)];
    let ran = run::run_until(&mut world, &plan, &mut |sides| dice.roll(sides), calls, end)
        .map_err(|message| say(format!("{message}\n  plan: {}", line(&plan)), &history))?;
    history.push(format!("(stopped after {:?})", ran.calls));
    for text in [
        wanted.clone(),
        String::new(),
        next(dice, &program).to_string(),
    ] {
        let mut copy = world.clone();
        let outcome = copy
            .bring_to(&text, dice)
            .map_err(|message| say(message, &history))?;
        match outcome {
            Outcome::Done(_) => {
                let again = copy.line(&text);
                if again != "nothing" {
                    return Err(say(
                        format!("planned again for {text:?}: {again}"),
                        &history,
                    ));
                }
            }
            Outcome::Refused(error) => {
                let mixed = is_mixed(&copy, &error);
                if text == wanted {
                    return Err(say(format!("cannot go on: {error}"), &history));
                }
                if is_deployable(&text) && !mixed {
                    return Err(say(format!("refused {text:?}: {error}"), &history));
                }
                if text.is_empty() {
                    destroyed_after_a_deploy(&mut copy, &wanted, dice)
                        .map_err(|message| say(message, &history))?;
                }
            }
        }
    }
    Ok(())
}

/// What the help of a mixed state says.
fn destroyed_after_a_deploy(
    world: &mut World,
    wanted: &str,
    dice: &mut Dice,
) -> Result<(), String> {
    for text in [wanted, ""] {
        if let Outcome::Refused(error) = world.bring_to(text, dice)? {
            return Err(format!("no way out, refused {text:?}: {error}"));
        }
    }
    match world.records.is_empty() && world.cloud.objects.is_empty() {
        true => Ok(()),
        false => Err("something is left".to_owned()),
    }
}

fn failures(seed: u64) -> Result<(), TestCaseError> {
    let dice = &mut Dice::new(seed);
    let (mut world, program, mut history) = grown(dice)?;
    let text = next(dice, &program).to_string();
    history.push(text.clone());
    let Ok(plan) = world.plan(&text) else {
        return Ok(());
    };
    let before = world.clone();
    let unlucky = dice.roll(8) as u8;
    let fails = |call: &str| call.bytes().map(u32::from).sum::<u32>() % 8 == u32::from(unlucky);
    let ran = run::run_failing(
        &mut world,
        &plan,
        &mut |sides| dice.roll(sides),
        usize::MAX,
        &fails,
    )
    .map_err(|message| say(format!("{message}\n  plan: {}", line(&plan)), &history))?;
    history.push(format!("(failing, called {:?})", ran.calls));
    independent_of_failures(&before, &world, &text, &ran, &history)?;
    match world
        .bring_to(&text, dice)
        .map_err(|message| say(message, &history))?
    {
        Outcome::Refused(error) => Err(say(format!("cannot go on: {error}"), &history)),
        Outcome::Done(_) => {
            let again = world.line(&text);
            if again == "nothing" {
                Ok(())
            } else {
                Err(say(format!("planned again: {again}"), &history))
            }
        }
    }
}

/// Whatever has nothing to do with a failure, by references of the program or of the state, is as
/// the program asks.
fn independent_of_failures(
    before: &World,
    after: &World,
    text: &str,
    ran: &run::Ran,
    history: &[String],
) -> Result<(), TestCaseError> {
    let graph = world::program(text);
    let declared = graph.resources.values().flat_map(|resource| {
        resource
            .edges()
            .into_iter()
            .map(|edge| (edge.from.clone(), edge.to.clone()))
            .collect::<Vec<_>>()
    });
    let recorded = before.records.values().flat_map(|record| {
        let from = &record.incarnation.resource;
        let edges = record.edges.iter();
        edges.map(|edge| (from.clone(), edge.to.resource.clone()))
    });
    let edges: Vec<(ResourceId, ResourceId)> = declared.chain(recorded).collect();
    let cycles = |key: &StepKey| match &key.subject {
        Subject::Incarnation(incarnation) => incarnation.resource.clone(),
        Subject::Cycle(cycle) => cycle.0.clone(),
    };
    let mut touched: BTreeSet<ResourceId> = ran.failed.iter().map(cycles).collect();
    loop {
        let more: Vec<ResourceId> = edges
            .iter()
            .filter_map(
                |(from, to)| match (touched.contains(from), touched.contains(to)) {
                    (true, false) => Some(to.clone()),
                    (false, true) => Some(from.clone()),
                    (true, true) | (false, false) => None,
                },
            )
            .collect();
        if more.is_empty() {
            break;
        }
        touched.extend(more);
    }
    let Ok(rest) = after.plan(text) else {
        return Ok(());
    };
    let blocked = rest
        .steps
        .iter()
        .find(|step| !touched.contains(&cycles(&step.key)));
    match blocked {
        None => Ok(()),
        Some(step) => Err(say(
            format!("{} was blocked by {:?}", step.key, ran.failed),
            history,
        )),
    }
}

/// One finished deploy, objects deleted by hand, then other values under written names that
/// configs refer to: nothing of two programs is mixed, so there is a way.
fn replaced_beside_something_gone(seed: u64) -> Result<(), TestCaseError> {
    let dice = &mut Dice::new(seed);
    let mut program = sketch(dice, 6);
    let ids: Vec<char> = program.pieces.iter().map(|piece| piece.id).collect();
    for (at, piece) in program.pieces.iter_mut().enumerate() {
        piece.words.retain(|word| !word.starts_with("region"));
        if "TF".contains(piece.words[0].as_str()) {
            continue;
        }
        piece.words.push("region=0".to_owned());
        if at > 0 && dice.one_in(2) {
            piece.words.push(format!("={}", ids[dice.roll(at)]));
        }
    }
    let before = program.to_string();
    if !is_deployable(&before) {
        return Ok(());
    }
    let mut world = World::default();
    let mut history = vec![before.clone()];
    world
        .bring_to(&before, dice)
        .map_err(|message| say(message, &history))?;
    for _ in 0..1 + dice.roll(2) {
        let id = ids[dice.roll(ids.len())].to_string();
        world.delete_by_hand(&id);
        history.push(format!("({id} deleted by hand)"));
    }
    for piece in &mut program.pieces {
        if dice.one_in(2)
            && let Some(word) = piece.words.iter_mut().find(|word| *word == "region=0")
        {
            *word = "region=1".to_owned();
        }
    }
    for text in [program.to_string(), String::new()] {
        history.push(text.clone());
        match world
            .bring_to(&text, dice)
            .map_err(|message| say(message, &history))?
        {
            Outcome::Refused(error) => return Err(say(format!("refused: {error}"), &history)),
            Outcome::Done(_) => {
                let again = world.line(&text);
                if again != "nothing" {
                    return Err(say(format!("planned again: {again}"), &history));
                }
            }
        }
    }
    Ok(())
}

/// Every name generated, nothing removed: old and new live side by side.
fn side_by_side(seed: u64) -> Result<(), TestCaseError> {
    let dice = &mut Dice::new(seed);
    let mut program = sketch(dice, 6);
    for piece in &mut program.pieces {
        piece
            .words
            .retain(|word| word != "fixed" && !word.starts_with("region"));
        if !"TF".contains(piece.words[0].as_str()) {
            piece.words.push("region=0".to_owned());
        }
    }
    let before = program.to_string();
    if !is_deployable(&before) {
        return Ok(());
    }
    for piece in &mut program.pieces {
        if dice.one_in(2)
            && let Some(word) = piece.words.iter_mut().find(|word| *word == "region=0")
        {
            *word = "region=1".to_owned();
        }
    }
    let after = program.to_string();
    let history = [before.clone(), after.clone()];
    let mut world = World::default();
    world
        .bring_to(&before, dice)
        .map_err(|message| say(message, &history))?;
    let plan = world
        .plan_with(&after, &PlanOptions::default())
        .map_err(|error| say(error.to_string(), &history))?;
    let ran = run::run(&mut world, &plan, &mut |sides| dice.roll(sides), usize::MAX)
        .map_err(|message| say(message, &history))?;
    let reverts_what_stays = plan
        .steps
        .iter()
        .any(|step| step.why == Why::LetsGo && step.forecast.transition == Transition::Revert);
    if reverts_what_stays {
        return Err(say(format!("reverts: {}", line(&plan)), &history));
    }
    // Whatever was superseded is touched only once its successor is final: complete, and its
    // whole cycle settled.
    for (at, key) in ran.order.iter().enumerate() {
        let Subject::Incarnation(old) = &key.subject else {
            continue;
        };
        let successor = plan
            .intended
            .iter()
            .find(|(_, intended)| intended.supersedes.as_ref() == Some(old));
        let Some((new, intended)) = successor else {
            continue;
        };
        let complete = StepKey {
            subject: Subject::Incarnation(new.clone()),
            role: Role::Complete,
        };
        let settled = intended.cycle.clone().map(|cycle| StepKey {
            subject: Subject::Cycle(cycle),
            role: Role::Settle { pass: 0 },
        });
        let before = &ran.order[..at];
        let missing = [Some(complete), settled]
            .into_iter()
            .flatten()
            .find(|step| plan.steps.iter().any(|it| it.key == *step) && !before.contains(step));
        if let Some(step) = missing {
            return Err(say(
                format!("{key} came before {step}: {}", line(&plan)),
                &history,
            ));
        }
    }
    Ok(())
}
