//! Reading what is known of deployments.

use std::path::Path;

use notation_model::DeploymentId;
use rusqlite::OptionalExtension as _;

use super::{
    failure::{cannot_read, damaged},
    file::File,
    rows::Rows,
};
use crate::{
    DeploymentState, StoreError, Summary,
    format::{ReadError, hold_back},
    open_intents,
    store::illegal,
};

/// Why a record could not be read.
enum LoadError {
    Row(rusqlite::Error),
    Text(ReadError),
}

impl From<rusqlite::Error> for LoadError {
    fn from(error: rusqlite::Error) -> LoadError {
        LoadError::Row(error)
    }
}

impl From<ReadError> for LoadError {
    fn from(error: ReadError) -> LoadError {
        LoadError::Text(error)
    }
}

impl LoadError {
    fn at(self, path: &Path) -> StoreError {
        match self {
            LoadError::Row(error) => cannot_read(path, &error),
            LoadError::Text(error) => damaged(path, error),
        }
    }
}

impl File {
    pub(super) fn load(
        &mut self,
        deployment: &DeploymentId,
    ) -> Result<DeploymentState, StoreError> {
        let bound_to = deployment.to_string();
        let Some((connection, format, path)) = self.reading(&bound_to)? else {
            return Ok(DeploymentState::default());
        };
        let read = |error: rusqlite::Error| cannot_read(path, &error);
        // One transaction, so that records and journal are of one moment.
        let moment = connection.unchecked_transaction().map_err(read)?;
        let found = moment
            .query_row(
                "SELECT id, open_from, last_run_ms, exports FROM deployment WHERE name = ?1",
                [&bound_to],
                |row| {
                    Ok((
                        Rows(row.get(0)?),
                        row.get::<_, i64>(1)?,
                        row.get::<_, Option<u64>>(2)?,
                        row.get::<_, Option<String>>(3)?,
                    ))
                },
            )
            .optional()
            .map_err(read)?;
        let Some((rows, open_from, last_run_ms, exports)) = found else {
            return Ok(DeploymentState::default());
        };
        let mut state = DeploymentState {
            last_run_ms,
            ..DeploymentState::default()
        };
        let back = |error| damaged(path, error);
        if let Some(exports) = exports {
            state.exports = format.read_values(&exports).map_err(back)?;
        }
        let mut records = Vec::new();
        rows.each_record(&moment, |body| {
            records.push(format.read_record(body)?);
            Ok(())
        })
        .map_err(|error: LoadError| error.at(path))?;
        // Each record is moved once. All at once, since a map that is filled so has no empty places.
        records.sort_by_cached_key(|record| record.incarnation.clone());
        let records = records.into_iter();
        state.records = records
            .map(|record| (record.incarnation.clone(), record))
            .collect();
        let journal = rows.lines(&moment, open_from).map_err(read)?;
        let mut entries = Vec::new();
        for (_, body) in &journal {
            entries.push(format.read_entry(body).map_err(back)?);
        }
        state.open = open_intents(&entries).map_err(illegal)?;
        Ok(state)
    }

    pub(super) fn deployments(&mut self) -> Result<Vec<Summary>, StoreError> {
        let Some((connection, _, path)) = self.reading("")? else {
            return Ok(Vec::new());
        };
        let read = |error: rusqlite::Error| cannot_read(path, &error);
        let mut statement = connection
            .prepare(
                "SELECT name, last_run_ms, hold, expires_ms, id,
                    (SELECT count(*) FROM secret WHERE deployment = d.id),
                    exports IS NOT NULL AND exports <> '{}'
                 FROM deployment d ORDER BY name",
            )
            .map_err(read)?;
        let mut rows = statement.query([]).map_err(read)?;
        let mut found = Vec::new();
        while let Some(row) = rows.next().map_err(read)? {
            let one = || -> rusqlite::Result<_> {
                let hold: Option<String> = row.get(2)?;
                Ok((
                    row.get::<_, String>(0)?,
                    row.get::<_, Option<u64>>(1)?,
                    hold,
                    row.get::<_, u64>(3)?,
                    Rows(row.get(4)?).count_records(connection)?,
                    row.get::<_, u64>(5)?,
                    row.get::<_, bool>(6)?,
                ))
            };
            let (name, last_run_ms, hold, expires_ms, records, secrets, exports) =
                one().map_err(read)?;
            if records == 0 && secrets == 0 && !exports {
                continue;
            }
            let deployment = name.parse();
            found.push(Summary {
                deployment: deployment.map_err(|error| damaged(path, ReadError::from(error)))?,
                records,
                secrets,
                last_run_ms,
                hold: hold
                    .map(|text| hold_back(&text, expires_ms))
                    .transpose()
                    .map_err(|error| damaged(path, error.into()))?,
            });
        }
        Ok(found)
    }
}
