//! Programs and project files, from files to graph, assets and problems.

#[path = "../common/mod.rs"]
mod common;
mod project;

mod bundles_worker_code;
mod evaluates_a_program;
mod reads_the_project_file;
mod reports_problems;
