//! Programs from the Python package index that some checks meet: each in a virtual environment of
//! its own beside the build.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// What happens where a package cannot be installed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Absent {
    /// The run says so and passes.
    Skips,
    /// The run fails.
    Fails,
}

/// Installs a package, pinned like `name==1.2`, into a folder; the path of its program there.
/// Errors: why not, as the last line of what was said.
pub fn install(dir: &Path, package: &str, program: &str) -> Result<PathBuf, String> {
    let program = dir.join("bin").join(program);
    let marker = dir.join("installed");
    if fs::read_to_string(&marker).is_ok_and(|text| text == package) {
        return Ok(program);
    }
    quietly(Command::new("python3").args(["-m", "venv"]).arg(dir))?;
    let pip = [
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        package,
    ];
    quietly(Command::new(dir.join("bin/python")).args(pip))?;
    fs::write(marker, package).map_err(|error| error.to_string())?;
    Ok(program)
}

fn quietly(command: &mut Command) -> Result<(), String> {
    let output = command.output().map_err(|error| error.to_string())?;
    if output.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&output.stderr);
    let last = text.lines().rfind(|line| !line.trim().is_empty());
    Err(last.unwrap_or("no reason was given").to_owned())
}
