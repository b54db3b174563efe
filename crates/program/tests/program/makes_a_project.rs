//! `init` and `types`: a project that is right as it is.

use std::fs;

use notation_program::{Limits, codes, evaluate, init_project, lay_types, load_config};

use crate::common;

#[test]
fn a_new_project_evaluates() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("new");
    let files = init_project(&dir, &"orders-app".parse().unwrap()).unwrap();
    assert!(files.iter().all(|file| file.is_file()));
    let config = load_config(&dir).unwrap();
    assert_eq!(config.app.as_str(), "orders-app");
    let done = evaluate(
        &config,
        &"app".parse().unwrap(),
        &common::types(),
        &Limits::default(),
    )
    .unwrap_or_else(|problems| panic!("{}", crate::project::render(&problems)));
    assert_eq!(done.graph.resources.len(), 2);
    assert_eq!(done.assets.len(), 4);
}

#[test]
fn nothing_that_is_there_is_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("src")).unwrap();
    fs::write(folder.path().join("src/api.ts"), "mine").unwrap();
    let problems = init_project(folder.path(), &"a".parse().unwrap()).unwrap_err();
    assert_eq!(problems[0].code, codes::FILE_EXISTS);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn nothing_is_written_where_a_file_stands_for_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("infra"), "mine").unwrap();
    let problems = init_project(folder.path(), &"a".parse().unwrap()).unwrap_err();
    assert_eq!(problems[0].code, codes::FILE_EXISTS);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn types_are_laid_again_and_a_tsconfig_of_ones_own_stays() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("tsconfig.json"), "{}").unwrap();
    lay_types(folder.path()).unwrap();
    let laid = lay_types(folder.path()).unwrap();
    assert!(
        laid.iter()
            .all(|file| file.to_string_lossy().ends_with(".d.ts"))
    );
    let kept = fs::read_to_string(folder.path().join("tsconfig.json")).unwrap();
    assert_eq!(kept, "{}");
}

#[test]
fn a_file_that_cannot_be_written_is_named() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join(".notation"), "a file").unwrap();
    let problems = lay_types(folder.path()).unwrap_err();
    assert_eq!(problems[0].code, codes::CANNOT_WRITE);
    assert!(problems[0].message.contains(".notation"), "{}", problems[0]);
}
