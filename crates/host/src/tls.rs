//! TLS with a certificate that is given.

use crate::config::Tls;
use crate::host::ServeError;
use std::path::Path;
use std::sync::Arc;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// An acceptor for the given files. Errors: `ServeError::Tls` with the file at fault.
pub fn acceptor(tls: &Tls) -> Result<TlsAcceptor, ServeError> {
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
