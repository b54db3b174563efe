//! A project in a temporary folder.

use std::{fs, path::Path, time::Duration};

use miette::{GraphicalReportHandler, GraphicalTheme};
use notation_program::{Evaluated, Limits, Problem, evaluate, load_config};
use tempfile::TempDir;

use crate::common;

pub struct Project {
    pub dir: TempDir,
}

const CONFIG: &str = r#"import { defineConfig } from "@notation/core";

export default defineConfig({
  app: "orders-app",
  entries: { main: "infra/app.ts" },
});
"#;

impl Project {
    /// The pair's files, with this entry.
    pub fn with_entry(entry: &str) -> Project {
        let project = Project {
            dir: TempDir::new().unwrap(),
        };
        let pair = fixtures().join("pair/src");
        for file in fs::read_dir(pair).unwrap() {
            let file = file.unwrap();
            let text = fs::read_to_string(file.path()).unwrap();
            project.write(
                &format!("src/{}", file.file_name().to_str().unwrap()),
                &text,
            );
        }
        project.write("notation.config.ts", CONFIG);
        project.write("infra/app.ts", entry);
        project
    }

    pub fn write(&self, name: &str, text: &str) {
        let path = self.dir.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub fn evaluate(&self) -> Result<Evaluated, Vec<Problem>> {
        self.evaluate_within(Duration::from_secs(60))
    }

    /// With a limit of time, for programs that do not end.
    pub fn evaluate_within(&self, time: Duration) -> Result<Evaluated, Vec<Problem>> {
        let config = load_config(self.dir.path())?;
        let limits = Limits {
            time,
            memory_bytes: 32 * 1024 * 1024,
            ..Limits::default()
        };
        evaluate(&config, &"main".parse().unwrap(), &common::types(), &limits)
    }
}

pub fn fixtures() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures"))
}

/// Problems as a terminal shows them.
pub fn render(problems: &[Problem]) -> String {
    let handler = GraphicalReportHandler::new_themed(GraphicalTheme::unicode_nocolor())
        .with_width(100)
        .with_links(false);
    let mut text = String::new();
    for problem in problems {
        handler.render_report(&mut text, problem).unwrap();
        text.push('\n');
    }
    text
}

/// An entry that has no problem.
pub fn evaluated(entry: &str) -> Evaluated {
    let project = Project::with_entry(entry);
    project
        .evaluate()
        .unwrap_or_else(|problems| panic!("{}", render(&problems)))
}
