//! A secret of a program, all the way into the worker that runs.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::{hosted::Hosted, served::exchange, support::fed};

#[test]
fn a_secret_reaches_the_running_worker_and_nothing_else() {
    let hosted = Hosted::new();
    let project = &hosted.0;
    project.write(
        "src/w.ts",
        "export default { fetch(_request: Request, env: { API_KEY: string }) { return new Response(\"the key is \" + env.API_KEY); } };\n",
    );
    project.program(
        "import { secret } from \"@notation/core\";\nimport { Worker } from \"@notation/edge\";\n\
         const w = new Worker({ id: \"w\", config: { main: \"src/w.ts\", secrets: { API_KEY: secret(\"KEY\") } } });\n\
         export const url = w.url;\nexport const name = w.ScriptName;\n",
    );
    let set = |value: &str| {
        let mut command = project.command();
        command.args(["secret", "set", "main", "KEY", "--stage", "dev"]);
        fed(command, value).exits(0);
    };
    set("swordfish");
    let deployed = project.deploy().exits(0);
    let outputs = || {
        let ran = project.run(&["--json", "outputs", "main", "--stage", "dev"]);
        ran.exits(0).event("outputs")["outputs"].clone()
    };
    let answer = || {
        let url = outputs()["url"].as_str().unwrap().to_owned();
        let authority = url
            .trim_start_matches("http://")
            .trim_end_matches('/')
            .to_owned();
        let request = format!("GET / HTTP/1.1\r\nHost: {authority}\r\nConnection: close\r\n\r\n");
        exchange(&authority, &request).1
    };
    assert!(answer().contains("the key is swordfish"), "{}", answer());
    // Another value, another version.
    set("mackerel");
    let again = project.deploy().exits(0);
    assert!(answer().contains("the key is mackerel"), "{}", answer());

    // Whoever runs the host sees names, and can change the value.
    let worker = outputs()["name"].as_str().unwrap().to_owned();
    project
        .run(&["host", "secret", "list", &worker])
        .exits(0)
        .says("API_KEY");
    let mut command = project.command();
    command.args(["host", "secret", "set", &worker, "API_KEY"]);
    let told = fed(command, "halibut\n").exits(0);
    assert!(answer().contains("the key is halibut"), "{}", answer());
    project
        .run(&["host", "secret", "rm", &worker, "OTHER"])
        .exits(1)
        .says("secret::unknown");

    let status = project.run(&["host", "status"]).exits(0);
    let logs = project.run(&["host", "logs", "-n", "10000"]).exits(0);
    let shown = project
        .run(&["state", "show", "main", "w", "--stage", "dev"])
        .exits(0);
    for said in [
        deployed.said(),
        again.said(),
        told.said(),
        status.said(),
        logs.said(),
        shown.said(),
    ] {
        for value in ["swordfish", "mackerel", "halibut"] {
            assert!(!said.contains(value), "{said}");
        }
    }
    // At rest neither; the worker's own configuration lives in memory.
    for file in files_below(&project.path().join(".notation")) {
        let bytes = fs::read(&file).unwrap_or_default();
        for value in ["swordfish", "mackerel", "halibut"] {
            let found = bytes
                .windows(value.len())
                .any(|window| window == value.as_bytes());
            assert!(!found, "{value} is in {}", file.display());
        }
    }
    // A value that is taken away: its version is not ready, and says which it misses.
    project
        .run(&["host", "secret", "rm", &worker, "API_KEY"])
        .exits(0);
    let page = hosted.status()["status_page"].clone();
    let page = page.as_str().unwrap();
    let (key, authority) = page
        .trim_start_matches("http://status:")
        .trim_end_matches('/')
        .split_once('@')
        .unwrap();
    let request = format!(
        "GET / HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer {key}\r\nConnection: close\r\n\r\n"
    );
    let (status, html) = exchange(authority, &request);
    assert_eq!(status, 200);
    assert!(
        html.contains("API_KEY") && html.contains("not ready"),
        "{html}"
    );
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => files.extend(files_below(&path)),
            Ok(kind) if kind.is_file() => files.push(path),
            _ => {}
        }
    }
    files
}
