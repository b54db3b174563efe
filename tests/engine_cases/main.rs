//! The engine's exact cases, through the binary and the simulated cloud's call log. The letter and
//! number above a test is the case's name.
#![allow(
    clippy::unwrap_used,
    reason = "a test stops where it fails, in its helpers too"
)]

#[path = "../support/mod.rs"]
mod support;

mod crashing;
mod cycles;
mod holding;
mod recovering;
mod removing;
mod replacing;
mod running;
mod whose;

use support::PAIR;

const NOTHING: &str = "export const nothing = 0;\n";

/// The pair, with more in the config of each.
fn pair(a: &str, b: &str) -> String {
    PAIR.replace(
        "id: \"a\", config: {}",
        &format!("id: \"a\", config: {{ {a} }}"),
    )
    .replace(
        "id: \"b\", config: {}",
        &format!("id: \"b\", config: {{ {b} }}"),
    )
}

/// Workers bound to each other as these edges say.
fn ring(edges: &[(&str, &str)]) -> String {
    let mut members: Vec<&str> = edges.iter().flat_map(|(from, to)| [*from, *to]).collect();
    members.sort_unstable();
    members.dedup();
    let mut text = String::from("import { Worker } from \"@notation/sim\";\n");
    for member in members {
        text += &format!("const {member} = new Worker({{ id: \"{member}\", config: {{}} }});\n");
    }
    for (from, to) in edges {
        text += &format!(
            "{from}.contribute({{ bindings: [{{ type: \"service\", service: {to}.Name }}] }});\n"
        );
    }
    text
}
