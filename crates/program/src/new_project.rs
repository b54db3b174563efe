//! A project that deploys as it is.

use std::path::{Path, PathBuf};

use notation_model::AppName;

use crate::{
    codes,
    editor_types::{lay_types, write},
    problem::Problem,
};

/// Files of a new project, by name. The app's name stands for `my-app`.
const FILES: &[(&str, &str)] = &[
    (
        "notation.config.ts",
        include_str!("../../../sdk/template/notation.config.ts"),
    ),
    (
        "infra/app.ts",
        include_str!("../../../sdk/template/infra/app.ts"),
    ),
    (
        "src/api.ts",
        include_str!("../../../sdk/template/src/api.ts"),
    ),
    (
        "src/auth.ts",
        include_str!("../../../sdk/template/src/auth.ts"),
    ),
    (
        "src/env.ts",
        include_str!("../../../sdk/template/src/env.ts"),
    ),
];
const GITIGNORE: &str = include_str!("../../../sdk/template/gitignore");

/// Makes a project in a folder: two workers that call each other, with types for the editor. The
/// entry is called `app`. A `.gitignore` or `tsconfig.json` that is there stays.
///
/// Returns the files written, in order. Errors: files of that name are there already (one problem
/// that names them all; nothing is written), or one cannot be written.
pub fn init_project(dir: &Path, app: &AppName) -> Result<Vec<PathBuf>, Vec<Problem>> {
    let is_taken = |name: &Path| match name.parent() {
        Some(folder) if folder != Path::new("") => {
            dir.join(name).exists() || dir.join(folder).is_file()
        }
        _ => dir.join(name).exists(),
    };
    let taken: Vec<&str> = FILES
        .iter()
        .map(|(name, _)| *name)
        .filter(|name| is_taken(Path::new(name)))
        .collect();
    if !taken.is_empty() {
        let problem = Problem::new(
            codes::FILE_EXISTS,
            format!(
                "{} has files of a project already: {}",
                dir.display(),
                taken.join(", ")
            ),
        )
        .help("choose an empty folder: `notation init DIR`; nothing was written");
        return Err(vec![problem]);
    }
    let mut written = Vec::new();
    for (name, text) in FILES {
        let file = dir.join(name);
        write(&file, &text.replace("my-app", app.as_str()))?;
        written.push(file);
    }
    let ignore = dir.join(".gitignore");
    if !ignore.exists() {
        write(&ignore, GITIGNORE)?;
        written.push(ignore);
    }
    written.extend(lay_types(dir)?);
    Ok(written)
}
