//! Evaluates an entry some times and prints how long it took, for measuring:
//! `cargo run --release -p notation-program --example evaluate -- DIR ENTRY TIMES`.

use std::{path::Path, time::Instant};

use notation_program::{Limits, evaluate, load_config};

#[path = "../tests/common/mod.rs"]
mod common;

#[expect(clippy::print_stdout, reason = "a program for people who measure")]
fn main() {
    let mut args = std::env::args().skip(1);
    let dir = args.next().unwrap_or_else(|| ".".into());
    let entry = args.next().unwrap_or_else(|| "pair".into());
    let times: usize = args.next().and_then(|n| n.parse().ok()).unwrap_or(1);
    let types = common::types();
    for _ in 0..times {
        let begin = Instant::now();
        let done = load_config(Path::new(&dir)).and_then(|config| {
            let read = begin.elapsed();
            let entry = entry.parse().expect("an entry name is name-safe");
            evaluate(&config, &entry, &types, &Limits::default()).map(|done| (read, done))
        });
        match done {
            Ok((read, done)) => println!(
                "config {read:?}, all {:?}, {} resources, {} assets",
                begin.elapsed(),
                done.graph.resources.len(),
                done.assets.len()
            ),
            Err(problems) => {
                for problem in problems {
                    println!("{:?}", miette::Report::new(problem));
                }
            }
        }
    }
}
