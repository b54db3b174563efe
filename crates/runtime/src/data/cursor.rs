//! Cursors of listings: opaque, and recognised as the host's own.

use std::io;
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};

const MARK_BYTES: usize = 16;

/// Makes and recognises cursors.
pub(crate) struct Cursors {
    secret: [u8; 32],
}

impl Cursors {
    /// Uses the secret kept in `directory`, so that cursors survive a restart.
    pub(crate) fn open(directory: &Path) -> io::Result<Cursors> {
        let file = directory.join("cursor.key");
        if let Ok(bytes) = std::fs::read(&file)
            && let Ok(secret) = <[u8; 32]>::try_from(bytes)
        {
            return Ok(Cursors { secret });
        }
        let mut secret = [0; 32];
        getrandom::fill(&mut secret).map_err(io::Error::other)?;
        let mut made = tempfile::NamedTempFile::new_in(directory)?; // readable by its owner only
        io::Write::write_all(&mut made, &secret)?;
        made.as_file().sync_all()?;
        made.persist(&file)?;
        Ok(Cursors { secret })
    }

    /// A cursor that continues a listing of `scope` after `last`.
    pub(crate) fn seal(&self, scope: &[&str], last: &[u8]) -> String {
        URL_SAFE_NO_PAD.encode([&self.mark(scope, last)[..], last].concat())
    }

    /// Where a listing of `scope` continues; none for a cursor that was not made for it.
    pub(crate) fn open_sealed(&self, scope: &[&str], cursor: &str) -> Option<Vec<u8>> {
        let bytes = URL_SAFE_NO_PAD.decode(cursor).ok()?;
        let (mark, last) = bytes.split_at_checked(MARK_BYTES)?;
        (mark == self.mark(scope, last)).then(|| last.to_vec())
    }

    fn mark(&self, scope: &[&str], last: &[u8]) -> [u8; MARK_BYTES] {
        let mut hash = Sha256::new();
        hash.update(self.secret);
        for part in scope {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        hash.update(last);
        hash.update(self.secret); // no extension of a known mark
        let mut mark = [0; MARK_BYTES];
        mark.copy_from_slice(&hash.finalize()[..MARK_BYTES]);
        mark
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_cursors_made_for_the_listing_are_opened() {
        let directory = tempfile::tempdir().unwrap();
        let cursors = Cursors::open(directory.path()).unwrap();
        let cursor = cursors.seal(&["a", "b"], b"last");
        assert_eq!(
            cursors.open_sealed(&["a", "b"], &cursor),
            Some(b"last".to_vec())
        );
        assert_eq!(cursors.open_sealed(&["ab", ""], &cursor), None);
        assert_eq!(cursors.open_sealed(&["a", "b"], "nonsense"), None);
        let again = Cursors::open(directory.path()).unwrap();
        assert_eq!(
            again.open_sealed(&["a", "b"], &cursor),
            Some(b"last".to_vec())
        );
    }
}
