//! What a durable deploy writes, counted: bytes per byte that is recorded, and commits
//! (`engine.md` §7). One test to a file, since the bytes are those of the whole process.
#![allow(clippy::unwrap_used, reason = "its helpers are test code")]

mod support;

use std::{path::Path, sync::Arc};

use notation_engine::{RunOptions, deploy};
use notation_state::{KeySource, SqliteStore, Traffic};
use support::{Cloud, Program, program::resource, shop};

/// Bytes this process handed to the system for writing so far.
fn written_bytes() -> u64 {
    let io = std::fs::read_to_string("/proc/self/io").unwrap();
    let written = io.lines().find_map(|line| line.strip_prefix("wchar: "));
    written.unwrap().parse().unwrap()
}

/// Deploys so many things at ten calls a time; bytes written per byte recorded, and what for.
async fn deployed(folder: &Path, count: usize) -> (f64, Traffic) {
    let items = (0..count).map(|number| {
        resource("sim/Thing", &format!("thing-{number}")).set("value", "/api/v1/orders")
    });
    let before = written_bytes();
    let key = KeySource::File(folder.join("key"));
    let store = Arc::new(SqliteStore::open(folder.join("state.db"), key));
    let session = support::session(shop(), store.clone(), &Cloud::new());
    let graph = Arc::new(Program::new(items).graph());
    let report = deploy(&session, graph, &RunOptions::default()).await;
    assert_eq!(report.unwrap().done.len(), count);
    let traffic = store.traffic();
    // Closing the file moves what was appended to its place: that is written too.
    drop((session, store));
    let written = written_bytes() - before;
    (written as f64 / traffic.record_bytes as f64, traffic)
}

#[tokio::test]
async fn ten_at_a_time_bytes_per_byte_do_not_grow_with_the_size() {
    let folder = tempfile::tempdir().unwrap();
    let (small, _) = deployed(&folder.path().join("small"), 300).await;
    let (large, traffic) = deployed(&folder.path().join("large"), 3_000).await;
    // How many share a commit depends on how busy the machine is, so the bounds are wide:
    // `cargo xtask figures` prints the ratios beside what they should be.
    println!("{small:.1} and {large:.1} bytes written per byte recorded, {traffic:?}");
    assert!(large < 40.0 && large < small * 2.0, "{small} {large}");
    // An intent, an outcome and a record each; alone, they would be two commits each.
    assert_eq!(traffic.lines, 9_000);
    assert!(traffic.commits < 6_000, "{traffic:?}");
}
