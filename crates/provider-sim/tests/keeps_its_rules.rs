//! Every rule of the simulated cloud, from outside.

#![allow(clippy::unwrap_used, reason = "words for tests")]

mod common;

use common::*;
use notation_model::{SecretValue, Value};
use notation_provider::{HeldBy, LookFor, OpError, Provider as _};
use notation_provider_sim::SimProvider;
use serde_json::json;

#[tokio::test]
async fn a_write_cannot_name_what_does_not_exist() {
    let lab = Lab::new();
    let message = refused(lab.create("Worker", binds("a", &["b"])).await);
    assert_eq!(message, "a refers to b, which does not exist");
    refused(
        lab.create("Thing", json!({ "Name": "t", "parent": "b" }))
            .await,
    );
    done(lab.create("Worker", binds("b", &[])).await);
    done(lab.create("Worker", binds("a", &["b"])).await);
    done(
        lab.create("Thing", json!({ "Name": "t", "parent": "b" }))
            .await,
    );
    refused(lab.update("Worker", "a", binds("a", &["c"])).await);
    assert_eq!(lab.objects()["a"]["writes"], 1);
}

#[tokio::test]
async fn an_object_can_name_itself_once_it_exists() {
    let lab = Lab::new();
    refused(lab.create("Worker", binds("a", &["a"])).await);
    done(lab.create("Worker", binds("a", &[])).await);
    done(lab.update("Worker", "a", binds("a", &["a"])).await);
    done(lab.delete("Worker", "a").await);
}

#[tokio::test]
async fn what_is_referred_to_cannot_go_and_the_holders_are_named() {
    let lab = Lab::new();
    done(lab.create("Worker", binds("a", &[])).await);
    done(lab.create("Worker", binds("b", &["a"])).await);
    done(
        lab.create("Thing", json!({ "Name": "t", "parent": "a" }))
            .await,
    );
    let held = lab.delete("Worker", "a").await.unwrap_err();
    assert_eq!(
        held,
        OpError::InUse {
            held_by: HeldBy(vec!["b".into(), "t".into()])
        }
    );
    done(lab.update("Worker", "b", binds("b", &[])).await);
    done(lab.delete("Thing", "t").await);
    done(lab.delete("Worker", "a").await);
}

#[tokio::test]
async fn a_taken_name_answers_with_its_owner_unless_the_token_made_it() {
    let lab = Lab::new();
    let token = fresh();
    let first = done(
        lab.create_with(&lab.sim, "Worker", binds("a", &[]), &token)
            .await,
    );
    let again = done(
        lab.create_with(&lab.reopen(), "Worker", binds("a", &[]), &token)
            .await,
    );
    assert_eq!(first, again);
    let other = lab
        .create("Thing", json!({ "Name": "a" }))
        .await
        .unwrap_err();
    let tags = owner("a", 0)
        .tags()
        .map(|(key, value)| (key.to_owned(), value));
    assert_eq!(
        other,
        OpError::Exists {
            name: "a".into(),
            tags: tags.into()
        }
    );
    assert_eq!(lab.log(), ["create a ok", "create a ok", "create a exists"]);
    assert_eq!(lab.objects()["a"]["writes"], 1);
}

#[tokio::test]
async fn a_token_makes_nothing_again_after_a_delete() {
    let lab = Lab::new();
    let token = fresh();
    let first = done(
        lab.create_with(&lab.sim, "Worker", binds("a", &[]), &token)
            .await,
    );
    done(lab.delete("Worker", "a").await);
    let second = done(
        lab.create_with(&lab.sim, "Worker", binds("a", &[]), &token)
            .await,
    );
    assert_ne!(out(&first, "arn"), out(&second, "arn"));
}

#[tokio::test]
async fn writing_or_removing_what_is_absent_or_of_another_type_is_not_found() {
    let lab = Lab::new();
    assert_eq!(
        lab.update("Worker", "a", binds("a", &[])).await,
        Err(OpError::NotFound)
    );
    assert_eq!(lab.delete("Worker", "a").await, Err(OpError::NotFound));
    done(lab.create("Thing", json!({ "Name": "a" })).await);
    assert_eq!(lab.delete("Worker", "a").await, Err(OpError::NotFound));
    assert_eq!(lab.read("Worker", "a").await, Ok(None));
    assert_eq!(
        lab.log(),
        [
            "update a not_found",
            "delete a not_found",
            "create a ok",
            "delete a not_found",
            "read a not_found"
        ]
    );
}

#[tokio::test]
async fn every_write_makes_a_version_and_the_arn_stays() {
    let lab = Lab::new();
    let one = done(
        lab.create("Worker", json!({ "Name": "a", "code": "one" }))
            .await,
    );
    let two = done(
        lab.update("Worker", "a", json!({ "Name": "a", "code": "two" }))
            .await,
    );
    assert_eq!(
        (out(&one, "versionId"), out(&two, "versionId")),
        ("v1", "v2")
    );
    assert_eq!(
        (out(&one, "arn"), out(&two, "arn")),
        ("arn:sim:a:1", "arn:sim:a:1")
    );
    done(lab.delete("Worker", "a").await);
    let again = done(lab.create("Worker", json!({ "Name": "a" })).await);
    assert_eq!(
        (out(&again, "versionId"), out(&again, "arn")),
        ("v1", "arn:sim:a:2")
    );
}

#[tokio::test]
async fn a_read_adds_defaults_and_turns_the_bindings_round() {
    let lab = Lab::new();
    done(lab.create("Worker", binds("a", &[])).await);
    done(lab.create("Worker", binds("b", &[])).await);
    done(lab.create("Worker", binds("c", &["a", "b"])).await);
    let found = lab.read("Worker", "c").await.unwrap().unwrap();
    let turned = params_of(binds("c", &["b", "a"]));
    assert_eq!(found.params["bindings"], turned["bindings"]);
    assert_eq!(found.params["tier"], Value::text("standard"));
    assert!(found.params.contains_key("createdAt"));
    assert_eq!(found.tags["notation:resource"], "a");
    assert_eq!(found.object.outputs["Name"], Value::text("c"));
}

#[tokio::test]
async fn a_note_reads_otherwise_every_time_and_a_secret_reads_as_one() {
    let lab = Lab::new();
    done(
        lab.create("Thing", json!({ "Name": "t", "note": "n" }))
            .await,
    );
    let one = lab.read("Thing", "t").await.unwrap().unwrap();
    let other = lab.read("Thing", "t").await.unwrap().unwrap();
    assert_ne!(one.params["note"], other.params["note"]);
    done(
        lab.create("Worker", json!({ "Name": "w", "secret": "s" }))
            .await,
    );
    let found = lab.read("Worker", "w").await.unwrap().unwrap();
    assert_eq!(
        found.params["secret"],
        Value::Secret(SecretValue::new(Value::text("s")))
    );
    assert_eq!(lab.objects()["w"]["params"]["secret"], "s");
}

#[tokio::test]
async fn what_cannot_change_is_refused() {
    let lab = Lab::new();
    done(
        lab.create("Worker", json!({ "Name": "a", "region": "x" }))
            .await,
    );
    let message = refused(
        lab.update("Worker", "a", json!({ "Name": "a", "region": "y" }))
            .await,
    );
    assert_eq!(
        message,
        "`region` of sim/Worker cannot be changed after creation"
    );
    done(lab.create("PinnedWorker", binds("p", &["a"])).await);
    refused(lab.update("PinnedWorker", "p", binds("p", &[])).await);
    done(lab.update("PinnedWorker", "p", binds("p", &["a"])).await);
    done(lab.create("Frozen", json!({ "Name": "f" })).await);
    refused(lab.update("Frozen", "f", json!({ "Name": "f" })).await);
}

#[tokio::test]
async fn what_is_not_well_formed_is_refused() {
    let lab = Lab::new();
    for (ty, params) in [
        ("StrictWorker", json!({ "Name": "a" })),
        ("Worker", json!({ "Name": "a".repeat(64) })),
        ("Worker", json!({ "Name": "a/b" })),
        ("Worker", json!({ "Name": "a", "tier": "gold" })),
        ("Worker", json!({ "Name": "a", "bindings": "b" })),
        (
            "Worker",
            json!({ "Name": "a", "bindings": [{ "service": 1 }] }),
        ),
        ("Thing", json!({ "Name": "a", "parent": 1 })),
    ] {
        refused(lab.create(ty, params).await);
    }
    assert_eq!(lab.objects(), json!({}));
    done(lab.create("StrictWorker", binds("a", &[])).await);
    done(
        lab.create("Worker", json!({ "Name": "b".repeat(63) }))
            .await,
    );
}

#[tokio::test]
async fn a_blind_object_is_made_again_and_cannot_be_read() {
    let lab = Lab::new();
    let token = fresh();
    let one = done(
        lab.create_with(&lab.sim, "Blind", json!({ "value": 1 }), &token)
            .await,
    );
    let two = done(
        lab.create_with(&lab.sim, "Blind", json!({ "value": 1 }), &token)
            .await,
    );
    assert_ne!(one.key, two.key);
    assert_eq!(one.key, out(&one, "id"));
    assert!(matches!(
        lab.read("Blind", &one.key).await,
        Err(OpError::Refused { .. })
    ));
    assert_eq!(lab.objects()[&one.key]["tags"], json!({}));
    done(lab.update("Blind", &one.key, json!({ "value": 2 })).await);
    done(lab.delete("Blind", &one.key).await);
}

#[tokio::test]
async fn an_object_is_found_by_its_owner() {
    let lab = Lab::new();
    let sim = &lab.sim;
    let mut ctx = ctx(&fresh());
    ctx.owner = owner("thing", 3);
    done(
        sim.create(&ctx, &ty_name("Thing"), &params_of(json!({ "Name": "t" })))
            .await,
    );
    let look = |owner| async move {
        sim.read(&owner, &ty_name("Thing"), LookFor::Mine(&owner.clone()))
            .await
            .unwrap()
    };
    assert_eq!(look(owner("thing", 3)).await.unwrap().object.key, "t");
    assert!(look(owner("thing", 2)).await.is_none());
    let log = lab.log();
    assert_eq!(log[1], "read t ok");
    assert!(
        log[2].starts_with("read shop-dev-thing-") && log[2].ends_with(" not_found"),
        "{log:?}"
    );
}

#[tokio::test]
async fn an_update_rewrites_the_tags() {
    let lab = Lab::new();
    done(lab.create("Worker", binds("a", &[])).await);
    lab.edit(|objects| objects["a"]["tags"]["notation:app"] = json!("somebody"));
    done(lab.update("Worker", "a", binds("a", &[])).await);
    assert_eq!(lab.objects()["a"]["tags"]["notation:app"], "shop");
}

#[tokio::test]
async fn hands_may_edit_the_objects_between_calls() {
    let lab = Lab::new();
    let first = done(lab.create("Worker", binds("a", &[])).await);
    done(lab.create("Worker", binds("b", &["a"])).await);
    lab.edit(|objects| {
        objects.as_object_mut().unwrap().shift_remove("a");
        objects["c"] = json!({ "type": "sim/Thing", "params": { "value": 1 } });
    });
    assert_eq!(lab.read("Worker", "a").await, Ok(None));
    let found = lab.read("Thing", "c").await.unwrap().unwrap();
    assert_eq!(
        (found.object.key.as_str(), &found.params["value"]),
        ("c", &Value::Int(1))
    );
    let again = done(lab.create("Worker", binds("a", &[])).await);
    assert_ne!(out(&first, "arn"), out(&again, "arn"));
    lab.edit(|objects| objects["b"]["params"]["code"] = json!("changed"));
    assert_eq!(
        lab.read("Worker", "b").await.unwrap().unwrap().params["code"],
        Value::text("changed")
    );
}

#[tokio::test]
async fn a_file_that_hands_broke_is_named() {
    let lab = Lab::new();
    done(lab.create("Worker", binds("a", &[])).await);
    std::fs::write(lab.folder().join("objects.json"), "{\n oops").unwrap();
    let Err(OpError::Failed { message }) = lab.read("Worker", "a").await else {
        panic!()
    };
    assert!(
        message.contains("objects.json") && message.contains("line 2"),
        "{message}"
    );
}

#[tokio::test]
async fn opening_and_dumping_makes_no_folder_and_reset_empties_it() {
    let lab = Lab::new();
    assert_eq!(lab.objects(), json!({}));
    notation_provider_sim::reset(&lab.folder()).unwrap();
    assert!(!lab.folder().exists());
    done(lab.create("Worker", binds("a", &[])).await);
    let file: serde_json::Value =
        serde_json::from_slice(&std::fs::read(lab.folder().join("objects.json")).unwrap()).unwrap();
    assert_eq!(file, lab.objects());
    assert_eq!(file["a"]["type"], "Worker");
    notation_provider_sim::reset(&lab.folder()).unwrap();
    assert_eq!((lab.objects(), lab.calls().len()), (json!({}), 0));
    let again = done(lab.create("Worker", binds("a", &[])).await);
    assert_eq!(out(&again, "arn"), "arn:sim:a:1");
    assert_eq!(lab.calls()[0]["seq"], 1);
}

#[tokio::test]
async fn a_call_line_says_everything_about_the_call() {
    let lab = Lab::new();
    let token = fresh();
    done(
        lab.create_with(&lab.sim, "Worker", binds("a", &[]), &token)
            .await,
    );
    done(
        lab.create_with(&lab.reopen(), "Worker", binds("b", &[]), &fresh())
            .await,
    );
    let calls = lab.calls();
    assert_eq!(
        calls[0],
        json!({
            "seq": 1, "op": "create", "type": "Worker", "name": "a",
            "params": { "Name": "a", "bindings": [] }, "token": token,
            "owner": { "app": "shop", "stage": "dev", "entry": "main", "resource": "a", "generation": 0 },
            "in_flight": 1, "result": "ok", "detail": null,
        })
    );
    assert_eq!(calls[1]["seq"], 2);
}

#[tokio::test]
async fn the_call_log_can_be_off() {
    let lab = Lab::new();
    let quiet = SimProvider::with_log(lab.folder(), notation_provider_sim::CallLog::Off);
    done(
        lab.create_with(&quiet, "Worker", binds("a", &[]), &fresh())
            .await,
    );
    assert!(!lab.folder().join("calls.ndjson").exists());
    assert_eq!(lab.objects()["a"]["writes"], 1);
}

#[tokio::test]
async fn a_change_that_cannot_be_written_did_not_happen() {
    let lab = Lab::new();
    done(lab.create("Worker", binds("a", &[])).await);
    let aside = lab.folder().join("objects.json.new");
    std::fs::create_dir(&aside).unwrap();
    let Err(OpError::Failed { message }) = lab.create("Worker", binds("b", &[])).await else {
        panic!()
    };
    assert!(message.contains("objects.json"), "{message}");
    std::fs::remove_dir(&aside).unwrap();
    assert_eq!(lab.read("Worker", "b").await, Ok(None));
    let made = done(lab.create("Worker", binds("b", &[])).await);
    assert_eq!(out(&made, "arn"), "arn:sim:b:1");
    assert_eq!(
        lab.log(),
        ["create a ok", "read b not_found", "create b ok"]
    );
}

#[tokio::test]
async fn a_torn_line_is_ended_before_the_next_one() {
    let lab = Lab::new();
    done(lab.create("Worker", binds("a", &[])).await);
    let path = lab.folder().join("calls.ndjson");
    let whole = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, format!("{whole}{{\"seq\":2,\"o")).unwrap();
    done(lab.create("Worker", binds("b", &[])).await);
    let text = std::fs::read_to_string(&path).unwrap();
    let last: serde_json::Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    assert_eq!((&last["seq"], &last["name"]), (&json!(2), &json!("b")));
}
