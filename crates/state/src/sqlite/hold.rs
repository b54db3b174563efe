//! Holds in the file.

use std::path::Path;

use notation_model::DeploymentId;
use rusqlite::{Connection, OptionalExtension as _, Transaction, params};

use super::{
    append::Held,
    failure::{cannot_read, cannot_write, damaged},
    file::{File, row_of},
    rows::Rows,
};
use crate::{
    Acquired, Claim, Fence, Hold, LEASE_MS, StoreError,
    format::{hold_back, hold_text},
    store::fenced,
};

impl File {
    pub(super) fn acquire(
        &mut self,
        deployment: &DeploymentId,
        claim: &Claim,
    ) -> Result<Acquired, StoreError> {
        self.held.remove(deployment);
        let path = self.path.clone();
        let write = |error: rusqlite::Error| cannot_write(&path, &error);
        let transaction = self.writing()?;
        let rows = row_of(&transaction, deployment).map_err(write)?;
        let (hold, fence) = hold_of(&transaction, rows, &path)?;
        let judged = claim.judge(hold.as_ref(), fence);
        if let Acquired::Free(hold) | Acquired::TakenOver { hold, .. } = &judged {
            transaction
                .execute(
                    "UPDATE deployment SET fence = ?2, hold = ?3, expires_ms = ?4, last_run_ms = ?5 \
                     WHERE id = ?1",
                    params![rows.0, hold.fence.0, hold_text(hold), hold.expires_ms, claim.now_ms],
                )
                .map_err(write)?;
            // The journal of a run that ended is kept until the next one starts. What is left
            // then all matters, whatever row numbers are used again.
            let open_from = transaction
                .query_row(
                    "SELECT open_from FROM deployment WHERE id = ?1",
                    [rows.0],
                    |row| row.get(0),
                )
                .map_err(write)?;
            rows.forget_lines_before(&transaction, open_from)
                .map_err(write)?;
            transaction
                .execute(
                    "UPDATE deployment SET open_from = 0 WHERE id = ?1",
                    [rows.0],
                )
                .map_err(write)?;
            transaction.commit().map_err(write)?;
        }
        Ok(judged)
    }

    pub(super) fn renew(
        &mut self,
        deployment: &DeploymentId,
        hold: &Hold,
        now_ms: u64,
    ) -> Result<(), StoreError> {
        let path = self.path.clone();
        let write = |error: rusqlite::Error| cannot_write(&path, &error);
        let transaction = self.writing()?;
        let rows = row_of(&transaction, deployment).map_err(write)?;
        let (present, fence) = hold_of(&transaction, rows, &path)?;
        fenced(deployment, hold, present.as_ref(), fence)?;
        transaction
            .execute(
                "UPDATE deployment SET expires_ms = ?2 WHERE id = ?1",
                params![rows.0, now_ms + LEASE_MS],
            )
            .map_err(write)?;
        transaction.commit().map_err(write)
    }

    pub(super) fn release(
        &mut self,
        deployment: &DeploymentId,
        hold: &Hold,
    ) -> Result<(), StoreError> {
        let held = self.held.remove(deployment);
        let path = self.path.clone();
        let write = |error: rusqlite::Error| cannot_write(&path, &error);
        let transaction = self.writing()?;
        let rows = row_of(&transaction, deployment).map_err(write)?;
        let (present, fence) = hold_of(&transaction, rows, &path)?;
        if fenced(deployment, hold, present.as_ref(), fence).is_err() {
            return Ok(());
        }
        transaction
            .execute("UPDATE deployment SET hold = NULL WHERE id = ?1", [rows.0])
            .map_err(write)?;
        if let Some(held) = held.filter(|held| held.fence == hold.fence) {
            let next = rows.next_line(&transaction).map_err(write)?;
            carry_over(&transaction, &held).map_err(write)?;
            transaction
                .execute(
                    "UPDATE deployment SET open_from = ?2 WHERE id = ?1",
                    [rows.0, next],
                )
                .map_err(write)?;
        }
        transaction.commit().map_err(write)
    }

    pub(super) fn hold(&mut self, deployment: &DeploymentId) -> Result<Option<Hold>, StoreError> {
        let Some((connection, _, path)) = self.reading("")? else {
            return Ok(None);
        };
        let rows = connection
            .query_row(
                "SELECT id FROM deployment WHERE name = ?1",
                [deployment.to_string()],
                |row| row.get(0).map(Rows),
            )
            .optional()
            .map_err(|error| cannot_read(path, &error))?;
        match rows {
            None => Ok(None),
            Some(rows) => Ok(hold_of(connection, rows, path)?.0),
        }
    }

    pub(super) fn clear_hold(
        &mut self,
        deployment: &DeploymentId,
    ) -> Result<Option<Hold>, StoreError> {
        let Some(hold) = self.hold(deployment)? else {
            return Ok(None);
        };
        self.held.remove(deployment);
        let path = self.path.clone();
        let write = |error: rusqlite::Error| cannot_write(&path, &error);
        let transaction = self.writing()?;
        transaction
            .execute(
                "UPDATE deployment SET hold = NULL WHERE name = ?1",
                [deployment.to_string()],
            )
            .map_err(write)?;
        transaction.commit().map_err(write)?;
        Ok(Some(hold))
    }
}

/// Who holds a deployment, and the last fence given out.
pub(super) fn hold_of(
    connection: &Connection,
    rows: Rows,
    path: &Path,
) -> Result<(Option<Hold>, Fence), StoreError> {
    let (fence, text, expires_ms) = connection
        .prepare_cached("SELECT fence, hold, expires_ms FROM deployment WHERE id = ?1")
        .and_then(|mut statement| {
            statement.query_row([rows.0], |row| {
                Ok((
                    row.get::<_, u64>(0)?,
                    row.get::<_, Option<String>>(1)?,
                    row.get::<_, u64>(2)?,
                ))
            })
        })
        .map_err(|error| cannot_read(path, &error))?;
    let hold = text
        .map(|text| hold_back(&text, expires_ms))
        .transpose()
        .map_err(|error| damaged(path, error.into()))?;
    Ok((hold, Fence(fence)))
}

/// Writes the lines of open steps once more at the end, so that everything before can go.
fn carry_over(transaction: &Transaction<'_>, held: &Held) -> rusqlite::Result<()> {
    let Some(oldest) = held.steps.values().map(|(_, seq)| *seq).min() else {
        return Ok(());
    };
    /// The one field that is looked at.
    #[derive(serde::Deserialize)]
    struct Line {
        step: String,
    }
    for (seq, body) in held.rows.lines(transaction, oldest)? {
        let step = serde_json::from_str(&body).map(|line: Line| line.step);
        let open = step.ok().and_then(|step| held.steps.get(&step));
        if open.is_some_and(|(_, first)| seq >= *first) {
            held.rows.add_line(transaction, &body)?;
        }
    }
    Ok(())
}
