//! Type declarations of the embedded packages, laid into a project for its editor.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use oxc::{
    allocator::Allocator,
    codegen::{Codegen, CodegenOptions},
    isolated_declarations::{IsolatedDeclarations, IsolatedDeclarationsOptions},
    parser::Parser,
    span::SourceType,
};

use crate::{
    codes,
    problem::Problem,
    sdk::{PACKAGES, Package},
};

/// Where declarations lie in a project.
const TYPES_DIR: &str = ".notation/types";
/// Resolves the packages for an editor and for `tsc`.
const TSCONFIG: &str = include_str!("../../../sdk/template/tsconfig.json");

/// Writes the declarations of every embedded package to `.notation/types/`, and a `tsconfig.json`
/// that resolves them where the project has none. Its own one is left alone.
///
/// Returns the files written, in order. Errors: a file that cannot be written.
pub fn lay_types(project_dir: &Path) -> Result<Vec<PathBuf>, Vec<Problem>> {
    let mut laid = Vec::new();
    for package in PACKAGES {
        for (name, text) in declarations(package) {
            let file = project_dir.join(TYPES_DIR).join(package.name).join(name);
            write(&file, &text)?;
            laid.push(file);
        }
    }
    let tsconfig = project_dir.join("tsconfig.json");
    if !tsconfig.exists() {
        write(&tsconfig, TSCONFIG)?;
        laid.push(tsconfig);
    }
    Ok(laid)
}

/// File names and texts of a package's declarations.
pub(crate) fn declarations(package: &Package) -> Vec<(String, String)> {
    package
        .files
        .iter()
        .map(|(name, text)| (name.replace(".ts", ".d.ts"), declaration(text)))
        .collect()
}

fn declaration(text: &str) -> String {
    let allocator = Allocator::default();
    let parsed = Parser::new(&allocator, text, SourceType::ts()).parse();
    let made = IsolatedDeclarations::new(&allocator, IsolatedDeclarationsOptions::default())
        .build(&parsed.program);
    Codegen::new()
        .with_options(CodegenOptions::default())
        .build(&made.program)
        .code
}

pub(crate) fn write(file: &Path, text: &str) -> Result<(), Vec<Problem>> {
    let folder = file.parent().unwrap_or(file);
    fs::create_dir_all(folder)
        .and_then(|()| fs::write(file, text))
        .map_err(|error| vec![cannot_write(file, &error)])
}

fn cannot_write(file: &Path, error: &io::Error) -> Problem {
    Problem::new(
        codes::CANNOT_WRITE,
        format!("{} cannot be written: {error}", file.display()),
    )
    .help("check who owns the folder, and that the disk has room")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_declaration_can_be_made_from_its_file_alone() {
        for package in PACKAGES {
            for (name, text) in package.files {
                let allocator = Allocator::default();
                let parsed = Parser::new(&allocator, text, SourceType::ts()).parse();
                let made =
                    IsolatedDeclarations::new(&allocator, IsolatedDeclarationsOptions::default())
                        .build(&parsed.program);
                assert!(
                    made.diagnostics.is_empty(),
                    "{name}: {:?}",
                    made.diagnostics
                );
            }
        }
    }

    #[test]
    fn declarations_keep_what_people_read_in_the_editor() {
        let edge = &PACKAGES[1];
        let all: String = declarations(edge)
            .into_iter()
            .map(|(_, text)| text)
            .collect();
        assert!(all.contains("readonly ScriptName: Ref<string>"), "{all}");
        assert!(all.contains("Both may bind each other"), "{all}");
    }
}
