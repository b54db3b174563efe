//! What a host has stored, row by row: the sharpest way to say that nothing changed.

use super::Bench;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags};
use std::collections::{BTreeMap, BTreeSet};

/// Every row of every table.
#[derive(Debug, Clone, PartialEq)]
pub struct Rows(BTreeMap<String, BTreeSet<String>>);

impl Bench {
    /// Reads the database beside the running host.
    pub fn rows(&self) -> Rows {
        let path = self.dir.join("host.sqlite");
        let store = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap();
        let names: Vec<String> = store
            .prepare("SELECT name FROM sqlite_schema WHERE type = 'table'")
            .unwrap()
            .query_map([], |row| row.get(0))
            .unwrap()
            .collect::<Result<_, _>>()
            .unwrap();
        let tables = names.into_iter().map(|name| {
            let mut statement = store.prepare(&format!("SELECT * FROM {name}")).unwrap();
            let columns = statement.column_count();
            let rows = statement
                .query_map([], |row| {
                    (0..columns)
                        .map(|at| row.get_ref(at).map(text))
                        .collect::<Result<Vec<_>, _>>()
                })
                .unwrap()
                .map(|row| row.unwrap().join(" | "))
                .collect();
            (name, rows)
        });
        Rows(tables.collect())
    }
}

fn text(value: ValueRef<'_>) -> String {
    match value {
        ValueRef::Text(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        other => format!("{other:?}"),
    }
}

impl Rows {
    /// How many rows of each table are new or different in `after`; tables without any are left
    /// out.
    pub fn written(&self, after: &Rows) -> BTreeMap<String, usize> {
        let count = |(name, rows): (&String, &BTreeSet<String>)| {
            let before = self.0.get(name);
            let new = rows
                .iter()
                .filter(|row| before.is_none_or(|before| !before.contains(*row)))
                .count();
            (new > 0).then(|| (name.clone(), new))
        };
        after.0.iter().filter_map(count).collect()
    }

    /// The same without some tables.
    pub fn without(mut self, tables: &[&str]) -> Rows {
        self.0.retain(|name, _| !tables.contains(&name.as_str()));
        self
    }
}
