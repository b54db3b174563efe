//! A value that only a forecast may have is refused, wherever a batch has it, and its batch with
//! it.

use std::collections::BTreeMap;

use notation_model::{Map, SecretValue, Unknown, Value};

use super::{deployment, entry, held, sample};
use crate::{Batch, Call, Change, Event, Intent, StateStore, StoreError};

pub(super) async fn nothing_unknown_is_kept(store: &dyn StateStore) {
    let here = deployment("unknown");
    let hold = held(store, &here).await;
    let unknown = || {
        Value::from(Unknown {
            sources: Vec::new(),
            text: "b.arn".into(),
        })
    };
    let record = |output: Value| {
        let mut record = sample("a", 0);
        record.outputs.insert("arn", output);
        record
    };
    let put = |output: Value| Batch {
        entries: Vec::new(),
        changes: vec![Change::put(sample("b", 0)), Change::put(record(output))],
    };
    let intent = Event::Intent(Box::new(Intent {
        call: Call::Create,
        token: "token-a".into(),
        draft: record(unknown()),
    }));
    let inside = Value::Map(Map::from([("part", Value::List(vec![unknown()]))]));
    let refused = [
        put(unknown()),
        put(inside),
        put(Value::Secret(SecretValue::new(unknown()))),
        Batch {
            entries: vec![entry(&hold, "a:0:complete", intent)],
            changes: vec![Change::put(sample("b", 0))],
        },
        Batch {
            entries: Vec::new(),
            changes: vec![
                Change::put(sample("b", 0)),
                Change::Exports(BTreeMap::from([("url".to_owned(), unknown())])),
            ],
        },
    ];
    for batch in refused {
        let answer = store.append(&here, &hold, batch).await;
        assert!(
            matches!(answer, Err(StoreError::Unknown { .. })),
            "a value that is not known is refused: {answer:?}"
        );
    }
    let state = store.load(&here).await.expect("it reads");
    assert!(
        state.records.is_empty() && state.open.is_empty() && state.exports.is_empty(),
        "and nothing of its batch is kept: {state:?}"
    );
    store
        .release(&here, &hold)
        .await
        .expect("it can be released");
}
