//! Data of resources that are gone: what is kept is asked, what nobody owns goes.

use std::collections::BTreeSet;
use std::io;

use super::queue::messages;
use super::{Data, operation::Refusal};
use crate::plan::Uid;

impl Data {
    /// Every resource that data is kept of.
    ///
    /// Errors: the directory cannot be read.
    pub(crate) async fn kept(&self) -> io::Result<BTreeSet<Uid>> {
        let mut kept = self.files.kept()?;
        let messages = messages(self).map_err(unreadable)?;
        let queues = messages.with(|connection| {
            let mut query = connection.prepare("SELECT DISTINCT queue FROM message")?;
            let queues = query.query_map([], |row| row.get::<_, String>(0))?;
            Ok(queues.collect::<rusqlite::Result<Vec<_>>>()?)
        });
        kept.extend(queues.await.map_err(unreadable)?.into_iter().map(Uid::from));
        Ok(kept)
    }

    /// Removes what is kept of one resource. It must be gone for good: a uid names one life.
    ///
    /// Errors: what is kept cannot be removed.
    pub(crate) async fn forget(&self, uid: &Uid) -> io::Result<()> {
        self.buckets.forget(uid);
        self.files.forget(uid)?;
        let queue = uid.as_str().to_owned();
        let messages = messages(self).map_err(unreadable)?;
        let removed = messages.with(move |connection| {
            Ok(connection.execute("DELETE FROM message WHERE queue = ?1", [queue])?)
        });
        removed.await.map(drop).map_err(unreadable)
    }
}

fn unreadable(refusal: Refusal) -> io::Error {
    io::Error::other(refusal.message)
}
