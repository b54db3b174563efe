//! Every way a program can be wrong: what it says, where, and what to do.

use std::{collections::BTreeSet, fs, time::Duration};

use notation_program::codes;

use crate::project::{Project, fixtures, render};

fn cases(folder: &str) -> Vec<(String, String)> {
    let mut cases: Vec<(String, String)> = fs::read_dir(fixtures().join(folder))
        .unwrap()
        .map(|file| {
            let path = file.unwrap().path();
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            (name, fs::read_to_string(path).unwrap())
        })
        .collect();
    cases.sort();
    cases
}

fn project(entry: &str) -> Project {
    let project = Project::with_entry(entry);
    project.write(
        "infra/parse.ts",
        &fs::read_to_string(fixtures().join("parse.ts")).unwrap(),
    );
    project.write(
        "src/instance.ts",
        "class App {\n  fetch() {}\n}\n\nexport default new App();\n",
    );
    project.write("src/broken.ts", "export default {\n  fetch( {},\n};\n");
    project.write(
        "src/node.ts",
        "import \"node:http\";\nexport default { fetch() {} };\n",
    );
    project.write(
        "src/infra.ts",
        "import { Worker } from \"@notation/edge\";\n\nexport default { fetch: () => new Response(Worker.name) };\n",
    );
    project.write("src/empty.ts", "export default { fech() {} };\n");
    project
}

#[test]
fn each_with_its_place_and_a_way_out() {
    let mut seen = BTreeSet::new();
    for (name, text) in cases("errors") {
        let time = match name.starts_with("endless") {
            true => Duration::from_millis(100),
            false => Duration::from_secs(60),
        };
        let problems = project(&text)
            .evaluate_within(time)
            .expect_err(&format!("{name} must be refused"));
        seen.extend(problems.iter().map(|problem| problem.code));
        insta::with_settings!({ snapshot_path => "../snapshots/errors", prepend_module_to_snapshot => false }, {
            insta::assert_snapshot!(name, render(&problems), &text);
        });
    }
    for (name, text) in cases("configs") {
        let project = project("");
        project.write("notation.config.ts", &text);
        let problems = project
            .evaluate()
            .expect_err(&format!("{name} must be refused"));
        seen.extend(problems.iter().map(|problem| problem.code));
        insta::with_settings!({ snapshot_path => "../snapshots/configs", prepend_module_to_snapshot => false }, {
            insta::assert_snapshot!(name, render(&problems), &text);
        });
    }
    // Shown by tests of their own, or only when the machine or the bundler fails.
    let elsewhere = [
        codes::NO_PROJECT,
        codes::PACKAGE_VERSION,
        codes::FILE_EXISTS,
        codes::CANNOT_WRITE,
        codes::BUNDLE,
        codes::IMPORT_OUTSIDE,
        codes::TOO_DEEP,
    ];
    let unseen: Vec<_> = codes::ALL
        .iter()
        .filter(|code| !seen.contains(*code) && !elsewhere.contains(code))
        .collect();
    assert!(unseen.is_empty(), "no case shows {unseen:?}");
}

#[test]
fn every_code_has_a_page() {
    for code in codes::ALL {
        let page = format!(
            "{}/../../docs/errors/{}.md",
            env!("CARGO_MANIFEST_DIR"),
            code.replace("::", "-")
        );
        assert!(fs::metadata(&page).is_ok(), "{code} has no page {page}");
    }
}

#[test]
fn problems_come_in_the_order_of_the_source() {
    let problems = Project::with_entry(
        "import { Thing } from \"@notation/sim\";\n\nnew Thing({ id: \"a\", config: { x: 1 } });\nnew Thing({ id: \"b\", config: { y: 1 } });\n",
    )
    .evaluate()
    .unwrap_err();
    let places: Vec<String> = problems
        .iter()
        .map(|problem| problem.place.as_ref().unwrap().origin.to_string())
        .collect();
    assert_eq!(places, ["infra/app.ts:3:32", "infra/app.ts:4:32"]);
}

#[test]
fn a_package_of_another_version_is_named() {
    let project = Project::with_entry("");
    project.write(
        "node_modules/@notation/edge/package.json",
        "{ \"version\": \"9.9.9\" }",
    );
    let problems = project.evaluate().unwrap_err();
    assert_eq!(problems[0].code, codes::PACKAGE_VERSION);
    assert!(
        problems[0].message.contains("@notation/edge 9.9.9"),
        "{}",
        problems[0]
    );
}

#[test]
fn a_broken_tsconfig_is_named() {
    let project = Project::with_entry("export const x = 1;\n");
    project.write("tsconfig.json", "{ not json");
    let problems = project.evaluate().unwrap_err();
    assert_eq!(problems[0].code, codes::BUNDLE);
    assert!(
        problems[0].message.contains("tsconfig.json"),
        "{}",
        problems[0]
    );
}
