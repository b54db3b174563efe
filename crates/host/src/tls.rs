//! TLS with a certificate that is given, and with the next one once it lies there.

use crate::config::Tls;
use crate::failure::ServeError;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// A certificate with its key, as its two files have it now.
pub struct Certificate {
    files: Tls,
    served: Mutex<Served>,
}

struct Served {
    acceptor: TlsAcceptor,
    /// Of the files that were looked into last, whether they could be used or not.
    seen: [Stamp; 2],
}

/// What tells that a file was written or replaced.
type Stamp = Option<(SystemTime, u64)>;

impl Certificate {
    /// Reads the files. Errors: `ServeError::Tls` with the file at fault.
    pub fn open(files: &Tls) -> Result<Certificate, ServeError> {
        let seen = stamps(files);
        let acceptor = acceptor(files)?;
        Ok(Certificate {
            files: files.clone(),
            served: Mutex::new(Served { acceptor, seen }),
        })
    }

    /// For the next connection. Files that were replaced are read again; while they cannot be
    /// used, as between the writing of one and of the other, the last good ones serve.
    pub fn acceptor(&self) -> TlsAcceptor {
        let mut served = self.served.lock().unwrap_or_else(PoisonError::into_inner);
        let now = stamps(&self.files);
        if now != served.seen {
            served.seen = now;
            match acceptor(&self.files) {
                Ok(acceptor) => {
                    tracing::info!("a new certificate is served");
                    served.acceptor = acceptor;
                }
                Err(error) => tracing::warn!(%error, "the certificate stays as it was"),
            }
        }
        served.acceptor.clone()
    }
}

fn stamps(files: &Tls) -> [Stamp; 2] {
    [&files.certificate, &files.key].map(|path| {
        let found = std::fs::metadata(path).ok()?;
        Some((found.modified().ok()?, found.len()))
    })
}

fn acceptor(tls: &Tls) -> Result<TlsAcceptor, ServeError> {
    fn failed(path: &Path) -> impl Fn(String) -> ServeError + '_ {
        move |reason| ServeError::Tls {
            path: path.to_owned(),
            reason,
        }
    }
    let at_certificate = failed(&tls.certificate);
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_file_iter(&tls.certificate)
        .and_then(Iterator::collect)
        .map_err(|error| at_certificate(error.to_string()))?;
    let key = PrivateKeyDer::from_pem_file(&tls.key)
        .map_err(|error| failed(&tls.key)(error.to_string()))?;
    let mut config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| at_certificate(error.to_string()))?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(|error| at_certificate(error.to_string()))?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}
