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
/// Returns the files written, in order. Errors: files of that name are there already (all of
/// them are told, nothing is written), or one cannot be written.
pub fn init_project(dir: &Path, app: &AppName) -> Result<Vec<PathBuf>, Vec<Problem>> {
    let taken: Vec<Problem> = FILES
        .iter()
        .map(|(name, _)| dir.join(name))
        .filter(|file| file.exists())
        .map(|file| {
            Problem::new(
                codes::FILE_EXISTS,
                format!("{} is there already", file.display()),
            )
            .help("choose an empty folder: `notation init DIR`; nothing was written")
        })
        .collect();
    if !taken.is_empty() {
        return Err(taken);
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
