//! Moves against a world of plain data: every cut, then on again.

use std::sync::atomic::{AtomicU64, Ordering};

use notation_model::{Asset, Owner, Params, Value};
use notation_provider::{NoAssets, OpContext, Token};
use serde_json::json;

use super::*;
use crate::parts::Kind;

#[derive(Clone, Copy)]
struct Ask {
    code: &'static str,
    peer: Option<&'static str>,
    secret: Option<&'static str>,
    endpoint: bool,
    token: &'static str,
}

const PLAIN: Ask = Ask {
    code: "one",
    peer: None,
    secret: None,
    endpoint: true,
    token: "t1",
};

fn wanted(ask: Ask) -> Wanted {
    let ctx = OpContext {
        token: Token(ask.token.into()),
        attempt: 1,
        resume: None,
        owner: Owner {
            deployment: "shop:dev:main".parse().unwrap(),
            resource: "api".parse().unwrap(),
            generation: 0,
        },
        earlier: Default::default(),
        assets: &NoAssets,
    };
    let map = |members: Vec<(&str, Value)>| {
        Value::Map(
            members
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value))
                .collect(),
        )
    };
    let main = map(vec![
        ("module", Asset::of(ask.code.as_bytes()).into()),
        ("handlers", Value::List(vec!["fetch".into()])),
    ]);
    let bindings = ask
        .peer
        .map(|peer| map(vec![("name", "PEER".into()), ("service", peer.into())]));
    let secrets = ask.secret.map(|secret| map(vec![(secret, "value".into())]));
    let params = Params::from([
        ("main".to_owned(), main),
        (
            "bindings".to_owned(),
            Value::List(bindings.into_iter().collect()),
        ),
        ("secrets".to_owned(), secrets.unwrap_or(Value::Null)),
        ("endpoint".to_owned(), ask.endpoint.into()),
    ]);
    Wanted::read(&ctx, "api", &params).unwrap()
}

fn part(spec: serde_json::Value) -> Part {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let uid = format!("u{}", NEXT.fetch_add(1, Ordering::Relaxed));
    Part {
        uid,
        generation: "1".into(),
        spec,
        broken: false,
        deployed: false,
        outputs: None,
    }
}

/// What a host would do, with its rules as assertions.
fn perform(seen: &mut Seen, wanted: &Wanted, next: &Move) {
    let fresh = |place: &Option<Part>| assert!(place.is_none(), "{next:?} over something");
    match next {
        Move::Claim => {
            assert!(seen.claim.is_none());
            seen.claim = Some((part(json!({})), wanted.claim.clone()));
        }
        Move::Unclaim => seen.claim = None,
        Move::MakeWorker => {
            fresh(&seen.worker);
            seen.worker = Some(part(json!({})));
        }
        Move::Seal => seen.sealed = true,
        Move::Unseal(names) => seen.unsealed.extend(names.iter().cloned()),
        Move::MakeBundle(slot) => {
            let place = seen.place(Kind::Bundle, Some(*slot));
            fresh(place);
            *place = Some(part(
                json!({ "manifestDigest": wanted.manifest().digest() }),
            ));
        }
        Move::MakeVersion(slot) => {
            assert!(seen.worker.is_some() && seen.slot(*slot).bundle.is_some());
            let place = seen.place(Kind::Version, Some(*slot));
            fresh(place);
            *place = Some(part(wanted.version_spec(*slot)));
        }
        Move::MakeDeployment(slot) | Move::Promote(slot) => {
            assert!(seen.slot(*slot).version.is_some());
            assert_eq!(seen.deployment.is_some(), matches!(next, Move::Promote(_)));
            seen.deployment = Some(part(wanted.deployment_spec(*slot)));
        }
        Move::MakeEndpoint => {
            assert!(seen.deployment.is_some());
            fresh(&seen.endpoint);
            seen.endpoint = Some(part(wanted.endpoint_spec()));
        }
        Move::DeleteEndpoint => seen.endpoint = None,
        Move::DeleteDeployment => {
            assert!(seen.endpoint.is_none());
            seen.deployment = None;
        }
        Move::DeleteVersion(slot) => {
            assert!(!seen.serves("api", *slot), "a version in use goes");
            seen.slot_mut(*slot).version = None;
        }
        Move::DeleteBundle(slot) => {
            assert!(seen.slot(*slot).version.is_none());
            seen.slot_mut(*slot).bundle = None;
        }
        Move::DeleteWorker => {
            assert!(seen.deployment.is_none() && seen.endpoint.is_none());
            assert!(seen.a.version.is_none() && seen.b.version.is_none());
            seen.worker = None;
        }
    }
}

/// At most so many moves; the moves done.
fn go(seen: &mut Seen, wanted: &Wanted, most: usize) -> Vec<Move> {
    seen.sealed = false;
    seen.unsealed.clear();
    let mut done = Vec::new();
    while done.len() < most {
        let Some(next) = towards(seen, wanted) else {
            break;
        };
        perform(seen, wanted, &next);
        done.push(next);
        assert!(done.len() < 40, "no end: {done:?}");
    }
    done
}

fn made(ask: Ask) -> Seen {
    let mut seen = Seen::default();
    go(&mut seen, &wanted(ask), usize::MAX);
    seen
}

#[test]
fn a_new_worker_is_claimed_first_and_reachable_last() {
    let mut seen = Seen::default();
    let done = go(&mut seen, &wanted(PLAIN), usize::MAX);
    use Move::*;
    let expected = [
        Claim,
        MakeWorker,
        MakeBundle(Slot::A),
        MakeVersion(Slot::A),
        MakeDeployment(Slot::A),
        MakeEndpoint,
    ];
    assert_eq!(done, expected);
    assert_eq!(go(&mut seen, &wanted(PLAIN), usize::MAX), []);
}

#[test]
fn an_update_makes_a_version_beside_the_old_one_and_lets_that_go() {
    let mut seen = made(PLAIN);
    let done = go(
        &mut seen,
        &wanted(Ask {
            peer: Some("auth"),
            token: "t2",
            ..PLAIN
        }),
        usize::MAX,
    );
    use Move::*;
    let expected = [
        MakeBundle(Slot::B),
        MakeVersion(Slot::B),
        Promote(Slot::B),
        DeleteVersion(Slot::A),
        DeleteBundle(Slot::A),
    ];
    assert_eq!(done, expected);
    let back = go(
        &mut seen,
        &wanted(Ask {
            token: "t3",
            ..PLAIN
        }),
        usize::MAX,
    );
    assert_eq!(
        back[..3],
        [MakeBundle(Slot::A), MakeVersion(Slot::A), Promote(Slot::A)]
    );
    assert!(
        seen.b.version.is_none(),
        "the version that binds auth would hold it"
    );
}

#[test]
fn a_write_that_was_cut_anywhere_is_finished_by_the_same_or_by_another_one() {
    let first = Ask {
        peer: Some("auth"),
        secret: Some("KEY"),
        token: "t2",
        ..PLAIN
    };
    let second = Ask {
        code: "two",
        peer: Some("auth"),
        secret: Some("OTHER"),
        endpoint: false,
        token: "t3",
    };
    for begun in [Seen::default(), made(PLAIN)] {
        for cut in 0..12 {
            for (then, token) in [(first, "t2"), (first, "t9"), (second, "t3"), (PLAIN, "t4")] {
                let then = Ask { token, ..then };
                let mut seen = begun.clone();
                go(&mut seen, &wanted(first), cut);
                go(&mut seen, &wanted(then), usize::MAX);
                assert_eq!(
                    towards(
                        &Seen {
                            sealed: true,
                            ..seen.clone()
                        },
                        &wanted(then)
                    ),
                    None
                );
                let versions = Slot::BOTH
                    .iter()
                    .filter(|slot| seen.slot(**slot).version.is_some());
                let bundles = Slot::BOTH
                    .iter()
                    .filter(|slot| seen.slot(**slot).bundle.is_some());
                assert_eq!(
                    (versions.count(), bundles.count()),
                    (1, 1),
                    "cut after {cut}"
                );
                assert_eq!(seen.endpoint.is_some(), then.endpoint);
            }
        }
    }
}

#[test]
fn a_worker_that_was_cut_anywhere_comes_apart() {
    for cut in 0..12 {
        let mut seen = made(PLAIN);
        let ask = wanted(Ask {
            secret: Some("KEY"),
            code: "two",
            token: "t2",
            ..PLAIN
        });
        go(&mut seen, &ask, cut);
        let mut left = 40;
        while let Some(next) = apart(&seen) {
            perform(&mut seen, &ask, &next);
            left -= 1;
            assert!(left > 0);
        }
        assert!(seen.is_empty());
    }
}

#[test]
fn a_changed_secret_is_a_new_version_and_its_value_goes_with_the_last_that_needs_it() {
    let mut seen = made(Ask {
        secret: Some("KEY"),
        ..PLAIN
    });
    let same = wanted(Ask {
        secret: Some("KEY"),
        token: "t2",
        ..PLAIN
    });
    let done = go(&mut seen, &same, usize::MAX);
    assert_eq!(done[0], Move::Seal);
    assert!(done.contains(&Move::MakeVersion(Slot::B)) && seen.unsealed.is_empty());
    let none = wanted(Ask {
        token: "t3",
        ..PLAIN
    });
    let done = go(&mut seen, &none, usize::MAX);
    let gone = Move::Unseal(BTreeSet::from(["KEY".to_owned()]));
    let at = |wanted: &Move| done.iter().position(|next| next == wanted).unwrap();
    assert!(
        at(&Move::Promote(Slot::A)) < at(&gone) && at(&gone) < at(&Move::DeleteVersion(Slot::B))
    );
}

#[test]
fn a_version_whose_peer_was_made_anew_is_written_again() {
    let ask = Ask {
        peer: Some("auth"),
        ..PLAIN
    };
    let mut seen = made(ask);
    seen.a.version.as_mut().unwrap().broken = true;
    let done = go(&mut seen, &wanted(Ask { token: "t2", ..ask }), usize::MAX);
    assert!(done.contains(&Move::MakeVersion(Slot::B)), "{done:?}");
}

#[test]
fn traffic_that_was_split_by_hand_is_put_together() {
    let mut seen = made(PLAIN);
    seen.b = seen.a.clone();
    let split =
        |slot: Slot| json!({ "workerVersion": { "name": slot.name("api") }, "weight": 5000 });
    seen.deployment.as_mut().unwrap().spec["versions"] = json!([split(Slot::A), split(Slot::B)]);
    let done = go(
        &mut seen,
        &wanted(Ask {
            code: "two",
            token: "t2",
            ..PLAIN
        }),
        usize::MAX,
    );
    assert_eq!(done[0], Move::Promote(Slot::A));
    assert_eq!(seen.weighted().len(), 1);
}

#[test]
fn an_endpoint_goes_before_code_that_cannot_answer() {
    let mut seen = made(PLAIN);
    let done = go(
        &mut seen,
        &wanted(Ask {
            endpoint: false,
            code: "two",
            token: "t2",
            ..PLAIN
        }),
        usize::MAX,
    );
    let at = |wanted: &Move| done.iter().position(|next| next == wanted).unwrap();
    assert!(at(&Move::DeleteEndpoint) < at(&Move::Promote(Slot::B)));
}

#[test]
fn a_worker_of_another_owner_that_was_adopted_is_claimed_anew() {
    let mut seen = made(PLAIN);
    seen.claim
        .as_mut()
        .unwrap()
        .1
        .tags
        .insert("notation:app".into(), "other".into());
    let done = go(
        &mut seen,
        &wanted(Ask {
            token: "t2",
            ..PLAIN
        }),
        usize::MAX,
    );
    assert_eq!(done, [Move::Unclaim, Move::Claim]);
}
