//! Makes a new project in a folder, as `notation init` does; the checks of the editor types use it:
//! `cargo run -p notation-program --example new_project -- DIR`.

use std::{path::Path, process::ExitCode};

#[expect(clippy::print_stderr, reason = "a program for tests")]
fn main() -> ExitCode {
    let dir = std::env::args().nth(1).unwrap_or_else(|| ".".into());
    let app = "my-app".parse().expect("it is name-safe");
    match notation_program::init_project(Path::new(&dir), &app) {
        Ok(_) => ExitCode::SUCCESS,
        Err(problems) => {
            for problem in problems {
                eprintln!("{problem}");
            }
            ExitCode::FAILURE
        }
    }
}
