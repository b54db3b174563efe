//! The host's own keys: one seals values at rest, one signs reviews.

use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{Key, XChaCha20Poly1305, XNonce};
use hmac::{Hmac, Mac};
use notation_edge::Uid;
use sha2::Sha256;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use zeroize::Zeroizing;

/// Where a value belongs; part of what is authenticated, so that a row cannot be moved.
pub fn place(tenant: &str, worker: &Uid, name: &str) -> String {
    format!("{tenant}\n{worker}\n{name}")
}

/// The keys in `data_dir/host.key`, readable by the owner only.
pub struct Keys {
    bytes: Zeroizing<[u8; 64]>,
}

impl Keys {
    /// Reads the key file; `None` when there is none. Errors: `InvalidData` for a damaged one.
    pub fn read(path: &Path) -> io::Result<Option<Keys>> {
        let mut bytes = Zeroizing::new([0u8; 64]);
        match std::fs::read(path).map(Zeroizing::new) {
            Ok(read) if read.len() == 64 => bytes.copy_from_slice(&read),
            Ok(_) => {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    "the host key is damaged",
                ));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        }
        Ok(Some(Keys { bytes }))
    }

    /// Makes the key file.
    pub fn make(path: &Path) -> io::Result<Keys> {
        let mut bytes = Zeroizing::new([0u8; 64]);
        fill(&mut bytes[..]);
        let mut file = std::fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path)?;
        file.write_all(&bytes[..])?;
        file.sync_all()?;
        Ok(Keys { bytes })
    }

    fn cipher(&self) -> XChaCha20Poly1305 {
        let key = Key::try_from(&self.bytes[..32]).expect("32 bytes are a key");
        XChaCha20Poly1305::new(&key)
    }

    /// Encrypts a value for a place; it only opens at the same place.
    pub fn seal(&self, place: &str, value: &[u8]) -> Vec<u8> {
        let mut nonce = [0u8; 24];
        fill(&mut nonce);
        let sealed = self
            .cipher()
            .encrypt(
                &XNonce::from(nonce),
                Payload {
                    msg: value,
                    aad: place.as_bytes(),
                },
            )
            .expect("a value of some kilobytes can be encrypted");
        [&nonce[..], &sealed].concat()
    }

    /// Decrypts what [`Keys::seal`] made; `None` when it was changed or moved.
    pub fn unseal(&self, place: &str, sealed: &[u8]) -> Option<Vec<u8>> {
        let (nonce, rest) = sealed.split_at_checked(24)?;
        let nonce = XNonce::try_from(nonce).ok()?;
        self.cipher()
            .decrypt(
                &nonce,
                Payload {
                    msg: rest,
                    aad: place.as_bytes(),
                },
            )
            .ok()
    }

    /// Authenticates a review.
    pub fn sign(&self, parts: &[&[u8]]) -> [u8; 32] {
        let mut mac = <Hmac<Sha256> as KeyInit>::new_from_slice(&self.bytes[32..])
            .expect("any length is a key");
        for part in parts {
            mac.update(part);
        }
        mac.finalize().into_bytes().into()
    }
}

/// Fills a buffer from the system's source of randomness.
pub fn fill(bytes: &mut [u8]) {
    getrandom::fill(bytes).expect("the system has a source of randomness");
}

/// Random lowercase base32-like text: `count` characters of 5 bits each.
pub fn random_text(count: usize) -> String {
    const ALPHABET: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";
    let mut bytes = vec![0u8; count];
    fill(&mut bytes);
    bytes
        .iter()
        .map(|byte| char::from(ALPHABET[usize::from(byte & 31)]))
        .collect()
}
