//! Sealed values: set by name, never answered, encrypted at rest, awaited by versions.

use crate::bench::*;
use notation_host::{Grant, Host, NoDataPlane, OpenError, Scope};
use serde_json::json;
use std::sync::Arc;

fn values(worker: &str) -> String {
    format!("/sealed/v1/spaces/{SPACE}/workers/{worker}/values")
}

async fn seal(client: &Client, worker: &str, name: &str, value: &str) -> Answer {
    client
        .send("PUT", &format!("{}/{name}", values(worker)), &[], value)
        .await
}

#[tokio::test]
async fn a_version_without_its_value_is_not_ready_and_says_which() {
    let bench = Bench::plain().await;
    let client = bench.t1();
    client.worker("w").await;
    client.bundle("b", FETCH_ONLY).await;
    let spec = with(
        version_spec("w", "b", &["fetch"]),
        "requiredSensitiveVars",
        json!(["API_KEY", "OTHER"]),
    );
    let created = client.create("WorkerVersion", "v", spec).await.created();
    assert_eq!(
        (ready(&created).0, ready(&created).1),
        ("False", "Provisioning")
    );
    assert!(ready(&created).2.contains("API_KEY, OTHER"));
    let deployment = deployment_spec("w", &[("v", 10_000)]);
    let refusal = client
        .create("WorkerDeployment", "d", deployment.clone())
        .await
        .refused("invalid_argument");
    assert!(refusal.message.contains("API_KEY"));
    seal(&client, "w", "API_KEY", "swordfish").await.is(204);
    assert!(
        ready(&client.read("WorkerVersion", "v").await.updated())
            .2
            .ends_with("for OTHER")
    );
    seal(&client, "w", "OTHER", "x").await.is(204);
    let version = client.read("WorkerVersion", "v").await.updated();
    assert_eq!(ready(&version).0, "True");
    assert_eq!(version.metadata.generation, "1");
    client
        .create("WorkerDeployment", "d", deployment)
        .await
        .created();
    assert_eq!(
        client.get(&values("w")).await.is(200).json(),
        json!({"names": ["API_KEY", "OTHER"]})
    );
    client
        .send("DELETE", &format!("{}/OTHER", values("w")), &[], "")
        .await
        .is(204);
    assert_eq!(
        ready(&client.read("WorkerVersion", "v").await.updated()).1,
        "Provisioning"
    );
}

#[tokio::test]
async fn values_reach_the_data_plane_and_nobody_else() {
    let bench = Bench::plain().await;
    let client = bench.t1();
    let worker = client.worker("w").await;
    seal(&client, "w", "API_KEY", "swordfish").await.is(204);
    let snapshot = bench.host.worlds().borrow().clone();
    let tenant = &snapshot.tenants["t1"];
    let uid = notation_edge::Uid::new(worker.metadata.uid.as_str());
    assert_eq!(
        tenant.sealed(&uid, "API_KEY").unwrap().expose(),
        b"swordfish"
    );
    assert!(!format!("{snapshot:?}").contains("swordfish"));
    let dir = bench.dir.clone();
    bench.host.flush().await.unwrap();
    for file in ["host.sqlite", "host.sqlite-wal"] {
        let bytes = std::fs::read(dir.join(file)).unwrap_or_default();
        assert!(
            !bytes.windows(9).any(|window| window == b"swordfish"),
            "{file}"
        );
    }
    use std::os::unix::fs::PermissionsExt;
    assert_eq!(
        std::fs::metadata(dir.join("host.key"))
            .unwrap()
            .permissions()
            .mode()
            & 0o777,
        0o600
    );
    let bench = bench.restart(config(&dir)).await;
    let snapshot = bench.host.worlds().borrow().clone();
    assert_eq!(
        snapshot.tenants["t1"]
            .sealed(&uid, "API_KEY")
            .unwrap()
            .expose(),
        b"swordfish"
    );
    let client = bench.t1();
    client.delete("ModuleWorker", "w").await.is(204);
    assert!(
        bench.host.worlds().borrow().tenants["t1"]
            .sealed(&uid, "API_KEY")
            .is_none()
    );
    client.get(&values("w")).await.refused("resource_not_found");
}

#[tokio::test]
async fn sealed_values_need_a_scope_of_their_own() {
    let bench = Bench::plain().await;
    bench.t1().worker("w").await;
    for (token, scope) in [("only-api", Scope::Api), ("only-sealed", Scope::Sealed)] {
        let grant = Grant {
            tenant: "t1".into(),
            principal: "p".into(),
            scopes: [scope].into(),
            label: String::new(),
        };
        bench.host.install_token(token, grant).await.unwrap();
    }
    let api = bench.as_("only-api");
    let sealed = bench.as_("only-sealed");
    seal(&api, "w", "API_KEY", "x")
        .await
        .refused("permission_denied");
    seal(&sealed, "w", "API_KEY", "x").await.is(204);
    sealed
        .read("ModuleWorker", "w")
        .await
        .refused("permission_denied");
    bench
        .t2()
        .get(&values("w"))
        .await
        .refused("resource_not_found");
    for bad in ["lower", "1X", "A-B"] {
        seal(&sealed, "w", bad, "x")
            .await
            .refused("invalid_argument");
    }
    seal(&sealed, "absent", "API_KEY", "x")
        .await
        .refused("resource_not_found");
    seal(&sealed, "w", "API_KEY", &"x".repeat(65_537))
        .await
        .refused("invalid_argument");
}

#[tokio::test]
async fn tokens_are_hashed_listed_and_revoked() {
    let bench = Bench::plain().await;
    let grant = Grant {
        tenant: "t1".into(),
        principal: "p".into(),
        scopes: [Scope::Api].into(),
        label: "ci".into(),
    };
    let (record, text) = bench.host.create_token(grant).await.unwrap();
    let text: &'static str = Box::leak(text.into_boxed_str());
    let client = bench.as_(text);
    client.worker("w").await;
    assert!(bench.host.tokens().contains(&record));
    let dir = bench.dir.clone();
    bench.host.flush().await.unwrap();
    let stored = [
        std::fs::read(dir.join("host.sqlite")).unwrap(),
        std::fs::read(dir.join("host.sqlite-wal")).unwrap_or_default(),
    ]
    .concat();
    assert!(
        !stored
            .windows(text.len())
            .any(|window| window == text.as_bytes())
    );
    assert!(bench.host.revoke_token(&record.id).await.unwrap());
    assert!(!bench.host.revoke_token(&record.id).await.unwrap());
    client
        .read("ModuleWorker", "w")
        .await
        .refused("unauthenticated");
}

#[tokio::test]
async fn a_folder_whose_key_is_not_the_one_of_its_values_is_refused_and_left_alone() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("data");
    let bench = Bench::open(config(&dir)).await;
    bench.t1().worker("w").await;
    let key = dir.join("host.key");
    // Without values any key serves, and a missing one is made.
    bench.stop().await;
    std::fs::remove_file(&key).unwrap();
    let bench = Bench::open(config(&dir)).await;
    seal(&bench.t1(), "w", "API_KEY", "swordfish").await.is(204);
    bench.stop().await;

    let right = std::fs::read(&key).unwrap();
    let refused = || async {
        match Host::open(config(&dir), Arc::new(NoDataPlane)).await {
            Err(error @ OpenError::OtherKey { .. }) => error.to_string(),
            Err(error) => panic!("{error}"),
            Ok(_) => panic!("it was opened"),
        }
    };
    std::fs::remove_file(&key).unwrap();
    assert!(refused().await.contains("is missing"));
    assert!(!key.exists(), "no second key is made");
    std::fs::write(&key, [7; 64]).unwrap();
    assert!(refused().await.contains("opens none of them"));

    std::fs::write(&key, right).unwrap();
    let bench = Bench::open(config(&dir)).await;
    let names = bench.t1().get(&values("w")).await.is(200);
    assert!(names.text().contains("API_KEY"), "{}", names.text());
}

#[tokio::test]
async fn a_token_that_is_revoked_while_a_body_arrives_changes_nothing() {
    let bench = Bench::plain().await;
    let client = bench.t1();
    let late = client.document("EdgeKVNamespace", "late", json!({}));
    let body = client.reviewed(&late, None).await.to_string();
    let (first, rest) = body.split_at(body.len() / 2);
    let address = bench.base.trim_start_matches("http://");
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let head = format!(
        "PUT {} HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer t1p1\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\nIdempotency-Key: {}\r\nIf-None-Match: *\r\nExpect: 100-continue\r\n\
         Connection: close\r\n\r\n",
        client.path(&late),
        body.len(),
        key()
    );
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    stream.write_all(head.as_bytes()).await.unwrap();
    // It was let in and is waited for.
    let mut go = [0; 12];
    stream.read_exact(&mut go).await.unwrap();
    assert_eq!(&go, b"HTTP/1.1 100");
    stream.write_all(first.as_bytes()).await.unwrap();
    let tokens = bench.host.tokens();
    let own = tokens
        .iter()
        .find(|token| token.grant.principal == "p1" && token.grant.tenant == "t1");
    assert!(bench.host.revoke_token(&own.unwrap().id).await.unwrap());
    stream.write_all(rest.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.contains("HTTP/1.1 401"), "{answer}");
    bench.t1p2().absent("EdgeKVNamespace", "late").await;
}

#[tokio::test]
async fn names_of_tenants_and_principals_are_one_printable_word() {
    let bench = Bench::plain().await;
    let grant = |tenant: &str, principal: &str, label: &str| Grant {
        tenant: tenant.to_owned(),
        principal: principal.to_owned(),
        scopes: [Scope::Api].into(),
        label: label.to_owned(),
    };
    let count = bench.host.tokens().len();
    let long = "x".repeat(129);
    for (tenant, principal, label) in [
        ("", "p", ""),
        ("a\nb", "p", ""),
        ("a b", "p", ""),
        ("..", "p", ""),
        ("a/b", "p", ""),
        ("t", "\u{1b}[31m", ""),
        ("t", " ", ""),
        ("t", "p", "l\nx"),
        (&long, "p", ""),
    ] {
        let refused = bench
            .host
            .create_token(grant(tenant, principal, label))
            .await;
        assert!(refused.is_err(), "{tenant:?} {principal:?} {label:?}");
    }
    assert_eq!(bench.host.tokens().len(), count);
    let made = bench
        .host
        .create_token(grant("Größe-1", "ci@example.com", "for CI"))
        .await;
    made.unwrap();
}

#[tokio::test]
async fn a_version_that_lacks_many_values_says_so_in_at_most_4096_characters() {
    let bench = Bench::plain().await;
    let client = bench.t1();
    client.worker("w").await;
    client.bundle("b", FETCH_ONLY).await;
    let names: Vec<String> = (0..64).map(|n| format!("V{n:0>62}")).collect();
    let spec = with(
        version_spec("w", "b", &["fetch"]),
        "requiredSensitiveVars",
        json!(names),
    );
    client.create("WorkerVersion", "v", spec).await.created();
    let read = client.read("WorkerVersion", "v").await.updated();
    let message = read.status.conditions[0].message.as_ref().unwrap();
    assert_eq!(message.chars().count(), 4096);
    assert_eq!(ready(&read).2.chars().count(), 256);
}
