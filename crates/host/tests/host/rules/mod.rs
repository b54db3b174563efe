//! Every rule in both directions and on every way a change takes: at apply, at import, at the
//! commit of an accepted operation, and at the commit of one whose world moved after it was
//! accepted. The same document is refused with the same sentence on all ways and leaves no trace;
//! its neighbour is accepted on all of them.

mod artifacts;
mod attachments;
mod deletions;
mod deployments;
mod versions;

use crate::bench::*;
use crate::operations::{accept, finish};
use notation_edge::BreachKind;
use serde_json::Value;
use std::pin::Pin;

/// A rule, a document that breaks it and the nearest one that keeps it.
pub struct Case {
    /// Kind of the subject; its name is `x`.
    kind: &'static str,
    /// The subject's spec before, where the rule is about changing one that stands.
    standing: Option<Value>,
    bad: Value,
    good: Value,
    code: &'static str,
    /// What the refusal names.
    names: &'static str,
    turn: Turn,
}

type Step = Box<dyn FnOnce(Client) -> Pin<Box<dyn Future<Output = ()>>>>;

/// How the good document becomes a bad one after it was accepted.
pub enum Turn {
    /// It cannot: the rule looks at nothing that changes. Why.
    Never(&'static str),
    /// By this; and what the refusal names then.
    By(Step, &'static str),
}

fn turn<F>(names: &'static str, by: impl FnOnce(Client) -> F + 'static) -> Turn
where
    F: Future<Output = ()> + 'static,
{
    Turn::By(Box::new(|client| Box::pin(by(client))), names)
}

impl Case {
    /// Creates `x`, or updates it where it stands.
    async fn apply(&self, client: &Client, spec: &Value) -> Answer {
        let document = client.document(self.kind, "x", spec.clone());
        let (headers, generation) = self.fence(client).await;
        let reviewed = client.reviewed(&document, generation.as_deref()).await;
        client.put(&reviewed, &borrowed(&headers)).await
    }

    async fn import(&self, client: &Client, spec: &Value) -> Answer {
        let document = client.document(self.kind, "x", spec.clone());
        let (headers, _) = self.fence(client).await;
        client
            .import(&document, "native", &borrowed(&headers))
            .await
    }

    /// Accepts an operation; its id.
    async fn accept(&self, client: &Client, spec: &Value) -> String {
        let document = client.document(self.kind, "x", spec.clone());
        let (headers, generation) = self.fence(client).await;
        let reviewed = client.reviewed(&document, generation.as_deref()).await;
        accept(client, &reviewed, &borrowed(&headers)).await
    }

    async fn fence(&self, client: &Client) -> (Vec<(&'static str, String)>, Option<String>) {
        let mut headers = vec![("Idempotency-Key", key())];
        let generation = match &self.standing {
            None => None,
            Some(_) => {
                let current = client.read(self.kind, "x").await.resource();
                Some(current.metadata.generation)
            }
        };
        headers.push(match &generation {
            None => ("If-None-Match", "*".to_owned()),
            Some(generation) => ("Takoform-Expected-Generation", generation.clone()),
        });
        (headers, generation)
    }

    /// Puts `x` back to what it was.
    async fn restore(&self, client: &Client) {
        match &self.standing {
            None => client.remove(self.kind, "x").await,
            Some(spec) => {
                client.update(self.kind, "x", spec.clone()).await.updated();
            }
        }
    }

    #[track_caller]
    fn accepted(&self, answer: &Answer) {
        match &self.standing {
            None => answer.created(),
            Some(_) => answer.updated(),
        };
    }

    fn refused(&self, document: &Value, names: &str) -> String {
        assert_eq!(document["error"]["code"], self.code, "{document}");
        assert_eq!(document["error"]["retryable"], false);
        let message = document["error"]["message"].as_str().unwrap().to_owned();
        assert!(message.contains(names), "{names} in {message}");
        message
    }
}

fn borrowed<'a>(headers: &'a [(&'static str, String)]) -> Vec<(&'static str, &'a str)> {
    headers
        .iter()
        .map(|(name, value)| (*name, value.as_str()))
        .collect()
}

/// Shows a rule on all ways.
async fn show(bench: &Bench, mut case: Case) {
    let client = bench.t1();
    let before = bench.rows();
    let refusal = case.apply(&client, &case.bad).await;
    let message = refusal.refused(case.code).message;
    assert!(message.contains(case.names), "{message}");
    let imported = case.import(&client, &case.bad).await;
    assert_eq!(imported.refused(case.code).message, message);
    assert_eq!(bench.rows(), before, "a refusal left a trace");
    let id = case.accept(&client, &case.bad).await;
    let ended = finish(&client, &id).await;
    assert_eq!(case.refused(&ended, case.names), message);
    let records = ["operation", "replay"];
    assert_eq!(
        bench.rows().without(&records),
        before.without(&records),
        "a refused commit left a trace"
    );

    let applied = case.apply(&client, &case.good).await;
    case.accepted(&applied);
    case.restore(&client).await;
    let imported = case.import(&client, &case.good).await;
    case.accepted(&imported);
    case.restore(&client).await;
    let id = case.accept(&client, &case.good).await;
    let ended = finish(&client, &id).await;
    assert!(ended["result"]["resource"].is_object(), "{ended}");
    case.restore(&client).await;

    match std::mem::replace(&mut case.turn, Turn::Never("shown")) {
        Turn::Never(why) => assert!(!why.is_empty()),
        Turn::By(by, names) => {
            let id = case.accept(&client, &case.good).await;
            by(client.clone()).await;
            let before = bench.rows();
            let ended = finish(&client, &id).await;
            case.refused(&ended, names);
            assert_eq!(
                bench.rows().without(&["operation"]),
                before.without(&["operation"])
            );
        }
    }
}

macro_rules! rules {
    ($($test:ident: $breach:ident = $case:path;)*) => {
        $(#[tokio::test]
        async fn $test() {
            let bench = versions::bench().await;
            for case in $case(&bench.t1()).await {
                show(&bench, case).await;
            }
        })*

        /// Breaches that a test above shows in both directions.
        const SHOWN: &[BreachKind] = &[$(BreachKind::$breach),*];
    };
}

rules! {
    one_active_deployment_per_worker: SecondDeployment = deployments::second;
    weights_sum_to_the_whole: WeightSum = deployments::sum;
    a_deployment_weights_its_own_versions: ForeignVersion = deployments::foreign;
    a_deployment_weights_a_version_once: RepeatedVersion = deployments::repeated;
    a_deployment_weights_ready_versions: UnreadyVersion = deployments::unready;
    a_deployment_weights_no_version_that_goes: LeavingVersion = deployments::leaving;
    a_deployment_leaves_no_dependent_unserved: Unserved = deployments::reverse;
    attachments_need_what_the_deployment_serves: Unserved = attachments::served;
    hostnames_are_claimed_once: HostnameTaken = attachments::hostname;
    queues_have_one_consumer: SecondConsumer = attachments::consumer;
    dead_letters_come_to_rest: DeadLetterLoop = attachments::dead_letters;
    workers_have_one_endpoint: SecondEndpoint = attachments::endpoint;
    service_bindings_reach_serving_workers_only: Unserved = versions::service;
    the_environment_is_one_namespace: NameClash = versions::environment;
    declared_handlers_are_exported: NotExported = versions::exported;
    modules_load: BrokenModule = versions::broken;
    single_page_mode_has_an_index: NoIndexHtml = versions::index;
    manifests_are_held: ManifestMissing = artifacts::missing;
    manifests_are_of_the_right_kind: ManifestKind = artifacts::kind;
    applied_history_is_kept: HistoryChanged = artifacts::history;
}

#[test]
fn every_breach_is_shown() {
    use strum::IntoEnumIterator;
    for breach in BreachKind::iter() {
        assert!(
            SHOWN.contains(&breach) || deletions::SHOWN.contains(&breach),
            "{breach:?} has no case"
        );
    }
}
