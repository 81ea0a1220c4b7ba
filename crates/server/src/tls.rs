//! Encrypted connections.
//!
//! Owns: the certificate and the key, and the messages about faults in them. Never does: ask
//! clients for a certificate.

use crate::config::Tls;
use std::path::Path;
use std::sync::Arc;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// Makes the acceptor of connections by TLS 1.2 or 1.3.
///
/// # Errors
/// A sentence that names the bad file, and the reason.
pub(crate) fn acceptor(tls: &Tls) -> Result<TlsAcceptor, String> {
    let wrong = |what: &str, path: &Path, why: &dyn std::fmt::Display| {
        format!("{what} {}: {why}; it has to be in PEM", path.display())
    };
    let of_certificates = |why: &dyn std::fmt::Display| {
        wrong("cannot use the certificates of --tls-cert-file", &tls.certificates, why)
    };
    let certificates: Vec<_> = CertificateDer::pem_file_iter(&tls.certificates)
        .and_then(Iterator::collect)
        .map_err(|error| of_certificates(&error))?;
    if certificates.is_empty() {
        return Err(of_certificates(&"there are none"));
    }
    let key = PrivateKeyDer::from_pem_file(&tls.key)
        .map_err(|error| wrong("cannot use the key of --tls-key-file", &tls.key, &error))?;
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .and_then(|config| config.with_no_client_auth().with_single_cert(certificates, key))
        .map_err(|error| of_certificates(&error))?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}
