//! Random admitted changes: no breach, no stale rendering, no revision that moves for nothing.

use crate::bench;
use crate::dice::{Dice, Digests, HOSTNAMES, standing, wanted};
use notation_edge::{
    Admitted, Change, Delete, EdgeKind, Effect, Exports, Fence, Manifest, ManifestKind, Observe,
    Put, Refusal, Removal, Seal, SealedReadiness, Touch, World, admit, render,
};
use notation_host::Contracts;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};

static CONTRACTS: LazyLock<Contracts> = LazyLock::new(|| Contracts::load(None, None).unwrap());

const ALL: &str = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
const ONE: &str = "sha256:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";
const SQL: [&str; 3] = [
    "sha256:cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc",
    "sha256:dddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddd",
    "sha256:eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee",
];

fn start() -> World {
    let mut world = World::empty(
        CONTRACTS.catalog.clone(),
        "endpoints.localhost",
        SealedReadiness::Required,
    );
    let manifest = |kind, entries: &[&str]| {
        Arc::new(Manifest {
            kind,
            main_module: None,
            entries: entries
                .iter()
                .map(|path| notation_edge::Entry {
                    path: (*path).to_owned(),
                    media_type: String::new(),
                    size: 1,
                    digest: ALL.to_owned(),
                })
                .collect(),
        })
    };
    for (digest, handlers) in [
        (ALL, &["fetch", "scheduled", "queue"][..]),
        (ONE, &["fetch"]),
    ] {
        world.hold(digest, manifest(ManifestKind::WorkerBundle, &["index.js"]));
        let known: BTreeSet<String> = handlers.iter().map(|name| (*name).to_owned()).collect();
        world.learn(digest, Exports::Known(known));
    }
    for (digest, files) in SQL
        .into_iter()
        .zip([&["1.sql"][..], &["1.sql", "2.sql"], &["2.sql"]])
    {
        world.hold(digest, manifest(ManifestKind::MigrationBundle, files));
    }
    for (at, space) in SPACES.into_iter().enumerate() {
        for (kind, name, spec) in standing(&digests(), HOSTNAMES[at]) {
            let fresh = 100_000 + world.len();
            let put = put_of(&world, space, (kind, name, spec), fresh);
            let admitted = admit(&world, &Change::Put(put), "2025-01-01T00:00:00Z").unwrap();
            world = admitted.after().clone();
        }
    }
    world
}

fn digests() -> Digests {
    Digests {
        modules: [ALL, ONE].map(str::to_owned),
        migrations: SQL.map(str::to_owned),
    }
}

const SPACES: [&str; 2] = ["one", "two"];

fn put(world: &World, dice: Dice, fresh: usize) -> Put {
    let space = dice.pick(1, &SPACES);
    put_of(world, space, wanted(dice, &digests()), fresh)
}

fn put_of(
    world: &World,
    space: &str,
    (kind, name, spec): (EdgeKind, &str, Value),
    fresh: usize,
) -> Put {
    let put = bench::put(&CONTRACTS, world, space, (kind, name, spec), fresh);
    let form = CONTRACTS.catalog.family(kind).unwrap();
    assert_eq!(CONTRACTS.diagnose(form, &put.spec), []);
    put
}

fn change(world: &World, dice: Dice, fresh: usize, removal: Removal) -> Change {
    let target = world
        .resources()
        .nth(usize::from(dice.0[6]) % world.len().max(1));
    match (dice.0[7] % 24, target) {
        (0 | 1, Some(target)) => Change::Delete(Delete {
            key: target.key.clone(),
            form_ref: target.form_ref.clone(),
            generation: target.generation.to_string(),
            if_match: None,
            accepted: None,
            removal,
        }),
        (2, Some(target)) if dice.0[5].is_multiple_of(3) => Change::Observe(Observe {
            key: target.key.clone(),
            form_ref: target.form_ref.clone(),
            generation: target.generation.to_string(),
            touch: Touch::Count,
        }),
        (3, Some(target)) if target.kind() == Some(EdgeKind::ModuleWorker) => Change::Seal(Seal {
            worker: target.uid.clone(),
            name: "KEY".into(),
            present: dice.0[4].is_multiple_of(2),
        }),
        _ => Change::Put(put(world, dice, fresh)),
    }
}

/// What must hold between a world and the one after an admitted change.
fn consistent(before: &World, admitted: &Admitted) {
    let after = admitted.after();
    let subject = match admitted.effect() {
        Effect::Created(resource) | Effect::Kept(resource) | Effect::Removed(resource) => {
            Some(resource.uid.clone())
        }
        Effect::Sealed(_) => None,
    };
    for resource in after.resources() {
        let rendering = render(after, resource);
        assert_eq!(
            rendering.reason, resource.condition.reason,
            "stale rendering of {}",
            resource.key
        );
        assert_eq!(
            rendering.host_reason.as_deref(),
            resource.condition.host_reason.as_deref()
        );
        let Some(old) = before.get(&resource.uid) else {
            assert_eq!((resource.generation.get(), resource.revision.get()), (1, 1));
            continue;
        };
        let moved = resource.revision.get() - old.revision.get();
        assert!(moved <= 1, "{} moved by {moved}", resource.key);
        let written = admitted.upserts().iter().any(|it| it.uid == resource.uid);
        if subject.as_ref() != Some(&resource.uid) {
            assert_eq!(resource.generation, old.generation);
            assert_eq!(
                moved == 1,
                resource.condition != old.condition,
                "{}",
                resource.key
            );
            assert_eq!(written, moved == 1);
        }
        assert!(written || resource == old);
    }
}

fn play(dice: Vec<[u8; 8]>, removal: Removal) -> (World, usize, usize) {
    let mut world = start();
    let (mut admitted_count, mut refused_count) = (0, 0);
    for (fresh, dice) in dice.into_iter().enumerate() {
        let change = change(&world, Dice(dice), fresh, removal);
        match admit(&world, &change, "2026-01-01T00:00:00Z") {
            Ok(admitted) => {
                admitted_count += 1;
                consistent(&world, &admitted);
                world = admitted.after().clone();
                if let Change::Put(put) = &change {
                    identical(&world, put);
                }
            }
            Err(Refusal { message, .. }) => {
                refused_count += 1;
                assert!(!message.is_empty());
            }
        }
    }
    (world, admitted_count, refused_count)
}

/// The same put again moves nothing anywhere, or is refused because the kind is immutable.
fn identical(world: &World, put: &Put) {
    let current = world.at(&put.key).unwrap();
    let again = Put {
        fence: Fence::Current {
            generation: current.generation,
            uid: None,
        },
        ..put.clone()
    };
    if let Ok(again) = admit(world, &Change::Put(again), "2027-01-01T00:00:00Z") {
        assert!(again.upserts().is_empty(), "{:?}", again.upserts());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn admitted_changes_never_leave_a_breach(dice in prop::collection::vec(any::<[u8; 8]>(), 1..160)) {
        let mut world = start();
        for (fresh, dice) in dice.into_iter().enumerate() {
            let change = change(&world, Dice(dice), fresh, Removal::Asked);
            if let Ok(admitted) = admit(&world, &change, "2026-01-01T00:00:00Z") {
                world = admitted.after().clone();
                // A version whose value was removed while it is weighted is reported, not undone.
                let breaches: Vec<_> = world
                    .breaches()
                    .into_iter()
                    .filter(|breach| !matches!(breach, notation_edge::Breach::UnreadyVersion { reason, .. } if reason.contains("no value")))
                    .collect();
                prop_assert_eq!(breaches, vec![]);
            }
        }
    }

    #[test]
    fn renderings_are_never_stale_and_revisions_never_move_for_nothing(dice in prop::collection::vec(any::<[u8; 8]>(), 1..160)) {
        play(dice.clone(), Removal::Asked);
        play(dice, Removal::Vanished);
    }
}

#[test]
fn the_dice_reach_both_sides_of_the_rules() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let strategy = prop::collection::vec(any::<[u8; 8]>(), 600);
    let dice = strategy.new_tree(&mut runner).unwrap().current();
    let (world, admitted, refused) = play(dice, Removal::Asked);
    assert!(
        admitted > 60 && refused > 60,
        "{admitted} admitted, {refused} refused"
    );
    let kinds: BTreeSet<EdgeKind> = world.resources().filter_map(|it| it.kind()).collect();
    assert!(kinds.len() >= 8, "{kinds:?}");
}
