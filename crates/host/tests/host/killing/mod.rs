//! kill -9 under load: nothing acknowledged is missing, nothing is applied twice, records answer
//! as before, held artifacts stay. `NOTATION_HOST_KILLS` sets how often.

mod life;

use crate::bench::*;
use life::{Forms, Life, Raw};
use notation_host::{Host, NoDataPlane};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

const CLIENTS: usize = 20;

/// Runs lives to their end, as many at once as there are clients.
async fn all<F>(lives: Vec<Life>, work: impl Fn(Life) -> F) -> Vec<Life>
where
    F: Future<Output = Life> + Send + 'static,
{
    let mut waiting = lives.into_iter();
    let mut running = JoinSet::new();
    let mut done = Vec::new();
    loop {
        while running.len() < CLIENTS
            && let Some(life) = waiting.next()
        {
            running.spawn(work(life));
        }
        match running.join_next().await {
            Some(life) => done.push(life.unwrap()),
            None => return done,
        }
    }
}

async fn launch(dir: &Path) -> (Process, Raw) {
    let mut process = Process::launch(dir, Manner::Conformance);
    let raw = Raw::at(&process.address().await);
    (process, raw)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_acknowledged_is_lost_or_applied_twice() {
    let kills = rounds("NOTATION_HOST_KILLS", 10);
    let temp = tempfile::tempdir().unwrap();
    let forms = Arc::new(Forms::installed());
    let mut dice = fastrand::Rng::with_seed(7);
    let mut past: Vec<Life> = Vec::new();
    let (mut process, mut raw) = launch(temp.path()).await;
    let mut acknowledged = 0;
    for round in 0..kills {
        let acknowledgements = Arc::new(Semaphore::new(0));
        let load: Vec<_> = (0..CLIENTS)
            .map(|at| {
                let life = Life::begin(&forms, format!("r{round}c{at}"));
                let (raw, acknowledgements) = (raw.clone(), acknowledgements.clone());
                tokio::spawn(life.live(raw, acknowledgements))
            })
            .collect();
        // After any number of answers; where the requests without one are then is up to chance.
        let instant = dice.u32(1..=400);
        let reached = acknowledgements.acquire_many(instant);
        let reached = tokio::time::timeout(Duration::from_secs(120), reached).await;
        reached.expect("the load stands still").unwrap().forget();
        process.kill();
        let mut lives = Vec::new();
        for task in load {
            lives.push(task.await.unwrap());
        }
        if round % 4 == 3 {
            // Starting is an instant like any other.
            let mut starting = Process::launch(temp.path(), Manner::Conformance);
            tokio::time::sleep(Duration::from_millis(dice.u64(0..400))).await;
            starting.kill();
        }
        (process, raw) = launch(temp.path()).await;
        let after = raw.clone();
        let mut lives = all(lives, move |life| life.resume(after.clone())).await;
        let after = raw.clone();
        lives = all(lives, move |life| life.verify(after.clone())).await;
        acknowledged += lives.iter().map(Life::acknowledged).sum::<usize>();
        past.extend(lives);
    }
    let after = raw.clone();
    let past = all(past, move |life| life.verify(after.clone())).await;
    process.kill();
    artifacts_are_whole(temp.path(), &past).await;
    assert!(acknowledged > kills * CLIENTS / 2, "the load did nothing");
    eprintln!("killed {kills} times: {acknowledged} acknowledged requests, none lost or doubled");
}

/// Every blob that a committed manifest names still has its bytes, also after a collection.
async fn artifacts_are_whole(dir: &Path, lives: &[Life]) {
    let config = config(&dir.join("data")).with_conformance(adapter());
    let host = Host::open(config, Arc::new(NoDataPlane)).await.unwrap();
    host.collect_garbage().await.unwrap();
    let mut whole = 0;
    for (digest, bytes) in lives.iter().flat_map(Life::artifacts) {
        assert_eq!(host.blob(digest).await.unwrap(), bytes.as_bytes());
        whole += 1;
    }
    assert!(whole > 0, "the load uploaded nothing");
}
