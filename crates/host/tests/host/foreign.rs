//! No answer to one tenant depends on what another one has: the same requests are answered byte
//! for byte as if the other tenant did not exist.

use crate::bench::*;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// An answer with everything random replaced by the order in which it appeared.
struct Names(BTreeMap<String, String>);

impl Names {
    fn plain(&mut self, answer: &Answer) -> String {
        let mut document: Value = if answer.body.is_empty() {
            Value::Null
        } else {
            answer.json()
        };
        self.rename(&mut document);
        format!("{} {:?} {document}", answer.status, answer.etag)
    }

    fn rename(&mut self, value: &mut Value) {
        match value {
            Value::String(text) => {
                let words: Vec<String> = text
                    .split_inclusive(|c: char| !c.is_ascii_alphanumeric() && c != '_')
                    .map(|word| self.word(word))
                    .collect();
                *text = words.concat();
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.rename(item)),
            Value::Object(members) => {
                for (name, member) in members {
                    if name == "requestId" || name == "prepareDigest" {
                        *member = Value::Null;
                    }
                    self.rename(member);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn word(&mut self, word: &str) -> String {
        let bare = word.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
        let random = (bare.len() == 17 && (bare.starts_with('r') || bare.starts_with('e')))
            || bare.starts_with("up_");
        if !random {
            return word.to_owned();
        }
        let next = format!("#{}", self.0.len());
        let name = self.0.entry(bare.to_owned()).or_insert(next);
        word.replace(bare, name)
    }
}

async fn life(client: &Client, names: &mut Names, seen: &mut Vec<String>, step: usize) {
    let serving = ["fetch", "scheduled", "queue"];
    let mut answers = Vec::new();
    match step {
        0 => client.serving("w", &serving).await,
        1 => {
            for queue in ["a", "b"] {
                client.queue(queue).await;
            }
        }
        2 => answers.push(
            client
                .create("WorkerCustomDomain", "d", domain_spec("w", "a.example.com"))
                .await,
        ),
        3 => answers.push(
            client
                .create(
                    "WorkerCustomDomain",
                    "d2",
                    domain_spec("w", "A.example.com."),
                )
                .await,
        ),
        4 => answers.push(
            client
                .create("WorkerEndpoint", "e", endpoint_spec("w"))
                .await,
        ),
        5 => answers.push(
            client
                .create("QueueConsumer", "ca", consumer_spec("w", "a", Some("b")))
                .await,
        ),
        6 => answers.push(
            client
                .create("QueueConsumer", "cb", consumer_spec("w", "b", Some("a")))
                .await,
        ),
        7 => answers.push(client.delete("WorkerDeployment", "w-deployment").await),
        8 => answers.push(
            client
                .import_new(
                    &client.document("EdgeKVNamespace", "kv", json!({})),
                    "native",
                )
                .await,
        ),
        9 => answers.push(
            client
                .import_new(
                    &client.document("EdgeKVNamespace", "kv2", json!({})),
                    "native",
                )
                .await,
        ),
        10 => {
            let manifest = module_manifest("index.js", "export default {};");
            answers.push(client.start_upload(&manifest).await);
            answers.push(
                client
                    .create(
                        "WorkerBundle",
                        "b2",
                        json!({"manifestDigest": notation_edge_api::digest(&manifest)}),
                    )
                    .await,
            );
        }
        11 => client.vanish("AtLeastOnceQueue", "a").await,
        12 => answers.push(
            client
                .in_space(OTHER_SPACE)
                .create("EdgeKVNamespace", "kv", json!({}))
                .await,
        ),
        _ => answers.push(
            client
                .update("AtLeastOnceQueue", "b", queue_spec(900))
                .await,
        ),
    }
    for (kind, name) in [
        ("ModuleWorker", "w"),
        ("WorkerDeployment", "w-deployment"),
        ("WorkerCustomDomain", "d"),
        ("WorkerEndpoint", "e"),
        ("QueueConsumer", "ca"),
        ("AtLeastOnceQueue", "b"),
        ("EdgeKVNamespace", "kv"),
        ("EdgeKVNamespace", "unheld"),
    ] {
        answers.push(client.read(kind, name).await);
    }
    seen.extend(answers.iter().map(|answer| names.plain(answer)));
}

#[tokio::test]
async fn no_answer_depends_on_another_tenant() {
    let mut runs = Vec::new();
    for crowded in [false, true] {
        let bench = Bench::start().await;
        let mut seen = Vec::new();
        let (mut names, mut others) = (Names(BTreeMap::new()), Names(BTreeMap::new()));
        for step in 0..14 {
            if crowded {
                life(&bench.t2(), &mut others, &mut Vec::new(), step).await;
            }
            life(&bench.t1(), &mut names, &mut seen, step).await;
        }
        runs.push(seen);
    }
    assert!(runs[0].len() > 100);
    for (alone, beside) in runs[0].iter().zip(&runs[1]) {
        assert_eq!(alone, beside);
    }
}
