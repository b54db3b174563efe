//! Values that references put together: secret, deep, or of another kind than a name can be.
#![allow(clippy::unwrap_used, reason = "its helpers are test code")]

mod support;

use std::{path::Path, sync::Arc};

use notation_engine::{EngineError, StepError};
use notation_model::{Expr, OutputRef, SecretName, SecretValue, Segment, Value};
use notation_state::{KeySource, SqliteStore};
use support::{
    Bench, Cloud, Program,
    program::{Item, id, out, text, worker},
    shop,
};

/// A deployment whose state is a file: what is written has to be read back.
fn on_disk(dir: &Path) -> Bench {
    let key = KeySource::File(dir.join("key"));
    let store = SqliteStore::open(dir.join("state.db"), key);
    Bench::with(Cloud::new(), shop(), Arc::new(store))
}

fn list(items: impl IntoIterator<Item = Expr>) -> Expr {
    Expr::List(items.into_iter().collect())
}

/// An expression in so many lists.
fn wrapped(expr: Expr, levels: usize) -> Expr {
    (0..levels).fold(expr, |inner, _| list([inner]))
}

/// `w0.code` is 1, and each of the others has the code of the one before in 29 lists.
fn chain(length: usize) -> Program {
    let first = worker("w0").set("code", Value::Int(1));
    let rest = (1..length).map(|number| {
        let before = out(&format!("w{}", number - 1), "code");
        worker(&format!("w{number}")).set("code", wrapped(before, 29))
    });
    Program::new([first].into_iter().chain(rest))
}

fn member(resource: &str, path: [&str; 2]) -> Expr {
    Expr::Output(OutputRef {
        resource: id(resource),
        path: path
            .map(|key| Segment::Key(key.into()))
            .into_iter()
            .collect(),
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_value_that_references_nest_too_deep_is_refused_and_state_stays_readable() {
    let dir = tempfile::tempdir().unwrap();
    let bench = on_disk(dir.path());
    let report = bench.deploy(&chain(6)).await.unwrap();
    let [failed] = report.failed.as_slice() else {
        panic!("{:?}", report.failed)
    };
    assert_eq!(failed.error.code(), "run::too_deep");
    assert_eq!(
        failed.error.to_string(),
        "`code` of w3 nests 87 levels deep; 64 are the most (read from w2.code)"
    );
    assert_eq!(
        bench.cloud.names(),
        ["shop-dev-w0", "shop-dev-w1", "shop-dev-w2"]
    );
    bench.consistent().await;

    // What is recorded is known to the next plan, so there is none.
    let deeper = Program::new([
        worker("w0").set("code", Value::Int(1)),
        worker("w1").set("code", wrapped(out("w0", "code"), 29)),
        worker("w2").set("code", wrapped(out("w1", "code"), 36)),
    ]);
    let refused = bench.deploy(&deeper).await.unwrap_err();
    assert_eq!(refused.code(), "plan::too_deep");
    assert_eq!(
        refused.to_string(),
        "`code` of w2 nests 65 levels deep; 64 are the most (read from w1.code)"
    );
    bench.done(&chain(3)).await;
    // Also of a new one.
    let refused = bench.deploy(&chain(4)).await.unwrap_err();
    assert_eq!(refused.code(), "plan::too_deep");
    let deep = chain(3).export("q", wrapped(out("w2", "code"), 20));
    let refused = bench.deploy(&deep).await.unwrap_err();
    assert_eq!(
        refused.to_string(),
        "the export `q` nests 78 levels deep; 64 are the most (read from w2.code)"
    );
    bench.destroy().await.unwrap();
    bench.consistent().await;
    // Found out at the end of the run, it is not stored.
    let report = bench.deploy(&deep).await.unwrap();
    assert_eq!(report.not_recorded.unwrap().code(), "state::too_deep");
    bench.consistent().await;
    assert_eq!(bench.destroy().await.unwrap().failed.len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_that_wrap_each_other_end_with_the_field_named_and_can_be_destroyed() {
    let dir = tempfile::tempdir().unwrap();
    let bench = on_disk(dir.path());
    let program = Program::new([
        worker("a").contributes("code", list([out("a", "Name"), out("b", "code")])),
        worker("b").contributes("code", list([out("a", "code")])),
    ]);
    for run in 1.. {
        assert!(run < 64, "every run adds a level");
        match bench.deploy(&program).await {
            Ok(report) => {
                let [failed] = report.failed.as_slice() else {
                    panic!("{:?}", report.failed)
                };
                let StepError::TooDeep { field, levels, .. } = &failed.error else {
                    assert_eq!(failed.error.code(), "run::unsettled");
                    continue;
                };
                assert_eq!((field.as_str(), *levels > 64), ("code", true));
                assert!(["a", "b"].contains(&failed.resource.as_str()));
                break;
            }
            Err(EngineError::Plan(error)) => {
                assert!(error.to_string().contains("`code` of "), "{error}");
                break;
            }
            Err(error) => panic!("{error}"),
        }
    }
    bench.consistent().await;
    assert_eq!(bench.destroy().await.unwrap().failed.len(), 0);
    assert_eq!(bench.cloud.names(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_text_of_a_list_with_a_secret_in_it_lies_in_no_file_in_clear() {
    let dir = tempfile::tempdir().unwrap();
    let bench = on_disk(dir.path());
    let name: SecretName = "A".parse().unwrap();
    let value = SecretValue::new(text("TOPSECRET1"));
    let here = shop();
    let set = bench.store.set_secret(&here, &name, &value);
    set.await.unwrap();
    let code = || Expr::Join(vec!["u-".into(), out("w", "code")]);
    let program = Program::new([
        worker("w").set("code", list([Expr::Secret(name), Value::Int(1).into()])),
        worker("v").set("code", code()),
    ])
    .export("u", code());
    bench.done(&program).await;
    bench.quiet(&program).await;

    let told = bench.cloud.object("shop-dev-v").unwrap();
    let state = bench.store.load(&here).await.unwrap();
    let whole = Value::Secret(SecretValue::new(text(r#"u-["TOPSECRET1",1]"#)));
    assert_eq!(told.params.get("code"), Some(&whole));
    assert_eq!(state.exports["u"], whole);
    for file in std::fs::read_dir(dir.path()).unwrap() {
        let bytes = std::fs::read(file.unwrap().path()).unwrap();
        assert!(!bytes.windows(10).any(|part| part == b"TOPSECRET1"));
    }
}

#[tokio::test]
async fn a_name_that_turns_out_to_be_no_text_is_refused() {
    let code = |value: Value| Value::Map([("n".to_owned(), value)].into());
    let kinds = [
        (Value::Int(5), "a number"),
        (Value::List(Vec::new()), "a list"),
        (Value::Null, "null"),
        (Value::Bool(true), "true or false"),
        (text(""), "an empty one"),
    ];
    let named = |item: Item, key: &str| item.set("Name", member("w", ["code", key]));
    for (value, kind) in kinds {
        let bench = Bench::new();
        let w = worker("w").set("code", code(value));
        let program = Program::new([w, named(worker("v"), "n")]);
        let report = bench.deploy(&program).await.unwrap();
        let [failed] = report.failed.as_slice() else {
            panic!("{:?}", report.failed)
        };
        assert_eq!(failed.error.code(), "run::wrong_kind");
        let said = format!("`Name` of v takes a text, not {kind} (read from w.code.n)");
        assert_eq!(failed.error.to_string(), said);
        assert_eq!(bench.cloud.names(), ["shop-dev-w"]);
        // The next plan knows it, although the resource is new.
        let refused = bench.deploy(&program).await.unwrap_err();
        assert_eq!(
            (refused.code(), refused.to_string()),
            ("plan::wrong_kind", said)
        );
    }
    let bench = Bench::new();
    let w = || worker("w").set("code", code(text("there")));
    let missing = Program::new([w(), named(worker("v"), "typo")]);
    let report = bench.deploy(&missing).await.unwrap();
    assert_eq!(report.failed[0].error.code(), "run::wrong_kind");
    bench
        .done(&Program::new([w(), named(worker("v"), "n")]))
        .await;
    assert_eq!(bench.cloud.names(), ["shop-dev-w", "there"]);
    // Of what is there, it is known before the run.
    let w = worker("w").set("code", code(Value::Int(5)));
    let program = Program::new([w, named(worker("v"), "n")]);
    let refused = bench.deploy(&program).await.unwrap_err();
    assert_eq!(refused.code(), "plan::wrong_kind");
    let said = "`Name` of v takes a text, not a number (read from w.code.n)";
    assert_eq!(refused.to_string(), said);
}
