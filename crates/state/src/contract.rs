//! The contract of a state store, runnable: every store that is to be used passes [`run`].

mod unknown;

use std::{collections::BTreeMap, sync::Arc};

use notation_model::{
    DeploymentId, Incarnation, Map, Marks, Params, Record, RecordedEdge, SecretName, SecretValue,
    Shape, Standing, Value, Via,
};

use crate::{
    Acquired, Batch, Call, Change, Claim, Entry, Event, Hold, Intent, LEASE_MS, Machine, Outcome,
    RunId, StateStore, StoreError,
};

/// Runs every check against a store that has nothing in it. Needs a Tokio runtime of any kind; times
/// are the suite's own, so the store must not read a clock.
///
/// Panics when the store breaks its contract, saying how: it is meant for tests.
pub async fn run(store: Arc<dyn StateStore>) {
    nothing_reads_as_empty(&*store).await;
    records_come_back_as_they_were(&*store).await;
    a_batch_is_whole_or_not_at_all(&*store).await;
    intents_stay_open_until_their_outcome(&*store).await;
    an_open_intent_outlives_any_number_of_runs(&*store).await;
    an_older_hold_writes_nothing(&*store).await;
    holds_are_leases(&*store).await;
    unknown::nothing_unknown_is_kept(&*store).await;
    batches_at_the_same_time_are_all_written(store.clone()).await;
    secrets_are_kept_per_deployment(&*store).await;
    deployments_are_listed(&*store).await;
}

/// A deployment of the suite.
fn deployment(stage: &str) -> DeploymentId {
    let text = format!("shop:{stage}:main");
    text.parse().expect("the suite's names are names")
}

/// A record with everything that can be in one.
pub fn sample(id: &str, generation: u32) -> Record {
    let secret = Value::Secret(SecretValue::new(Value::text("hunter2")));
    let applied = Params::from([
        ("Name", Value::text(id)),
        ("null", Value::Null),
        ("truth", Value::Bool(true)),
        ("int", Value::Int(-7)),
        ("float", Value::Float(1.5)),
        ("whole", Value::Float(2.0)),
        ("secret", secret.clone()),
        ("list", Value::List(vec![Value::Int(1), secret.clone()])),
        (
            "odd",
            Value::Map(Map::from([("$secret", Value::text("no"))])),
        ),
        ("asset", notation_model::Asset::of(b"bytes").into()),
    ]);
    let mut outputs = applied.clone();
    outputs.remove("null");
    outputs.insert("arn", Value::text("arn:1"));
    outputs.insert("int", Value::Int(8));
    let mut config = applied.clone();
    config.remove("list");
    let target = Incarnation {
        resource: "b".parse().expect("a name"),
        generation: 3,
    };
    let edge = |via: Via, holds: bool| RecordedEdge {
        to: target.clone(),
        via,
        holds,
    };
    Record {
        incarnation: Incarnation {
            resource: id.parse().expect("a name"),
            generation,
        },
        ty: "sim/Worker".parse().expect("a name"),
        shape: Shape::Complete,
        standing: Standing::Superseded,
        key: format!("{id}-key").into(),
        applied,
        config,
        contributions: vec![("list".into(), secret)],
        outputs,
        edges: vec![
            edge(Via::Config("x.y".into()), true),
            edge(Via::Contribution("list".into()), true),
            edge(Via::DependOn, false),
        ],
        marks: Marks {
            protect: true,
            never_bare: true,
        },
        can_be_bare: true,
        gone: true,
        in_doubt: true,
        former: vec!["old".parse().expect("a good id")],
        taken_from: Some("notation:app=other".into()),
        version: 9,
    }
}

fn claim(machine: &str, now_ms: u64) -> Claim {
    Claim {
        run: RunId::random(),
        machine: Machine::here(machine),
        now_ms,
        over: None,
    }
}

async fn held(store: &dyn StateStore, deployment: &DeploymentId) -> Hold {
    match store.acquire(deployment, &claim("m", 1000)).await {
        Ok(Acquired::Free(hold)) => hold,
        other => panic!("a free deployment can be held: {other:?}"),
    }
}

fn entry(hold: &Hold, step: &str, event: Event) -> Entry {
    Entry {
        run: hold.run.clone(),
        step: step.to_owned(),
        attempt: 1,
        at_ms: 1234,
        event,
    }
}

fn intent(id: &str) -> Event {
    Event::Intent(Box::new(Intent {
        call: Call::Create,
        token: format!("token-{id}"),
        draft: sample(id, 0),
    }))
}

async fn put(store: &dyn StateStore, deployment: &DeploymentId, hold: &Hold, id: &str) {
    let batch = Batch {
        entries: Vec::new(),
        changes: vec![Change::put(sample(id, 0))],
    };
    let written = store.append(deployment, hold, batch).await;
    written.expect("the holder can write");
}

async fn nothing_reads_as_empty(store: &dyn StateStore) {
    let state = store.load(&deployment("none")).await;
    assert_eq!(state.expect("nothing can be read"), Default::default());
    assert!(matches!(store.hold(&deployment("none")).await, Ok(None)));
    assert!(matches!(
        store.clear_hold(&deployment("none")).await,
        Ok(None)
    ));
    let secrets = store.secrets(&deployment("none")).await;
    assert!(secrets.expect("nothing can be read").is_empty());
    let all = store.deployments().await.expect("nothing can be listed");
    assert!(all.is_empty(), "nothing is listed: {all:?}");
}

async fn records_come_back_as_they_were(store: &dyn StateStore) {
    let here = deployment("records");
    let hold = held(store, &here).await;
    put(store, &here, &hold, "a").await;
    put(store, &here, &hold, "b").await;
    let mut changed = sample("a", 0);
    changed.version = 10;
    changed.outputs.clear();
    let exports = BTreeMap::from([("url".to_owned(), sample("x", 0).applied["list"].clone())]);
    let batch = Batch {
        entries: Vec::new(),
        changes: vec![
            Change::put(changed.clone()),
            Change::Remove(sample("b", 0).incarnation),
            Change::put(sample("a", 1)),
            Change::Exports(exports.clone()),
        ],
    };
    store
        .append(&here, &hold, batch)
        .await
        .expect("the holder can write");
    let state = store.load(&here).await.expect("what was written reads");
    let records: Vec<Record> = state.records.into_values().collect();
    assert_eq!(records, vec![changed, sample("a", 1)]);
    assert_eq!(state.exports, exports);
    let taken = Some(1000);
    assert_eq!(state.last_run_ms, taken, "when a run last took the hold");
    let exports = BTreeMap::from([("other".to_owned(), Value::Int(1))]);
    let batch = Batch {
        entries: Vec::new(),
        changes: vec![Change::Exports(exports.clone())],
    };
    let written = store.append(&here, &hold, batch).await;
    written.expect("the holder can write");
    let state = store.load(&here).await.expect("what was written reads");
    assert_eq!(state.exports, exports, "exports replace all of them");
    store
        .release(&here, &hold)
        .await
        .expect("it can be released");
}

async fn a_batch_is_whole_or_not_at_all(store: &dyn StateStore) {
    let here = deployment("whole");
    let hold = held(store, &here).await;
    let illegal = Batch {
        entries: vec![
            entry(&hold, "a:0:complete", intent("a")),
            entry(&hold, "b:0:complete", Event::Outcome(Outcome::Done)),
        ],
        changes: vec![Change::put(sample("a", 0))],
    };
    let refused = store.append(&here, &hold, illegal).await;
    assert!(
        matches!(refused, Err(StoreError::Illegal { .. })),
        "an outcome without intent is refused: {refused:?}"
    );
    let state = store.load(&here).await.expect("it reads");
    assert!(state.records.is_empty() && state.open.is_empty());
    put(store, &here, &hold, "a").await;
    store
        .release(&here, &hold)
        .await
        .expect("it can be released");
}

async fn intents_stay_open_until_their_outcome(store: &dyn StateStore) {
    let here = deployment("journal");
    let hold = held(store, &here).await;
    let write = async |entries: Vec<Entry>| {
        let batch = Batch {
            entries,
            changes: Vec::new(),
        };
        let written = store.append(&here, &hold, batch).await;
        written.expect("the journal allows it");
    };
    write(vec![
        entry(&hold, "a:0:complete", intent("a")),
        entry(&hold, "b:0:complete", intent("b")),
        entry(&hold, "c:0:complete", intent("c")),
    ])
    .await;
    let resume = serde_json::json!({ "ticket": 7 });
    let waiting = Event::Waiting {
        resume: resume.clone(),
        due_ms: 5,
        reason: "at work".into(),
    };
    let failed = Event::Failed { error: "no".into() };
    write(vec![
        entry(&hold, "a:0:complete", Event::Outcome(Outcome::Done)),
        entry(&hold, "b:0:complete", waiting),
        entry(&hold, "c:0:complete", failed),
    ])
    .await;
    // Also a run that was released leaves its open intents to the next one.
    store
        .release(&here, &hold)
        .await
        .expect("it can be released");
    let next = held(store, &here).await;
    let state = store.load(&here).await.expect("it reads");
    let [open] = state.open.as_slice() else {
        panic!("one is open: {:?}", state.open)
    };
    assert_eq!(open.step, "b:0:complete");
    assert_eq!(open.resume, Some(resume));
    assert_eq!(open.intent.draft, sample("b", 0));
    let batch = Batch {
        entries: vec![entry(
            &next,
            "b:0:complete",
            Event::Outcome(Outcome::Closed),
        )],
        changes: Vec::new(),
    };
    let closed = store.append(&here, &next, batch).await;
    closed.expect("an earlier run's intent can be closed");
    let state = store.load(&here).await.expect("it reads");
    assert_eq!(state.open, Vec::new());
    store
        .release(&here, &next)
        .await
        .expect("it can be released");
}

async fn an_open_intent_outlives_any_number_of_runs(store: &dyn StateStore) {
    let here = deployment("runs");
    let write = async |hold: &Hold, event: Event| {
        let batch = Batch {
            entries: vec![entry(hold, "a:0:complete", event)],
            changes: Vec::new(),
        };
        let written = store.append(&here, hold, batch).await;
        written.expect("the journal allows it");
    };
    for _ in 0..3 {
        let hold = held(store, &here).await;
        for _ in 0..3 {
            write(&hold, intent("a")).await;
            write(&hold, Event::Outcome(Outcome::Done)).await;
        }
        store
            .release(&here, &hold)
            .await
            .expect("it can be released");
    }
    let lost = held(store, &here).await;
    write(&lost, intent("a")).await;
    // It is killed; whoever reads, and whoever comes next, finds the intent.
    let state = store.load(&here).await.expect("it reads");
    assert_eq!(state.open.len(), 1, "also without taking over");
    for _ in 0..3 {
        store.clear_hold(&here).await.expect("it can be cleared");
        let next = held(store, &here).await;
        let state = store.load(&here).await.expect("it reads");
        assert_eq!(state.open.len(), 1);
        store
            .release(&here, &next)
            .await
            .expect("it can be released");
        let state = store.load(&here).await.expect("it reads");
        assert_eq!(state.open.len(), 1);
    }
}

async fn an_older_hold_writes_nothing(store: &dyn StateStore) {
    let here = deployment("fence");
    let old = held(store, &here).await;
    let taken = store.acquire(&here, &claim("n", 1000 + LEASE_MS)).await;
    let Ok(Acquired::TakenOver { hold: new, from }) = taken else {
        panic!("a lease that ended is taken over: {taken:?}")
    };
    assert_eq!(from.fence, old.fence);
    assert!(new.fence > old.fence);
    put(store, &here, &new, "a").await;
    let batch = Batch {
        entries: Vec::new(),
        changes: vec![Change::Remove(sample("a", 0).incarnation)],
    };
    for refused in [
        store.append(&here, &old, batch).await,
        store.renew(&here, &old, 2000).await,
    ] {
        assert!(
            matches!(refused, Err(StoreError::Fenced { .. })),
            "the older hold is refused: {refused:?}"
        );
    }
    // Giving back what one does not have changes nothing.
    let released = store.release(&here, &old).await;
    released.expect("it is without effect");
    put(store, &here, &new, "c").await;
    let cleared = store.clear_hold(&here).await.expect("it can be cleared");
    assert_eq!(cleared.map(|hold| hold.fence), Some(new.fence));
    let batch = Batch {
        entries: Vec::new(),
        changes: vec![Change::put(sample("d", 0))],
    };
    let refused = store.append(&here, &new, batch).await;
    let Err(refused @ StoreError::Fenced { .. }) = refused else {
        panic!("a cleared hold is refused: {refused:?}")
    };
    let told = refused.to_string();
    assert!(told.contains("was cleared"), "{told}");
    let state = store.load(&here).await.expect("it reads");
    assert_eq!(state.records.len(), 2);
}

async fn holds_are_leases(store: &dyn StateStore) {
    let here = deployment("lease");
    let hold = held(store, &here).await;
    let taken = store.acquire(&here, &claim("n", 1001)).await;
    let Ok(Acquired::Taken(theirs)) = taken else {
        panic!("it is held: {taken:?}")
    };
    assert_eq!(theirs, hold);
    let renewed = store.renew(&here, &hold, 1000 + LEASE_MS).await;
    renewed.expect("the holder can renew");
    let present = store.hold(&here).await.expect("it reads");
    assert_eq!(
        present.map(|hold| hold.expires_ms),
        Some(1000 + 2 * LEASE_MS),
        "a renewal lasts for a whole lease"
    );
    let taken = store.acquire(&here, &claim("n", 1000 + LEASE_MS)).await;
    assert!(matches!(taken, Ok(Acquired::Taken(_))), "{taken:?}");
    let dead = Claim {
        over: Some(hold.fence),
        ..claim("n", 1001)
    };
    let taken = store.acquire(&here, &dead).await;
    let Ok(Acquired::TakenOver { hold, .. }) = taken else {
        panic!("a dead holder is taken over: {taken:?}")
    };
    let present = store.hold(&here).await.expect("it reads");
    assert_eq!(present.as_ref(), Some(&hold));
    store
        .release(&here, &hold)
        .await
        .expect("it can be released");
    assert!(matches!(store.hold(&here).await, Ok(None)));
}

async fn batches_at_the_same_time_are_all_written(store: Arc<dyn StateStore>) {
    let here = deployment("group");
    let hold = held(&*store, &here).await;
    let tasks: Vec<_> = (0..50)
        .map(|number| {
            let (store, here, hold) = (store.clone(), here.clone(), hold.clone());
            tokio::spawn(async move {
                let id = format!("r{number}");
                let step = format!("{id}:0:complete");
                let announced = Batch {
                    entries: vec![entry(&hold, &step, intent(&id))],
                    changes: Vec::new(),
                };
                let done = Batch {
                    entries: vec![entry(&hold, &step, Event::Outcome(Outcome::Done))],
                    changes: vec![Change::put(sample(&id, 0))],
                };
                store.append(&here, &hold, announced).await?;
                store.append(&here, &hold, done).await
            })
        })
        .collect();
    for task in tasks {
        let written = task.await.expect("it does not panic");
        written.expect("the holder can write");
    }
    let state = store.load(&here).await.expect("it reads");
    assert_eq!(state.records.len(), 50);
    assert_eq!(state.open, Vec::new());
    store
        .release(&here, &hold)
        .await
        .expect("it can be released");
}

async fn secrets_are_kept_per_deployment(store: &dyn StateStore) {
    let (one, other) = (deployment("secrets"), deployment("others"));
    let name: SecretName = "STRIPE_KEY".parse().expect("a name");
    let value = |text: &str| SecretValue::new(Value::text(text));
    for text in ["first", "second"] {
        let set = store.set_secret(&one, &name, &value(text)).await;
        set.expect("a secret can be set");
    }
    let set = store.secrets(&one).await.expect("it reads");
    assert_eq!(set[&name], Value::text("second"));
    let marks = store.secret_marks(&one).await.expect("it reads");
    assert!(marks.keys().eq(set.keys()));
    assert!(
        marks.values().all(|mark| !mark.contains("second")),
        "a mark tells nothing of its secret"
    );
    let (reset, text) = set.first_key_value().expect("some are set");
    let again = SecretValue::new(text.clone());
    let same = store.set_secret(&one, reset, &again).await;
    same.expect("a secret can be set again");
    let later = store.secret_marks(&one).await.expect("it reads");
    let moved = later
        .iter()
        .filter(|(name, mark)| marks.get(name) != Some(mark));
    assert!(
        moved.map(|(name, _)| name).eq([reset]),
        "also to the same value"
    );
    let names = store.secret_names(&one).await.expect("it reads");
    assert_eq!(names, vec![name.clone()]);
    let none = store.secret_names(&other).await.expect("it reads");
    assert!(none.is_empty());
    let removed = store.remove_secret(&one, &name).await;
    assert!(removed.expect("it can be removed"));
    let removed = store.remove_secret(&one, &name).await;
    assert!(!removed.expect("it is gone"));
}

async fn deployments_are_listed(store: &dyn StateStore) {
    let all = store.deployments().await.expect("they are listed");
    let names: Vec<String> = all
        .iter()
        .map(|summary| format!("{} {}", summary.deployment.stage, summary.records))
        .collect();
    assert_eq!(names, ["fence 2", "group 50", "records 2", "whole 1"]);
    let run = all.iter().map(|summary| summary.last_run_ms);
    let taken = [1000 + LEASE_MS, 1000, 1000, 1000].map(Some);
    assert!(run.eq(taken), "when a run last took each hold: {all:?}");
}
