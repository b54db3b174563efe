//! The user's own folders: where the key of the state is, and what was downloaded.

use std::{env, path::PathBuf};

use directories::ProjectDirs;

use crate::{exit::Exit, failure::Failure};

fn folders() -> Result<ProjectDirs, Failure> {
    ProjectDirs::from("", "", "notation").ok_or_else(|| {
        Failure::new(
            Exit::Fixable,
            "system::no_home",
            "this user has no home folder",
        )
        .help("set HOME, or NOTATION_KEY_FILE and NOTATION_CACHE_DIR")
    })
}

/// The file with the user's own key. Errors: `system::no_home`.
pub fn key_file() -> Result<PathBuf, Failure> {
    Ok(folders()?.config_dir().join("key"))
}

/// Where downloads are kept: `NOTATION_CACHE_DIR`, else the user's cache folder.
pub fn cache() -> Result<PathBuf, Failure> {
    match env::var_os("NOTATION_CACHE_DIR").filter(|dir| !dir.is_empty()) {
        Some(dir) => Ok(dir.into()),
        None => Ok(folders()?.cache_dir().to_owned()),
    }
}
