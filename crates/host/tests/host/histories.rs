//! Random requests of two tenants in two spaces. No answer to one tenant depends on what the other
//! has: it is answered byte for byte as if the other did not exist, though both use the same
//! names, hostnames, native identities and idempotency keys. A refusal leaves every row as it was,
//! an identical apply writes nothing but its record, and no world ever has a breach.

use crate::bench::*;
use crate::dice::{Dice, Digests, HOSTNAMES, standing, wanted};
use notation_edge::Breach;
use notation_host::{FixedClock, HostConfig};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Answers with everything that is minted at random replaced by the order in which it appeared.
#[derive(Default)]
struct Names(BTreeMap<String, String>);

impl Names {
    fn plain(&mut self, answer: &Answer) -> String {
        let mut document = if answer.body.is_empty() {
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

    /// Uids are `r` and 16 letters, endpoint labels `e` and 16 digits, sessions begin with `up_`.
    fn word(&mut self, word: &str) -> String {
        let bare = word.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
        let minted = (bare.len() == 17 && (bare.starts_with('r') || bare.starts_with('e')))
            || bare.starts_with("up_");
        if !minted {
            return word.to_owned();
        }
        let next = format!("#{}", self.0.len());
        let name = self.0.entry(bare.to_owned()).or_insert(next);
        word.replace(bare, name)
    }
}

/// What one tenant asked and was answered.
struct History {
    client: Client,
    digests: Digests,
    names: Names,
    seen: Vec<String>,
    keys: usize,
}

/// Whether a mutation is looked at closely: nothing else is under way then.
#[derive(Clone, Copy, PartialEq)]
enum Look {
    Close,
    Away,
}

impl History {
    async fn begin(client: Client) -> History {
        let mut modules = Vec::new();
        for source in [ALL_HANDLERS, FETCH_ONLY] {
            let manifest = module_manifest("index.js", source);
            modules.push(client.upload(&manifest, &[source.as_bytes()]).await);
        }
        let files = [("1.sql", "a"), ("2.sql", "b")];
        let mut migrations = Vec::new();
        for files in [&files[..1], &files[..], &files[1..]] {
            let manifest = files_manifest("MigrationBundle", "application/sql", files);
            migrations.push(client.upload(&manifest, &[b"a", b"b"]).await);
        }
        let digests = Digests {
            modules: modules.try_into().unwrap(),
            migrations: migrations.try_into().unwrap(),
        };
        for (space, hostname) in [SPACE, OTHER_SPACE].into_iter().zip(HOSTNAMES) {
            for (kind, name, spec) in standing(&digests, hostname) {
                let client = client.in_space(space);
                client.make(kind.as_str(), name, spec).await;
            }
        }
        History {
            client,
            digests,
            names: Names::default(),
            seen: Vec::new(),
            keys: 0,
        }
    }

    /// Both tenants use the same keys.
    fn key(&mut self) -> String {
        self.keys += 1;
        format!("same-{}", self.keys)
    }

    fn note(&mut self, answer: &Answer) {
        let plain = self.names.plain(answer);
        self.seen.push(plain);
    }

    async fn step(&mut self, bench: &Bench, dice: Dice, look: Look) {
        let space = dice.pick(1, &[SPACE, OTHER_SPACE]);
        let space = if space == SPACE { SPACE } else { OTHER_SPACE };
        let client = self.client.in_space(space);
        let (kind, name, spec) = wanted(dice, &self.digests);
        let kind = kind.as_str();
        let current = client.read(kind, name).await;
        self.note(&current);
        let generation = (current.status == 200).then(|| current.resource().metadata.generation);
        let fence = generation.clone().unwrap_or_else(|| "1".to_owned());
        let before = (look == Look::Close).then(|| bench.rows());
        let key = self.key();
        let fenced = [
            ("Idempotency-Key", key.as_str()),
            ("Takoform-Expected-Generation", fence.as_str()),
        ];
        let create = [("Idempotency-Key", key.as_str()), ("If-None-Match", "*")];
        let document = client.document(kind, name, spec);
        let answer = match dice.0[7] % 16 {
            0 | 1 => client.delete_with(kind, name, &fenced).await,
            2 => client.observe(kind, name, &fenced).await,
            3 => {
                let native = dice.pick(6, &["native-1", "native-2"]);
                let headers = if generation.is_some() { fenced } else { create };
                client.import(&document, native, &headers).await
            }
            4 => {
                let worker = dice.pick(2, &["w0", "w1"]);
                let target = format!("/sealed/v1/spaces/{space}/workers/{worker}/values/KEY");
                let method = dice.pick(4, &["PUT", "DELETE"]);
                client.send(method, &target, &[], "value").await
            }
            5 => {
                let manifest = module_manifest("other.js", dice.pick(4, &["one", "two"]));
                let body = json!({"manifest": manifest}).to_string();
                let headers = [("Idempotency-Key", key.as_str())];
                client
                    .send("POST", &format!("{API}/artifacts/uploads"), &headers, body)
                    .await
            }
            // Somebody forgot the fence, or remembers an old one.
            6 => {
                let reviewed = with(
                    document,
                    "review",
                    json!({"prepareDigest": self.digests.modules[0]}),
                );
                client.put(&reviewed, &create).await
            }
            _ => {
                let reviewed = client.reviewed(&document, generation.as_deref()).await;
                let headers = if generation.is_some() { fenced } else { create };
                let answer = client.put(&reviewed, &headers).await;
                if let Some(before) = &before
                    && answer.status < 300
                {
                    assert_ne!(*before, bench.rows());
                    self.again(bench, &client, &document).await;
                }
                answer
            }
        };
        if let Some(before) = before
            && answer.status >= 400
        {
            assert_eq!(
                bench.rows(),
                before,
                "a refusal left a trace: {}",
                answer.text()
            );
        }
        self.note(&answer);
    }

    /// The same apply once more moves nothing anywhere, or is refused because the kind never
    /// changes.
    async fn again(&mut self, bench: &Bench, client: &Client, document: &Value) {
        let (kind, name) = (
            document["kind"].as_str().unwrap(),
            document["metadata"]["name"].as_str().unwrap(),
        );
        let record = ["replay"];
        let settled = bench.rows().without(&record);
        let generation = client.read(kind, name).await.resource().metadata.generation;
        let reviewed = client.reviewed(document, Some(&generation)).await;
        let key = self.key();
        let headers = [
            ("Idempotency-Key", key.as_str()),
            ("Takoform-Expected-Generation", generation.as_str()),
        ];
        let answer = client.put(&reviewed, &headers).await;
        assert!(
            answer.status == 200 || answer.status == 400,
            "{}",
            answer.text()
        );
        assert_eq!(
            bench.rows().without(&record),
            settled,
            "an identical apply moved something"
        );
        self.note(&answer);
    }
}

/// A version whose value was taken away while it is weighted is reported, not undone.
fn breaches(bench: &Bench) -> Vec<Breach> {
    let worlds = bench.host.worlds();
    let snapshot = worlds.borrow();
    snapshot
        .tenants
        .values()
        .flat_map(|tenant| tenant.world.breaches())
        .filter(|breach| !matches!(breach, Breach::UnreadyVersion { reason, .. } if reason.contains("no value")))
        .collect()
}

async fn host() -> (Bench, tempfile::TempDir) {
    let temp = tempfile::tempdir().unwrap();
    let config = HostConfig {
        clock: Arc::new(FixedClock("2026-01-01T00:00:00Z".into())),
        ..config(&temp.path().join("data"))
    };
    (Bench::open(config).await, temp)
}

/// Plays a history alone or beside another tenant's; what was answered.
async fn play(dice: &[[u8; 8]], beside: Option<&[[u8; 8]]>, look: Look) -> Vec<String> {
    let (bench, _temp) = host().await;
    let mut other = match beside {
        Some(_) => Some(History::begin(bench.t2()).await),
        None => None,
    };
    let mut own = History::begin(bench.t1()).await;
    for (at, throw) in dice.iter().enumerate() {
        if let (Some(other), Some(beside)) = (&mut other, beside) {
            other.step(&bench, Dice(beside[at]), Look::Away).await;
        }
        own.step(&bench, Dice(*throw), look).await;
        assert_eq!(breaches(&bench), vec![]);
    }
    own.seen
}

/// How many random requests a history has.
const STEPS: usize = 220;

fn histories() -> [Vec<[u8; 8]>; 2] {
    let mut runner = TestRunner::deterministic();
    let strategy = prop::collection::vec(any::<[u8; 8]>(), STEPS);
    [(); 2].map(|()| strategy.new_tree(&mut runner).unwrap().current())
}

#[tokio::test]
async fn no_answer_depends_on_another_tenant() {
    let [own, other] = histories();
    let alone = play(&own, None, Look::Away).await;
    // The other tenant does something else, or just the same a moment earlier.
    for beside in [&other, &own] {
        let crowded = play(&own, Some(beside), Look::Away).await;
        assert_eq!(crowded.len(), alone.len());
        for (crowded, alone) in crowded.iter().zip(&alone) {
            assert_eq!(crowded, alone);
        }
    }
    for status in ["200", "201", "204", "400", "404", "409", "412", "422"] {
        let reached = alone.iter().any(|answer| answer.starts_with(status));
        assert!(reached, "the dice never reach {status}");
    }
}

#[tokio::test]
async fn refusals_leave_no_trace_and_identical_applies_move_nothing() {
    for dice in histories() {
        let seen = play(&dice, None, Look::Close).await;
        assert!(seen.len() > 2 * STEPS);
    }
}
