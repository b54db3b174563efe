//! Lays every page of `docs/errors/` into the binary, for `notation help CODE`.

use std::{env, fmt::Write as _, fs, path::Path};

fn main() {
    let pages = Path::new(&env::var("CARGO_MANIFEST_DIR").expect("cargo sets it"))
        .join("../../docs/errors");
    println!("cargo:rerun-if-changed={}", pages.display());
    let mut found: Vec<_> = fs::read_dir(&pages)
        .map(|entries| entries.flatten().map(|entry| entry.path()).collect())
        .unwrap_or_default();
    found.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
    found.sort();
    let mut table = String::from("&[\n");
    for path in found {
        let path = path.canonicalize().expect("it was just listed");
        println!("cargo:rerun-if-changed={}", path.display());
        let name = path
            .file_stem()
            .expect("it ends with .md")
            .to_string_lossy();
        let code = name.replacen('-', "::", 1);
        writeln!(table, "    ({code:?}, include_str!({path:?})),")
            .expect("a String takes everything");
    }
    table.push(']');
    let out = Path::new(&env::var("OUT_DIR").expect("cargo sets it")).join("error_pages.rs");
    fs::write(out, table).expect("the build folder can be written");
}
