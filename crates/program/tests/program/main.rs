//! Programs and project files, from files to graph, assets and problems.

#![expect(clippy::unwrap_used, reason = "a test may stop at once")]

#[path = "../common/mod.rs"]
mod common;
mod project;

mod agrees_on_names;
mod asks_what_only_deploying_knows;
mod bundles_worker_code;
mod evaluates_a_program;
mod learns_nothing_of_where_it_runs;
mod makes_a_project;
mod reads_the_project_file;
mod reports_problems;
