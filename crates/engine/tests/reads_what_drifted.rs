//! What somebody changed by hand: it is shown, reverted around, and hidden where it must be.
#![allow(clippy::unwrap_used, reason = "its helpers are test code")]

mod support;

use std::sync::Arc;

use notation_engine::{Report, deploy, forget, import, plan, refresh};
use notation_model::{Expr, SecretName, SecretValue, Value};
use notation_planner::Recorded;
use notation_state::MemoryStore;
use support::{
    Bench, Fault, Program,
    cloud::What,
    program::{id, out, resource, text, worker},
};

#[tokio::test]
async fn drift_of_what_cannot_be_changed_is_shown_though_it_replaces() {
    let bench = Bench::new();
    let program = Program::new([
        worker("a").set("region", "eu"),
        resource("sim/Frozen", "f").named("ice").set("value", "1"),
    ]);
    bench.done(&program).await;
    bench.cloud.change("shop-dev-a", "region", text("us"));
    bench.cloud.change("ice", "value", text("2"));
    let planned = plan(&bench.session, &program.graph(), &bench.options)
        .await
        .unwrap();
    let notes = planned
        .plan
        .notes
        .iter()
        .filter(|note| note.code == "drift");
    let said: Vec<&str> = notes.map(|note| note.message.as_str()).collect();
    assert_eq!(
        said,
        [
            "a differs at the provider: region is \"us\" instead of \"eu\"",
            "f differs at the provider: value is \"2\" instead of \"1\"",
        ]
    );
}

#[tokio::test]
async fn a_revert_leaves_what_cannot_be_changed_as_it_is_found() {
    let pair = Program::new([
        worker("a").set("region", "eu").binds("b"),
        worker("b").binds("a"),
    ]);
    let bench = Bench::new();
    bench.done(&pair).await;
    bench.cloud.change("shop-dev-a", "region", text("us"));
    bench.cloud.forget_calls();
    let report = bench.destroy().await.unwrap();
    assert!(report.failed.is_empty(), "{:?}", report.failed);
    assert!(bench.cloud.names().is_empty());
    assert_eq!(bench.cloud.refusals(), Vec::<String>::new());

    // One that is bound to itself is replaced, and the old one lets go of itself.
    let itself = Program::new([worker("a").set("region", "eu").binds("a")]);
    let bench = Bench::new();
    bench.done(&itself).await;
    bench.cloud.change("shop-dev-a", "region", text("us"));
    bench.done(&itself).await;
    assert_eq!(bench.cloud.refusals(), Vec::<String>::new());
    bench.quiet(&itself).await;
    bench.consistent().await;
}

#[tokio::test]
async fn an_imported_member_is_reverted_to_what_its_config_gives_the_collected_field() {
    let kv = Value::List(vec![Value::Map([("type", Value::text("kv"))].into())]);
    let strict = resource("sim/StrictWorker", "a").set("bindings", Expr::Known(kv.clone()));
    let program = Program::new([strict.binds("b"), worker("b").binds("a")]);
    let bench = Bench::new();
    bench.done(&program).await;
    forget(&bench.session, &id("a"), &bench.options)
        .await
        .unwrap();
    let key = "shop-dev-a";
    import(
        &bench.session,
        &program.graph(),
        &id("a"),
        key,
        &bench.options,
    )
    .await
    .unwrap();
    let state = bench.store.load(&bench.session.deployment).await.unwrap();
    let mut records = state.records.values();
    let a = records.find(|record| record.key == key).unwrap();
    assert_eq!(a.config.get("bindings"), Some(&kv));
    bench.cloud.forget_calls();
    let report = bench.destroy().await.unwrap();
    assert!(report.failed.is_empty(), "{:?}", report.failed);
    assert!(bench.cloud.names().is_empty());
}

const FIRST: &str = "s3cret-one";

async fn with_secret(value: &str, bench: &Bench) {
    let name: SecretName = "K".parse().unwrap();
    let value = SecretValue::new(text(value));
    let set = bench
        .store
        .set_secret(&bench.session.deployment, &name, &value);
    set.await.unwrap();
}

/// A value with its secrets in clear.
fn clear(value: &Value) -> Value {
    match value {
        Value::Secret(secret) => clear(secret.reveal()),
        Value::List(items) => Value::List(items.iter().map(clear).collect()),
        Value::Map(members) => Value::Map(
            members
                .iter()
                .map(|(name, member)| (name.clone(), clear(member)))
                .collect(),
        ),
        other => other.clone(),
    }
}

fn keyed() -> Expr {
    Expr::Join(vec![
        text("key=").into(),
        Expr::Secret("K".parse().unwrap()),
    ])
}

/// Everything that a plan, a refresh and the state say.
async fn all_that_is_said(bench: &Bench, program: &Program) -> String {
    let planned = plan(&bench.session, &program.graph(), &bench.options)
        .await
        .unwrap();
    assert!(!planned.plan.notes.is_empty(), "the drift is seen");
    refresh(&bench.session, &bench.options).await.unwrap();
    let state = bench.store.load(&bench.session.deployment).await.unwrap();
    format!("{planned:?} {state:?}")
}

#[tokio::test]
async fn what_is_found_where_a_secret_was_is_a_secret() {
    // Of the very field, of one that reads it, and inside a list.
    let item = Expr::Map([("token", keyed()), ("type", text("kv").into())].into());
    let program = Program::new([
        worker("a").set("code", keyed()),
        worker("b").set("code", out("a", "code")),
        worker("c").set("bindings", Expr::List(vec![item])),
    ]);
    let bench = Bench::new();
    with_secret(FIRST, &bench).await;
    bench.done(&program).await;
    let names = bench.cloud.names();
    let yesterday: Vec<_> = names.iter().map(|name| bench.cloud.object(name)).collect();
    with_secret("s3cret-two", &bench).await;
    bench.done(&program).await;
    for (name, thing) in names.iter().zip(yesterday) {
        let mut thing = thing.unwrap();
        // A real cloud knows nothing of secrets.
        thing.params = thing
            .params
            .iter()
            .map(|(field, value)| (field.clone(), clear(value)))
            .collect();
        bench.cloud.put(name, thing);
    }
    let said = all_that_is_said(&bench, &program).await;
    assert!(!said.contains("s3cret"), "{said}");
    // And it is put right all the same.
    bench.done(&program).await;
    bench.quiet(&program).await;
}

#[tokio::test]
async fn what_is_found_where_the_program_wants_a_secret_is_a_secret() {
    let before = Program::new([worker("a").set("code", "open")]);
    let bench = Bench::new();
    with_secret(FIRST, &bench).await;
    bench.done(&before).await;
    // Somebody was quicker than the deploy.
    bench
        .cloud
        .change("shop-dev-a", "code", text("key=s3cret-one"));
    let program = Program::new([worker("a").set("code", keyed())]);
    let planned = plan(&bench.session, &program.graph(), &bench.options)
        .await
        .unwrap();
    assert!(!format!("{planned:?}").contains("s3cret"));

    forget(&bench.session, &id("a"), &bench.options)
        .await
        .unwrap();
    let graph = program.graph();
    import(
        &bench.session,
        &graph,
        &id("a"),
        "shop-dev-a",
        &bench.options,
    )
    .await
    .unwrap();
    let state = bench.store.load(&bench.session.deployment).await.unwrap();
    assert!(!format!("{state:?}").contains("s3cret"));
}

#[tokio::test]
async fn a_name_that_turns_out_to_be_a_secret_is_not_given() {
    let store = Arc::new(MemoryStore::new());
    let bench = Bench::with(Default::default(), support::shop(), store.clone());
    bench.cloud.hide_arns();
    let name = Expr::Join(vec![text("n-").into(), out("b", "arn")]);
    let program = Program::new([worker("b"), worker("a").set("Name", name)]);
    let refused = |report: &Report| {
        let failed: Vec<_> = report.failed.iter().map(|step| &step.error).collect();
        assert_eq!(failed.len(), 1, "{failed:?}");
        assert_eq!(failed[0].code(), "plan::secret_key");
        failed[0].to_string()
    };
    let report = bench.deploy(&program).await.unwrap();
    let said = refused(&report);
    assert_eq!(said, "`Name` names a and is made of a secret");
    assert_eq!(bench.cloud.writes(), ["create b{}"]);
    let state = bench.store.load(&bench.session.deployment).await.unwrap();
    let journal = store.journal(&bench.session.deployment);
    let written = format!("{journal:?} {state:?} {report:?}");
    assert!(!written.contains("arn:shop-dev-b"), "{written}");
    assert!(state.open.is_empty(), "nothing was announced of it");
    // Known by now, it is refused before anything is done.
    let error = bench.deploy(&program).await.unwrap_err();
    assert_eq!(error.code(), "plan::secret_key");
    let said = error.to_string();
    assert_eq!(said, "`Name` names a and is made of a secret, b.arn");
}

#[tokio::test]
async fn a_report_tells_what_was_recorded_and_nothing_of_what_failed() {
    let bench = Bench::new();
    bench
        .done(&Program::new([worker("a"), worker("b"), worker("c")]))
        .await;
    let mut graph = Program::new([worker("a"), worker("bb"), worker("c").set("code", "2")]).graph();
    for (id, desired) in &mut graph.resources {
        desired.marks.protect = true;
        if id.as_str() == "bb" {
            desired.formerly.push(support::program::id("b"));
        }
    }
    let planned = plan(&bench.session, &graph, &bench.options).await.unwrap();
    let of = |resource: &str, formerly: Option<&str>| Recorded {
        resource: id(resource),
        formerly: formerly.map(id),
        protect: Some(true),
        never_bare: None,
    };
    let all = [of("a", None), of("bb", Some("b")), of("c", None)];
    assert_eq!(planned.plan.recorded, all);
    assert_eq!(planned.plan.unchanged, 0);
    // The mark of c comes with its write.
    bench.cloud.fault(Fault::new("update", "c", What::Fail, 1));
    let graph = Arc::new(graph);
    let report = deploy(&bench.session, graph.clone(), &bench.options)
        .await
        .unwrap();
    assert_eq!(report.recorded, all[..2]);
    let report = deploy(&bench.session, graph.clone(), &bench.options)
        .await
        .unwrap();
    assert_eq!(report.recorded, all[2..]);
    let report = deploy(&bench.session, graph, &bench.options).await.unwrap();
    assert_eq!(report.recorded, []);
}
