//! `notation.config.ts` as data.

use std::fs;

use notation_program::{codes, load_config};

use crate::project::Project;

#[test]
fn every_field() {
    let project = Project::with_entry("");
    project.write(
        "notation.config.ts",
        r#"import { defineConfig } from "@notation/core";
const stage: string = "dev";
export default defineConfig({
  app: "orders-app",
  entries: { orders: "./infra/../infra/app.ts", jobs: "infra/app.ts" },
  runtimeModules: "src/**/*.fn.ts",
  defaultStage: stage,
  state: "sqlite:./state.db",
});
"#,
    );
    let config = load_config(project.dir.path()).unwrap();
    assert_eq!(config.app.as_str(), "orders-app");
    let entries: Vec<_> = config
        .entries
        .iter()
        .map(|(name, file)| (name.as_str(), file.path.as_str()))
        .collect();
    assert_eq!(
        entries,
        [("orders", "infra/app.ts"), ("jobs", "infra/app.ts")]
    );
    assert_eq!(config.runtime_modules, ["src/**/*.fn.ts"]);
    assert_eq!(config.default_stage.unwrap().as_str(), "dev");
    assert_eq!(config.state.as_deref(), Some("sqlite:./state.db"));
}

#[test]
fn it_is_found_upwards() {
    let project = Project::with_entry("");
    let config = load_config(&project.dir.path().join("src")).unwrap();
    assert_eq!(
        fs::canonicalize(config.root).unwrap(),
        fs::canonicalize(project.dir.path()).unwrap()
    );
}

#[test]
fn a_path_finds_its_entry() {
    let project = Project::with_entry("");
    let config = load_config(project.dir.path()).unwrap();
    let inside = project.dir.path().join("infra");
    let entry = config.entry_of_path("./app.ts", &inside).unwrap();
    assert_eq!(entry.as_str(), "main");
    assert_eq!(config.entry_of_path("app.ts", project.dir.path()), None);
}

#[test]
fn without_one_the_way_out_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let problems = load_config(folder.path()).unwrap_err();
    assert_eq!(problems[0].code, codes::NO_PROJECT);
    assert!(
        problems[0]
            .help
            .as_deref()
            .unwrap()
            .contains("notation init")
    );
}
