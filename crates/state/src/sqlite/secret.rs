//! Secrets in the file.

use std::collections::BTreeMap;

use notation_model::{DeploymentId, SecretName, SecretValue, Value};
use rusqlite::{Connection, params};

use super::{
    failure::{cannot_read, cannot_write, damaged},
    file::{File, row_of},
};
use crate::{StoreError, format::ReadError};

impl File {
    pub(super) fn secrets(
        &mut self,
        deployment: &DeploymentId,
    ) -> Result<BTreeMap<SecretName, Value>, StoreError> {
        let bound_to = deployment.to_string();
        let Some((connection, format, path)) = self.reading(&bound_to)? else {
            return Ok(BTreeMap::new());
        };
        let rows =
            secret_rows(connection, deployment).map_err(|error| cannot_read(path, &error))?;
        let one = |(name, body): (String, String)| {
            let name: SecretName = name.parse()?;
            Ok((name, format.read_secret(&body)?))
        };
        rows.into_iter()
            .map(|row| one(row).map_err(|error| damaged(path, error)))
            .collect()
    }

    pub(super) fn secret_names(
        &mut self,
        deployment: &DeploymentId,
    ) -> Result<Vec<SecretName>, StoreError> {
        Ok(self.secret_marks(deployment)?.into_keys().collect())
    }

    /// As sealed: every sealing gives another text.
    pub(super) fn secret_marks(
        &mut self,
        deployment: &DeploymentId,
    ) -> Result<BTreeMap<SecretName, String>, StoreError> {
        let Some((connection, _, path)) = self.reading("")? else {
            return Ok(BTreeMap::new());
        };
        let rows =
            secret_rows(connection, deployment).map_err(|error| cannot_read(path, &error))?;
        rows.into_iter()
            .map(|(name, body)| {
                let name = name.parse();
                let name = name.map_err(|error| damaged(path, ReadError::from(error)))?;
                Ok((name, body))
            })
            .collect()
    }

    pub(super) fn set_secret(
        &mut self,
        deployment: &DeploymentId,
        name: &SecretName,
        value: &SecretValue,
    ) -> Result<(), StoreError> {
        self.open_for_writing()?;
        let bound_to = deployment.to_string();
        let sealed = self
            .reading(&bound_to)?
            .expect("opened just now")
            .1
            .secret(value.reveal())?;
        let path = self.path.clone();
        let write = |error: rusqlite::Error| cannot_write(&path, &error);
        let transaction = self.writing()?;
        let rows = row_of(&transaction, deployment).map_err(write)?;
        transaction
            .execute(
                "INSERT INTO secret (deployment, name, body) VALUES (?1, ?2, ?3)
                 ON CONFLICT DO UPDATE SET body = excluded.body",
                params![rows.0, name.as_str(), sealed],
            )
            .map_err(write)?;
        transaction.commit().map_err(write)
    }

    pub(super) fn remove_secret(
        &mut self,
        deployment: &DeploymentId,
        name: &SecretName,
    ) -> Result<bool, StoreError> {
        if !self.secret_names(deployment)?.contains(name) {
            return Ok(false);
        }
        let path = self.path.clone();
        let write = |error: rusqlite::Error| cannot_write(&path, &error);
        let transaction = self.writing()?;
        let rows = row_of(&transaction, deployment).map_err(write)?;
        let removed = transaction
            .execute(
                "DELETE FROM secret WHERE deployment = ?1 AND name = ?2",
                params![rows.0, name.as_str()],
            )
            .map_err(write)?;
        transaction.commit().map_err(write)?;
        Ok(removed > 0)
    }
}

fn secret_rows(
    connection: &Connection,
    deployment: &DeploymentId,
) -> rusqlite::Result<Vec<(String, String)>> {
    connection
        .prepare(
            "SELECT s.name, s.body FROM secret s JOIN deployment d ON d.id = s.deployment
             WHERE d.name = ?1 ORDER BY s.name",
        )?
        .query_map([deployment.to_string()], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })?
        .collect()
}
