//! Rows by name with their text beside them, so that a change costs one serialisation.

use std::collections::BTreeMap;

use serde::{Serialize, de::DeserializeOwned};

/// An ordered map that knows the JSON text of each row.
#[derive(Debug, Clone)]
pub(crate) struct Table<T>(BTreeMap<String, Row<T>>);

#[derive(Debug, Clone)]
struct Row<T> {
    value: T,
    /// `"name": {...}` without line end.
    text: String,
}

impl<T> Default for Table<T> {
    fn default() -> Table<T> {
        Table(BTreeMap::new())
    }
}

impl<T: Serialize + DeserializeOwned> Table<T> {
    /// Rows read from a file.
    pub fn new(rows: BTreeMap<String, T>) -> Table<T> {
        let mut table = Table::default();
        for (name, value) in rows {
            table.set(&name, value);
        }
        table
    }

    pub fn get(&self, name: &str) -> Option<&T> {
        self.0.get(name).map(|row| &row.value)
    }

    pub fn set(&mut self, name: &str, value: T) {
        let key = serde_json::to_string(name).expect("a text is JSON");
        let json = serde_json::to_string(&value).expect("rows have text keys only");
        let row = Row {
            value,
            text: format!("{key}: {json}"),
        };
        self.0.insert(name.to_owned(), row);
    }

    /// Puts a row back as it was, or takes it away.
    pub fn restore(&mut self, name: &str, before: Option<T>) {
        match before {
            Some(value) => self.set(name, value),
            None => {
                self.0.remove(name);
            }
        }
    }

    pub fn remove(&mut self, name: &str) {
        self.0.remove(name);
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &T)> {
        self.0.iter().map(|(name, row)| (name.as_str(), &row.value))
    }

    /// A JSON object, one row a line.
    pub fn text(&self) -> String {
        let rows: usize = self.0.values().map(|row| row.text.len() + 4).sum();
        let mut text = String::with_capacity(rows + 4);
        text.push('{');
        for (at, row) in self.0.values().enumerate() {
            text.push_str(if at == 0 { "\n  " } else { ",\n  " });
            text.push_str(&row.text);
        }
        text.push_str(if self.0.is_empty() { "}" } else { "\n}" });
        text
    }
}
