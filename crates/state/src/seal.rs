//! Encryption of sensitive values with a key that is not in the store.

use std::{
    io::Write as _,
    path::{Path, PathBuf},
    sync::OnceLock,
};

use argon2::Argon2;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use chacha20poly1305::{
    KeyInit as _, XChaCha20Poly1305, XNonce,
    aead::{Aead as _, Payload},
};
use zeroize::Zeroizing;

use crate::StoreError;

const KEY_BYTES: usize = 32;
const NONCE_BYTES: usize = 24;
/// Length of the salt that a store keeps for passphrases, in bytes.
pub(crate) const SALT_BYTES: usize = 16;

/// Where the key comes from.
pub enum KeySource {
    /// A file with 32 random bytes; made, readable by its owner only, when first needed.
    File(PathBuf),
    /// A text that a person knows; the key is derived with argon2id and the store's salt.
    Passphrase(Zeroizing<String>),
}

impl std::fmt::Debug for KeySource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.place())
    }
}

impl KeySource {
    /// A passphrase.
    pub fn passphrase(text: impl Into<String>) -> KeySource {
        KeySource::Passphrase(Zeroizing::new(text.into()))
    }

    fn place(&self) -> String {
        match self {
            KeySource::File(path) => path.display().to_string(),
            KeySource::Passphrase(_) => "the passphrase".to_owned(),
        }
    }
}

/// Encrypts and decrypts with XChaCha20-Poly1305; finds its key when first needed.
#[derive(Debug)]
pub struct Sealer {
    source: KeySource,
    key: OnceLock<Key>,
}

struct Key(Zeroizing<[u8; KEY_BYTES]>);

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("(key)")
    }
}

impl Sealer {
    /// A sealer that asks this source when it first needs the key.
    pub fn new(source: KeySource) -> Sealer {
        Sealer {
            source,
            key: OnceLock::new(),
        }
    }

    /// Encrypts. `bound_to` must be given again to decrypt: what was taken from another place of
    /// the store does not open. Base64 of nonce and ciphertext.
    ///
    /// Errors: [`StoreError::Key`] when the key cannot be had.
    pub(crate) fn seal(
        &self,
        salt: &[u8; SALT_BYTES],
        bound_to: &str,
        clear: &[u8],
    ) -> Result<String, StoreError> {
        let cipher = self.cipher(salt, Missing::Make)?;
        let mut nonce = [0u8; NONCE_BYTES];
        fill(&mut nonce);
        let payload = Payload {
            msg: clear,
            aad: bound_to.as_bytes(),
        };
        let sealed = cipher
            .encrypt(&XNonce::from(nonce), payload)
            .expect("a value that fits into memory can be encrypted");
        Ok(STANDARD.encode([&nonce[..], &sealed].concat()))
    }

    /// Decrypts what [`Sealer::seal`] made.
    ///
    /// Errors: [`StoreError::Key`], or [`StoreError::WrongKey`] when it was sealed with another
    /// key, bound to something else, or changed.
    pub(crate) fn open(
        &self,
        salt: &[u8; SALT_BYTES],
        bound_to: &str,
        sealed: &str,
    ) -> Result<Zeroizing<Vec<u8>>, StoreError> {
        let wrong = || StoreError::WrongKey {
            place: self.source.place(),
        };
        let cipher = self.cipher(salt, Missing::Refuse)?;
        let bytes = STANDARD.decode(sealed).map_err(|_| wrong())?;
        let (nonce, msg) = bytes.split_at_checked(NONCE_BYTES).ok_or_else(wrong)?;
        let nonce: [u8; NONCE_BYTES] = nonce.try_into().map_err(|_| wrong())?;
        let aad = bound_to.as_bytes();
        cipher
            .decrypt(&XNonce::from(nonce), Payload { msg, aad })
            .map(Zeroizing::new)
            .map_err(|_| wrong())
    }

    fn cipher(
        &self,
        salt: &[u8; SALT_BYTES],
        missing: Missing,
    ) -> Result<XChaCha20Poly1305, StoreError> {
        let key = match self.key.get() {
            Some(key) => key,
            None => {
                let key = self.find(salt, missing)?;
                self.key.get_or_init(|| key)
            }
        };
        Ok(XChaCha20Poly1305::new((&*key.0).into()))
    }

    fn find(&self, salt: &[u8; SALT_BYTES], missing: Missing) -> Result<Key, StoreError> {
        match &self.source {
            KeySource::File(path) => key_file(path, missing),
            KeySource::Passphrase(text) => {
                let mut key = Zeroizing::new([0u8; KEY_BYTES]);
                Argon2::default()
                    .hash_password_into(text.as_bytes(), salt, &mut *key)
                    .map_err(|error| self.unusable(error.to_string()))?;
                Ok(Key(key))
            }
        }
    }

    fn unusable(&self, why: String) -> StoreError {
        StoreError::Key {
            place: self.source.place(),
            why,
        }
    }
}

/// What to do when there is no key file yet.
#[derive(Clone, Copy)]
enum Missing {
    Make,
    Refuse,
}

fn key_file(path: &Path, missing: Missing) -> Result<Key, StoreError> {
    let failed = |why: String| StoreError::Key {
        place: path.display().to_string(),
        why,
    };
    match std::fs::read(path) {
        Ok(bytes) => {
            let key: [u8; KEY_BYTES] = Zeroizing::new(bytes)
                .as_slice()
                .try_into()
                .map_err(|_| failed(format!("it does not hold {KEY_BYTES} bytes")))?;
            Ok(Key(Zeroizing::new(key)))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => match missing {
            Missing::Refuse => Err(failed("there is no such file".into())),
            Missing::Make => {
                make_key_file(path).map_err(|error| failed(error.to_string()))?;
                // Read back: of two processes that make it at once, one wins.
                key_file(path, Missing::Refuse)
            }
        },
        Err(error) => Err(failed(error.to_string())),
    }
}

/// Writes a new key aside and links it into place, so that nobody ever reads half a key and an
/// existing one is never replaced.
fn make_key_file(path: &Path) -> std::io::Result<()> {
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent)?;
    }
    let aside = path.with_extension(format!("{}.new", crate::hold::random_hex()));
    let mut key = Zeroizing::new([0u8; KEY_BYTES]);
    fill(&mut *key);
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(&aside)?;
    let written = file.write_all(&*key).and_then(|()| file.sync_all());
    let linked = written.and_then(|()| std::fs::hard_link(&aside, path));
    std::fs::remove_file(&aside)?;
    match linked {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        other => other,
    }
}

/// Fills with the system's randomness.
pub(crate) fn fill(bytes: &mut [u8]) {
    getrandom::fill(bytes).expect("the system has a source of randomness");
}

#[cfg(test)]
mod tests {
    use super::*;

    const SALT: [u8; SALT_BYTES] = [7; SALT_BYTES];

    #[test]
    fn a_key_file_is_made_once_and_only_for_its_owner() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("sub/key");
        let sealed = Sealer::new(KeySource::File(path.clone()))
            .seal(&SALT, "x", b"hunter2")
            .unwrap();
        let again = Sealer::new(KeySource::File(path.clone()));
        assert_eq!(&**again.open(&SALT, "x", &sealed).unwrap(), b"hunter2");
        assert!(matches!(
            again.open(&SALT, "y", &sealed),
            Err(StoreError::WrongKey { .. })
        ));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let mode = std::fs::metadata(&path).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
        assert_eq!(
            std::fs::read_dir(path.parent().unwrap()).unwrap().count(),
            1
        );
    }

    #[test]
    fn decrypting_makes_no_key() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("key");
        let error = Sealer::new(KeySource::File(path.clone()))
            .open(&SALT, "x", "AAAA")
            .unwrap_err();
        assert!(matches!(error, StoreError::Key { .. }));
        assert!(!path.exists());
    }

    #[test]
    fn the_same_passphrase_opens_and_another_does_not() {
        let sealed = Sealer::new(KeySource::passphrase("correct horse"))
            .seal(&SALT, "x", b"v")
            .unwrap();
        let open = |text: &str| {
            Sealer::new(KeySource::passphrase(text))
                .open(&SALT, "x", &sealed)
                .map(|clear| clear.to_vec())
        };
        assert_eq!(open("correct horse").unwrap(), b"v");
        assert!(matches!(open("battery"), Err(StoreError::WrongKey { .. })));
    }
}
