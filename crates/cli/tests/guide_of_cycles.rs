//! `docs/guide/cycles.md` shows what the binary prints today: every block under a mark
//! `<!-- printed: NAME -->` is part of what the scene of that name prints, and the programs are
//! those of the page.
#![allow(clippy::unwrap_used, reason = "its helpers are test code")]

#[path = "../../../tests/support/mod.rs"]
mod support;

use std::{collections::BTreeMap, fs};

use serde_json::json;
use support::Project;

fn page() -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/cycles.md");
    fs::read_to_string(path).unwrap()
}

/// Blocks by the mark above them.
fn blocks(page: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        let Some(name) = line
            .strip_prefix("<!-- printed: ")
            .and_then(|rest| rest.strip_suffix(" -->"))
        else {
            continue;
        };
        assert_eq!(lines.next(), Some("```"), "a block follows {name}");
        let block: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
        let twice = found.insert(name.to_owned(), block.join("\n"));
        assert!(twice.is_none(), "{name} is there twice");
    }
    found
}

/// The first program of the page.
fn pair(page: &str) -> String {
    let (_, rest) = page.split_once("```ts\n").unwrap();
    rest.split_once("```").unwrap().0.to_owned()
}

fn plan(shop: &Project) -> String {
    shop.plan().said()
}

/// What each scene prints.
fn scenes(pair: &str) -> BTreeMap<&'static str, String> {
    let mut printed = BTreeMap::new();
    let fresh = |program: &str| {
        let shop = Project::new();
        shop.program(program);
        shop
    };
    let deployed = |program: &str| {
        let shop = fresh(program);
        shop.deploy().exits(0);
        shop
    };
    printed.insert("a new pair", plan(&fresh(pair)));

    let versions = pair
        .replace("service: b.Name", "service: b.Name, version: b.versionId")
        .replace("service: a.Name", "service: a.Name, version: a.versionId");
    printed.insert(
        "a pair that never settles",
        fresh(&versions).deploy().said(),
    );

    let shop = deployed(pair);
    shop.program("export {};\n");
    printed.insert("a pair that goes", plan(&shop));

    let shop = deployed(pair);
    shop.program(&pair.replace("region: \"eu\"", "region: \"us\""));
    printed.insert("a member that is replaced", plan(&shop));

    let named = |region: &str| {
        pair.replace(
            "region: \"eu\"",
            &format!("Name: \"front\", region: \"{region}\""),
        )
    };
    let shop = deployed(&named("eu"));
    shop.program(&named("us"));
    printed.insert("a written name that is replaced", plan(&shop));

    let joined = format!(
        "{}const c = new Worker({{ id: \"c\", config: {{}} }});\nb.contribute({{ bindings: [{{ type: \"service\", service: c.Name }}] }});\nc.contribute({{ bindings: [{{ type: \"service\", service: a.Name }}] }});\n",
        pair.lines()
            .filter(|line| !line.starts_with("b.contribute"))
            .map(|line| format!("{line}\n"))
            .collect::<String>()
    );
    let shop = deployed(pair);
    shop.program(&joined);
    printed.insert("a member that joins", plan(&shop));
    let shop = deployed(&joined);
    shop.program(pair);
    printed.insert("a member that leaves", plan(&shop));

    let shop = deployed(pair);
    shop.take_away("shop-dev-a");
    printed.insert("a member that somebody deleted", plan(&shop));

    let strict = pair.replace("Worker", "StrictWorker");
    printed.insert(
        "a loop that nobody can open",
        fresh(&strict).deploy().said(),
    );

    let shop = fresh(pair);
    shop.faults(json!([{ "op": "update", "name": "*-a", "do": "kill_after" }]));
    assert_eq!(shop.deploy().status, None);
    printed.insert("after a kill", plan(&shop));
    printed
}

#[test]
fn every_printed_block_of_the_page_is_what_the_binary_prints() {
    let page = page();
    let printed = scenes(&pair(&page));
    let blocks = blocks(&page);
    let shown: Vec<&str> = blocks.keys().map(String::as_str).collect();
    let known: Vec<&str> = printed.keys().copied().collect();
    assert_eq!(shown, known, "the scenes of the page");
    let wrong: Vec<String> = blocks
        .iter()
        .filter(|(name, block)| {
            let lines = |text: &str| -> String {
                text.lines()
                    .map(|line| format!("{}\n", line.trim_end()))
                    .collect()
            };
            !lines(&printed[name.as_str()]).contains(&lines(block))
        })
        .map(|(name, _)| format!("== {name}\n{}", printed[name.as_str()]))
        .collect();
    assert!(wrong.is_empty(), "printed today:\n{}", wrong.join("\n"));
}
