//! The reference, `docs/reference/`, made from what the binary itself goes by, so that it cannot
//! say anything else.

mod commands;
mod config;
mod events;
mod resources;

#[test]
fn the_reference_is_current() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference");
    for (name, made) in [
        ("commands.md", commands::document()),
        ("config.md", config::document()),
        ("events.md", events::document()),
        ("resources.md", resources::document()),
    ] {
        let path = folder.join(name);
        if std::env::var_os("NOTATION_WRITE_REFERENCE").is_some() {
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(&path, &made).unwrap();
        }
        let kept = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            kept == made,
            "{name}: run this test with NOTATION_WRITE_REFERENCE=1 and commit the file"
        );
    }
}
