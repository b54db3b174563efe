//! The rows of one deployment: records and journal lines, each in a table of its own, so that
//! reading one deployment reads nothing of the others and new rows of any append.

use notation_model::{Incarnation, NameError};
use rusqlite::{Connection, params};

/// The two tables of a deployment, by the number of its row in `deployment`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rows(pub(super) i64);

impl Rows {
    /// Makes the tables of a new deployment.
    pub(super) fn make(self, connection: &Connection) -> rusqlite::Result<()> {
        let Rows(row) = self;
        connection.execute_batch(&format!(
            "CREATE TABLE record_{row} (
                 id INTEGER PRIMARY KEY,
                 resource TEXT NOT NULL,
                 generation INTEGER NOT NULL,
                 body TEXT NOT NULL
             );
             CREATE TABLE journal_{row} (seq INTEGER PRIMARY KEY, body TEXT NOT NULL);"
        ))
    }

    /// Gives every record's text to `each`, oldest row first.
    pub(super) fn each_record<E: From<rusqlite::Error>>(
        self,
        connection: &Connection,
        mut each: impl FnMut(&str) -> Result<(), E>,
    ) -> Result<(), E> {
        let sql = format!("SELECT body FROM record_{} ORDER BY id", self.0);
        let mut statement = connection.prepare(&sql)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let body = row.get_ref(0)?;
            each(body.as_str().map_err(rusqlite::Error::from)?)?;
        }
        Ok(())
    }

    /// Where every record is. The inner error: a name that is none.
    pub(super) fn places(
        self,
        connection: &Connection,
    ) -> rusqlite::Result<Vec<Result<(Incarnation, i64), NameError>>> {
        let sql = format!("SELECT id, resource, generation FROM record_{}", self.0);
        connection
            .prepare(&sql)?
            .query_map([], |row| {
                let (id, resource): (i64, String) = (row.get(0)?, row.get(1)?);
                let generation = row.get(2)?;
                let incarnation = resource.parse().map(|resource| Incarnation {
                    resource,
                    generation,
                });
                Ok(incarnation.map(|incarnation| (incarnation, id)))
            })?
            .collect()
    }

    pub(super) fn count_records(self, connection: &Connection) -> rusqlite::Result<u64> {
        let sql = format!("SELECT count(*) FROM record_{}", self.0);
        connection.query_row(&sql, [], |row| row.get(0))
    }

    /// Appends a record; returns where it is.
    pub(super) fn add_record(
        self,
        connection: &Connection,
        incarnation: &Incarnation,
        body: Option<&str>,
    ) -> rusqlite::Result<i64> {
        let sql = format!(
            "INSERT INTO record_{} (resource, generation, body) VALUES (?1, ?2, ?3)",
            self.0
        );
        connection.prepare_cached(&sql)?.insert(params![
            incarnation.resource.as_str(),
            incarnation.generation,
            body
        ])
    }

    pub(super) fn rewrite_record(
        self,
        connection: &Connection,
        id: i64,
        body: Option<&str>,
    ) -> rusqlite::Result<()> {
        let sql = format!("UPDATE record_{} SET body = ?2 WHERE id = ?1", self.0);
        connection
            .prepare_cached(&sql)?
            .execute(params![id, body])?;
        Ok(())
    }

    pub(super) fn remove_record(self, connection: &Connection, id: i64) -> rusqlite::Result<()> {
        let sql = format!("DELETE FROM record_{} WHERE id = ?1", self.0);
        connection.prepare_cached(&sql)?.execute([id])?;
        Ok(())
    }

    /// Journal lines from a number on.
    pub(super) fn lines(
        self,
        connection: &Connection,
        from: i64,
    ) -> rusqlite::Result<Vec<(i64, String)>> {
        let sql = format!(
            "SELECT seq, body FROM journal_{} WHERE seq >= ?1 ORDER BY seq",
            self.0
        );
        connection
            .prepare(&sql)?
            .query_map([from], |row| Ok((row.get(0)?, row.get(1)?)))?
            .collect()
    }

    /// Appends a journal line; returns its number.
    pub(super) fn add_line(self, connection: &Connection, body: &str) -> rusqlite::Result<i64> {
        let sql = format!("INSERT INTO journal_{} (body) VALUES (?1)", self.0);
        connection.prepare_cached(&sql)?.insert([body])
    }

    /// The number of the next journal line.
    pub(super) fn next_line(self, connection: &Connection) -> rusqlite::Result<i64> {
        let sql = format!("SELECT coalesce(max(seq), 0) + 1 FROM journal_{}", self.0);
        connection.query_row(&sql, [], |row| row.get(0))
    }

    /// Forgets the journal before a line.
    pub(super) fn forget_lines_before(
        self,
        connection: &Connection,
        from: i64,
    ) -> rusqlite::Result<()> {
        let sql = format!("DELETE FROM journal_{} WHERE seq < ?1", self.0);
        connection.execute(&sql, [from])?;
        Ok(())
    }
}
