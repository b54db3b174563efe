//! Artifact manifests and their rules (host API §21.6).

use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// Ceiling of the sum of entry sizes, in bytes; published as `maximumBundleBytes`.
pub const MAX_BUNDLE_BYTES: u64 = 10_485_760;
/// Ceiling of one entry, in bytes.
pub const MAX_ENTRY_BYTES: u64 = 268_435_456;
/// Most modules of a worker bundle.
pub const MAX_MODULES: usize = 4096;
/// Most files of another bundle.
pub const MAX_FILES: usize = 16_384;

/// What a manifest describes; also the kind's name on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ManifestKind {
    /// Modules of one worker build.
    WorkerBundle,
    /// Files served as they are.
    StaticAssetBundle,
    /// SQL files in migration order.
    MigrationBundle,
}

impl ManifestKind {
    /// The kind as written.
    pub fn as_str(self) -> &'static str {
        match self {
            ManifestKind::WorkerBundle => "WorkerBundle",
            ManifestKind::StaticAssetBundle => "StaticAssetBundle",
            ManifestKind::MigrationBundle => "MigrationBundle",
        }
    }
}

/// A manifest that keeps every rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    /// What it describes.
    pub kind: ManifestKind,
    /// Entry module of a worker bundle.
    pub main_module: Option<String>,
    /// Modules or files, in the written order.
    pub entries: Vec<Entry>,
}

/// One module or file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Module name or file path.
    pub path: String,
    /// Media type.
    pub media_type: String,
    /// Bytes.
    pub size: u64,
    /// Blob digest.
    pub digest: String,
}

/// Which rule a manifest breaks.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ManifestError(String);

const API_VERSION: &str = "artifacts.takoform.com/v1alpha1";
const SOURCE_MAP: &str = "application/source-map+json";
const LOADABLE: [&str; 4] = [
    "application/javascript+module",
    "application/octet-stream",
    "application/wasm",
    "text/plain",
];

impl Manifest {
    /// Reads a manifest document and holds it to every rule.
    pub fn read(document: &Value) -> Result<Manifest, ManifestError> {
        let object = document
            .as_object()
            .ok_or_else(|| broken("the manifest is no object"))?;
        known(
            object,
            &["apiVersion", "kind", "mainModule", "modules", "files"],
            "the manifest",
        )?;
        if string(object, "apiVersion")? != API_VERSION {
            return Err(broken(format!("apiVersion is not {API_VERSION}")));
        }
        let kind = match string(object, "kind")? {
            "WorkerBundle" => ManifestKind::WorkerBundle,
            "StaticAssetBundle" => ManifestKind::StaticAssetBundle,
            "MigrationBundle" => ManifestKind::MigrationBundle,
            other => return Err(broken(format!("kind {other:?} is none of the three"))),
        };
        let (list, name, most, foreign): (_, _, _, &[&str]) = match kind {
            ManifestKind::WorkerBundle => ("modules", "name", MAX_MODULES, &["files"]),
            ManifestKind::StaticAssetBundle | ManifestKind::MigrationBundle => {
                ("files", "path", MAX_FILES, &["mainModule", "modules"])
            }
        };
        for member in foreign {
            if object.contains_key(*member) {
                return Err(broken(format!("a {} has no {member}", kind.as_str())));
            }
        }
        let items = object
            .get(list)
            .and_then(Value::as_array)
            .filter(|items| !items.is_empty())
            .ok_or_else(|| broken(format!("{list} must be a non-empty list")))?;
        if items.len() > most {
            return Err(broken(format!("more than {most} {list}")));
        }
        let entries: Vec<Entry> = items
            .iter()
            .map(|item| entry(item, name))
            .collect::<Result<_, _>>()?;
        let main_module = match kind {
            ManifestKind::WorkerBundle => Some(string(object, "mainModule")?.to_owned()),
            ManifestKind::StaticAssetBundle | ManifestKind::MigrationBundle => None,
        };
        let manifest = Manifest {
            kind,
            main_module,
            entries,
        };
        manifest.check()?;
        Ok(manifest)
    }

    fn check(&self) -> Result<(), ManifestError> {
        let mut paths = BTreeSet::new();
        let mut total = 0u64;
        for entry in &self.entries {
            if !paths.insert(entry.path.as_str()) {
                return Err(broken(format!("{} is listed twice", entry.path)));
            }
            total = total.saturating_add(entry.size);
        }
        if total > MAX_BUNDLE_BYTES {
            return Err(broken(format!(
                "{total} bytes in all, more than {MAX_BUNDLE_BYTES}"
            )));
        }
        match self.kind {
            ManifestKind::WorkerBundle => self.check_modules(&paths),
            ManifestKind::StaticAssetBundle => {
                self.check_media(is_media_type, "a plain lower-case media type")
            }
            ManifestKind::MigrationBundle => {
                self.check_media(|text| text == "application/sql", "application/sql")
            }
        }
    }

    fn check_modules(&self, paths: &BTreeSet<&str>) -> Result<(), ManifestError> {
        for entry in &self.entries {
            let media_type = entry.media_type.as_str();
            if media_type == SOURCE_MAP {
                let of = entry.path.strip_suffix(".map");
                if !of.is_some_and(|of| paths.contains(of)) {
                    return Err(broken(format!(
                        "source map {} belongs to no module",
                        entry.path
                    )));
                }
            } else if !LOADABLE.contains(&media_type) {
                return Err(broken(format!(
                    "media type {media_type:?} of {} cannot be loaded",
                    entry.path
                )));
            }
        }
        let main = self.main_module.as_deref().unwrap_or_default();
        match self.entry(main) {
            None => Err(broken(format!("main module {main:?} is not listed"))),
            Some(entry) if entry.media_type == SOURCE_MAP => {
                Err(broken(format!("main module {main:?} is a source map")))
            }
            Some(_) => Ok(()),
        }
    }

    fn check_media(&self, fits: fn(&str) -> bool, wanted: &str) -> Result<(), ManifestError> {
        match self.entries.iter().find(|entry| !fits(&entry.media_type)) {
            Some(entry) => Err(broken(format!(
                "media type {:?} of {} is not {wanted}",
                entry.media_type, entry.path
            ))),
            None => Ok(()),
        }
    }

    /// The entry at a name or path.
    pub fn entry(&self, path: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.path == path)
    }

    /// Digests of all blobs, ascending, each once.
    pub fn blobs(&self) -> BTreeSet<&str> {
        self.entries
            .iter()
            .map(|entry| entry.digest.as_str())
            .collect()
    }
}

fn entry(item: &Value, name: &str) -> Result<Entry, ManifestError> {
    let object = item
        .as_object()
        .ok_or_else(|| broken("an entry is no object"))?;
    known(object, &[name, "mediaType", "size", "digest"], "an entry")?;
    let path = string(object, name)?;
    if !is_path(path) {
        return Err(broken(format!(
            "{name} {path:?} is outside the path grammar"
        )));
    }
    let size = object
        .get("size")
        .and_then(Value::as_u64)
        .filter(|size| *size <= MAX_ENTRY_BYTES)
        .ok_or_else(|| {
            broken(format!(
                "size of {path} is no integer from 0 to {MAX_ENTRY_BYTES}"
            ))
        })?;
    let digest = string(object, "digest")?;
    if !crate::is_digest(digest) {
        return Err(broken(format!("digest of {path} is malformed")));
    }
    Ok(Entry {
        path: path.to_owned(),
        media_type: string(object, "mediaType")?.to_owned(),
        size,
        digest: digest.to_owned(),
    })
}

fn known(object: &Map<String, Value>, names: &[&str], place: &str) -> Result<(), ManifestError> {
    match object.keys().find(|name| !names.contains(&name.as_str())) {
        Some(name) => Err(broken(format!("{place} has an unknown member {name:?}"))),
        None => Ok(()),
    }
}

fn string<'a>(object: &'a Map<String, Value>, member: &str) -> Result<&'a str, ManifestError> {
    object
        .get(member)
        .and_then(Value::as_str)
        .ok_or_else(|| broken(format!("{member} is missing or no string")))
}

fn broken(text: impl Into<String>) -> ManifestError {
    ManifestError(text.into())
}

/// The artifact path grammar (host API §3.3).
pub(crate) fn is_path(text: &str) -> bool {
    let word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    text.len() <= 240
        && text.split('/').all(|segment| {
            segment.bytes().next().is_some_and(word)
                && segment
                    .bytes()
                    .all(|byte| word(byte) || byte == b'.' || byte == b'-')
        })
}

fn is_media_type(text: &str) -> bool {
    let part = |text: &str| {
        let first = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        text.bytes().next().is_some_and(first)
            && text
                .bytes()
                .all(|byte| first(byte) || b"!#$&^_.+-".contains(&byte))
    };
    text.len() <= 255
        && text
            .split_once('/')
            .is_some_and(|(kind, sub)| part(kind) && part(sub))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const DIGEST: &str = "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a";

    fn module(name: &str, media_type: &str, size: u64) -> Value {
        json!({"name": name, "mediaType": media_type, "size": size, "digest": DIGEST})
    }

    fn bundle(main: &str, modules: Vec<Value>) -> Value {
        json!({"apiVersion": API_VERSION, "kind": "WorkerBundle", "mainModule": main, "modules": modules})
    }

    const JS: &str = "application/javascript+module";

    #[test]
    fn a_bundle_may_carry_a_source_map_but_not_be_led_by_one() {
        let map = || {
            vec![
                module("index.js", JS, 1),
                module("index.js.map", SOURCE_MAP, 1),
            ]
        };
        assert!(Manifest::read(&bundle("index.js", map())).is_ok());
        assert!(Manifest::read(&bundle("index.js.map", map())).is_err());
        assert!(
            Manifest::read(&bundle(
                "index.js",
                vec![
                    module("index.js", JS, 1),
                    module("other.map", SOURCE_MAP, 1)
                ]
            ))
            .is_err()
        );
    }

    #[test]
    fn bundles_that_break_a_rule_are_refused() {
        let file = |path: &str, media: &str| json!({"path": path, "mediaType": media, "size": 1, "digest": DIGEST});
        let files = |kind: &str, files: Value| json!({"apiVersion": API_VERSION, "kind": kind, "files": files});
        for bad in [
            json!(null),
            bundle("index.js", vec![]),
            bundle("missing.js", vec![module("index.js", JS, 1)]),
            bundle(
                "index.js",
                vec![module("index.js", JS, MAX_BUNDLE_BYTES + 1)],
            ),
            bundle(
                "index.js",
                vec![module("index.js", JS, 1), module("index.js", JS, 1)],
            ),
            bundle(
                "index.js",
                vec![
                    module("index.js", JS, 1),
                    module("d.json", "application/json", 1),
                ],
            ),
            bundle("../x.js", vec![module("../x.js", JS, 1)]),
            json!({"apiVersion": API_VERSION, "kind": "WorkerBundle", "mainModule": "a.js", "modules": [module("a.js", JS, 1)], "files": []}),
            json!({"apiVersion": API_VERSION, "kind": "WorkerBundle", "mainModule": "a.js", "modules": [module("a.js", JS, 1)], "extra": 1}),
            json!({"apiVersion": API_VERSION, "kind": "WorkerBundle", "mainModule": "a.js", "modules": [{"name": "a.js", "mediaType": JS, "size": 1.5, "digest": DIGEST}]}),
            json!({"apiVersion": API_VERSION, "kind": "StaticAssetBundle", "modules": []}),
            files("StaticAssetBundle", json!([file("a.html", "Text/HTML")])),
            files(
                "StaticAssetBundle",
                json!([file("a.html", "text/html; charset=utf-8")]),
            ),
            files("MigrationBundle", json!([file("1.sql", "text/plain")])),
            files("Other", json!([file("1.sql", "text/plain")])),
        ] {
            assert!(Manifest::read(&bad).is_err(), "{bad}");
        }
        assert!(
            Manifest::read(&files(
                "StaticAssetBundle",
                json!([file("a/b.html", "text/html")])
            ))
            .is_ok()
        );
        assert!(
            Manifest::read(&files(
                "MigrationBundle",
                json!([file("1.sql", "application/sql")])
            ))
            .is_ok()
        );
    }
}
