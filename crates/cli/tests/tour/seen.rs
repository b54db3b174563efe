//! What the tour has seen so far, and what there is to see.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
};

use serde_json::Value as Json;

use crate::support::{Project, Ran, fed};

const REFERENCE: &str = include_str!("../../../../docs/reference/commands.md");
const SCHEMA: &str = include_str!("../../../../docs/events.schema.json");

/// Flags of each command, by the command's words; those of every command under no words.
fn reference() -> BTreeMap<String, BTreeSet<String>> {
    let mut commands: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut current = String::new();
    for line in REFERENCE.lines() {
        if let Some(title) = line.strip_prefix('#') {
            let title = title.trim_start_matches(['#', ' ']);
            current = title.strip_prefix("notation ").unwrap_or("").to_owned();
        } else if line.starts_with("```") && !current.is_empty() {
            // Only a command that can be typed has a usage line.
            commands.entry(current.clone()).or_default();
        } else if let Some(rest) = line.strip_prefix("- `--") {
            let flag: String = rest
                .chars()
                .take_while(|c| c.is_ascii_alphanumeric() || *c == '-')
                .collect();
            commands.entry(current.clone()).or_default().insert(flag);
        }
    }
    commands
}

pub struct Tour {
    pub shop: RefCell<Project>,
    reference: BTreeMap<String, BTreeSet<String>>,
    schema: jsonschema::Validator,
    used: RefCell<BTreeSet<(String, String)>>,
    events: RefCell<BTreeSet<String>>,
    statuses: RefCell<BTreeSet<i32>>,
}

impl Tour {
    pub fn new() -> Tour {
        let schema: Json = serde_json::from_str(SCHEMA).unwrap();
        Tour {
            shop: RefCell::new(Project::new()),
            reference: reference(),
            schema: jsonschema::validator_for(&schema).unwrap(),
            used: RefCell::default(),
            events: RefCell::default(),
            statuses: RefCell::default(),
        }
    }

    /// Notes which command and flags these words are.
    pub fn note(&self, words: &[&str]) {
        let value = |at: usize| at > 0 && words[at - 1] == "--project";
        let named = words
            .iter()
            .enumerate()
            .filter(|(at, word)| !word.starts_with('-') && !value(*at))
            .map(|(_, word)| word);
        let mut command = String::new();
        let mut found = String::new();
        for word in named {
            let longer = format!("{command} {word}").trim().to_owned();
            let known = |name: &String| *name == longer || name.starts_with(&format!("{longer} "));
            if !self.reference.keys().any(known) {
                break;
            }
            if self.reference.contains_key(&longer) {
                found.clone_from(&longer);
            }
            command = longer;
        }
        let mut used = self.used.borrow_mut();
        used.insert((found.clone(), String::new()));
        for word in words {
            let Some(flag) = word.strip_prefix("--") else {
                continue;
            };
            let flag = flag.split('=').next().unwrap().to_owned();
            let everywhere = self.reference[""].contains(&flag);
            let owner = if everywhere {
                String::new()
            } else {
                found.clone()
            };
            used.insert((owner, flag));
        }
    }

    pub fn took(&self, words: &[&str], ran: Ran) -> Ran {
        self.note(words);
        self.statuses.borrow_mut().extend(ran.status);
        if words.contains(&"--json") {
            for event in ran.events() {
                let wrong: Vec<_> = self
                    .schema
                    .iter_errors(&event)
                    .map(|error| error.to_string())
                    .collect();
                assert!(wrong.is_empty(), "{words:?}\n{event:#}\n{wrong:#?}");
                let name = event["event"].as_str().unwrap().to_owned();
                self.events.borrow_mut().insert(name);
            }
        }
        ran
    }

    /// Runs a command line, written as one text, and checks its exit status.
    #[track_caller]
    pub fn go(&self, line: &str, status: i32) -> Ran {
        let words: Vec<&str> = line.split_whitespace().collect();
        let ran = self.shop.borrow().run(&words);
        self.took(&words, ran).exits(status)
    }

    /// The same with something on stdin.
    #[track_caller]
    pub fn go_with(&self, line: &str, input: &str, status: i32) -> Ran {
        let words: Vec<&str> = line.split_whitespace().collect();
        let mut command = self.shop.borrow().command();
        command.args(&words);
        self.took(&words, fed(command, input)).exits(status)
    }

    /// A world of its own for the stops that follow.
    pub fn fresh(&self, program: &str) {
        let shop = Project::new();
        shop.program(program);
        *self.shop.borrow_mut() = shop;
    }

    pub fn faults(&self, faults: Json) {
        self.shop.borrow().faults(faults);
    }

    /// Everything the reference and the schema have was seen.
    pub fn is_complete(&self) {
        let used = self.used.borrow();
        let mut missing: Vec<String> = Vec::new();
        for (command, flags) in &self.reference {
            if !command.is_empty() && !used.contains(&(command.clone(), String::new())) {
                missing.push(format!("notation {command}"));
            }
            for flag in flags {
                if !used.contains(&(command.clone(), flag.clone())) {
                    missing.push(format!("notation {command} --{flag}"));
                }
            }
        }
        assert!(missing.is_empty(), "never typed: {missing:#?}");

        let schema: Json = serde_json::from_str(SCHEMA).unwrap();
        let mut known = BTreeSet::new();
        for shape in schema["oneOf"].as_array().unwrap() {
            let event = &shape["properties"]["event"];
            known.extend(event["const"].as_str().map(str::to_owned));
            let several = event["enum"].as_array().into_iter().flatten();
            known.extend(several.filter_map(Json::as_str).map(str::to_owned));
        }
        let seen = self.events.borrow();
        let unseen: Vec<_> = known.difference(&seen).collect();
        assert!(unseen.is_empty(), "never seen: {unseen:#?}");

        let statuses: Vec<i32> = self.statuses.borrow().iter().copied().collect();
        assert_eq!(statuses, [0, 1, 2, 3, 4, 5, 70, 130]);
    }
}
