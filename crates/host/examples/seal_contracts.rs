//! Recomputes every digest of the contract set in `contracts/` after an edit, in the order in
//! which the documents name each other: Interfaces, Bindings, Forms, packages, indices.
//!
//! `cargo run -p notation-host --example seal_contracts`

use notation_edge_api::{blob_digest, digest, parse};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

type Failure = Box<dyn std::error::Error>;

struct Set {
    root: PathBuf,
    /// Digest of a document before and after.
    moved: BTreeMap<String, String>,
}

impl Set {
    fn read(&self, path: &str) -> Result<Value, Failure> {
        Ok(parse(&std::fs::read(self.root.join(path))?)?)
    }

    /// Writes a document with all known new digests in place; its own new digest.
    fn write(&self, path: &str, mut document: Value) -> Result<String, Failure> {
        self.rename(&mut document);
        std::fs::write(
            self.root.join(path),
            serde_json::to_string_pretty(&document)? + "\n",
        )?;
        Ok(digest(&document))
    }

    fn rename(&self, value: &mut Value) {
        match value {
            Value::String(text) => {
                if let Some(now) = self.moved.get(text.as_str()) {
                    *text = now.clone();
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.rename(item)),
            Value::Object(members) => members.values_mut().for_each(|member| self.rename(member)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn seal(&mut self, path: &str, stated: &str) -> Result<(), Failure> {
        let sealed = self.write(path, self.read(path)?)?;
        self.moved.insert(stated.to_owned(), sealed);
        Ok(())
    }
}

fn text<'a>(value: &'a Value, pointer: &str) -> Result<&'a str, Failure> {
    value
        .pointer(pointer)
        .and_then(Value::as_str)
        .ok_or_else(|| format!("no {pointer}").into())
}

fn items<'a>(index: &'a Value, list: &str) -> Result<&'a Vec<Value>, Failure> {
    index
        .get(list)
        .and_then(Value::as_array)
        .ok_or_else(|| format!("no list {list}").into())
}

fn main() -> Result<(), Failure> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("contracts");
    let mut set = Set {
        root,
        moved: BTreeMap::new(),
    };
    for (folder, list) in [
        ("interfaces/candidates/v1alpha1", "interfaces"),
        ("bindings/candidates/v1alpha1", "bindings"),
    ] {
        let path = format!("{folder}/candidate-set.json");
        let index = set.read(&path)?;
        for entry in items(&index, list)? {
            let document = format!("{folder}/{}/definition.json", text(entry, "/name")?);
            set.seal(&document, text(entry, "/schemaDigest")?)?;
        }
        set.write(&path, index)?;
    }
    let path = "forms/candidates/edge/v1beta1/candidate-set.json";
    let index = set.read(path)?;
    // The index lists a Form after the Forms it names.
    for entry in items(&index, "forms")? {
        let folder = text(entry, "/path")?;
        set.seal(
            &format!("{folder}/definition.json"),
            text(entry, "/formRef/schemaDigest")?,
        )?;
        let package = format!("{folder}/package-index.json");
        let mut document = set.read(&package)?;
        for file in document
            .get_mut("files")
            .and_then(Value::as_array_mut)
            .into_iter()
            .flatten()
        {
            let bytes = std::fs::read(set.root.join(format!("{folder}/{}", text(file, "/path")?)))?;
            file["size"] = bytes.len().into();
            file["digest"] = blob_digest(&bytes).into();
        }
        let sealed = set.write(&package, document)?;
        set.moved
            .insert(text(entry, "/packageDigest")?.to_owned(), sealed);
    }
    set.write(path, index)?;
    Ok(())
}
