//! `notation init [DIR]`: a project that deploys as it is.

use std::path::Path;

use notation_model::AppName;
use serde_json::json;

use crate::{
    args::Init,
    exit::Exit,
    failure::{Failure, Outcome},
    printer::Printer,
};

/// Makes the project and says what to type next.
pub fn run(args: &Init, printer: &Printer) -> Outcome {
    let dir = std::path::absolute(&args.dir).unwrap_or_else(|_| args.dir.clone());
    let app = match &args.app {
        Some(name) => name
            .parse::<AppName>()
            .map_err(|error| Failure::usage(error.to_string()))?,
        None => app_of(&dir),
    };
    let made = notation_program::init_project(&dir, &app)?;
    let files: Vec<_> = made.iter().map(|path| path.display().to_string()).collect();
    printer.event(
        "init",
        json!({ "app": app.as_str(), "dir": dir.display().to_string(), "files": files }),
    );
    let hidden = |file: &&std::path::PathBuf| {
        !file
            .strip_prefix(&dir)
            .is_ok_and(|inside| inside.starts_with(".notation"))
    };
    printer.say(format!("The app {app}, in {}:", dir.display()));
    for file in made.iter().filter(hidden) {
        let inside = file.strip_prefix(&dir).unwrap_or(file);
        printer.out(format!("  {}", inside.display()));
    }
    printer.say("and the types for the editor, in .notation/types");
    let here = std::env::current_dir().is_ok_and(|current| current == dir);
    let enter = if here {
        String::new()
    } else {
        let folder = args.dir.to_string_lossy();
        // What no shell can be told is shown as it is.
        let typed = shlex::try_quote(&folder).unwrap_or_else(|_| folder.clone());
        format!("  cd {typed}\n")
    };
    printer.say(format!("\nNow type:\n\n{enter}  notation deploy app\n"));
    Ok(Exit::Done)
}

/// A name-safe name made of the folder's; `app` when nothing of it is left.
fn app_of(dir: &Path) -> AppName {
    let folder = dir
        .file_name()
        .map(|name| name.to_string_lossy().to_lowercase())
        .unwrap_or_default();
    let safe: String = folder
        .chars()
        .map(|c| {
            if c.is_ascii_lowercase() || c.is_ascii_digit() {
                c
            } else {
                '-'
            }
        })
        .take(63)
        .collect();
    safe.trim_matches('-')
        .parse()
        .unwrap_or_else(|_| "app".parse().expect("it is name-safe"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_gives_a_name_safe_app() {
        assert_eq!(app_of(Path::new("/x/Orders_App ")).as_str(), "orders-app");
        assert_eq!(app_of(Path::new("/")).as_str(), "app");
    }
}
