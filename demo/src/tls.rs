//! TLS for the page and the stream: a certificate from files, read again when they change.
//!
//! HTTP/2 is offered first: a browser opens at most six HTTP/1.1 connections to one origin, so a seventh tab would wait.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use rustls::ServerConfig;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use tokio_rustls::TlsAcceptor;

/// How often the files are looked at: a renewed certificate is in use this much later at most.
const REREAD_INTERVAL: Duration = Duration::from_mins(1);

/// Why TLS cannot be served.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TlsError {
    #[error("{flag} {path} cannot be read: it must be a PEM file", path = path.display())]
    Unreadable {
        flag: &'static str,
        path: PathBuf,
        #[source]
        source: rustls::pki_types::pem::Error,
    },
    #[error("--tls-cert {path} holds no certificate", path = .0.display())]
    NoCertificate(PathBuf),
    #[error("--tls-cert and --tls-key do not belong together, or their kind is not supported")]
    Unusable(#[source] rustls::Error),
}

/// The certificate that is presented now.
pub(crate) struct Certificate {
    files: CertificateFiles,
    current: RwLock<Arc<CertifiedKey>>,
}

/// Where it is read from.
#[derive(Clone, Debug)]
pub(crate) struct CertificateFiles {
    pub(crate) chain: PathBuf,
    pub(crate) key: PathBuf,
}

impl Certificate {
    /// Reads the certificate.
    ///
    /// # Errors
    /// [`TlsError`] where a file is missing or of no use.
    pub(crate) fn load(files: CertificateFiles) -> Result<Arc<Self>, TlsError> {
        let current = RwLock::new(Arc::new(files.read()?));
        Ok(Arc::new(Self { files, current }))
    }

    /// What accepts TLS connections with this certificate.
    ///
    /// # Errors
    /// [`TlsError`] if no TLS version is left to speak.
    pub(crate) fn acceptor(self: &Arc<Self>) -> Result<TlsAcceptor, TlsError> {
        let mut config = ServerConfig::builder_with_provider(Arc::new(provider()))
            .with_safe_default_protocol_versions()
            .map_err(TlsError::Unusable)?
            .with_no_client_auth()
            .with_cert_resolver(Arc::<Self>::clone(self));
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(TlsAcceptor::from(Arc::new(config)))
    }

    /// Reads the files again from time to time, without an end. Files that cannot be used leave the certificate as it is, and
    /// are told of in the log.
    ///
    /// # Cancel safety
    /// The future may be dropped at any time.
    pub(crate) async fn keep_fresh(self: Arc<Self>) {
        loop {
            tokio::time::sleep(REREAD_INTERVAL).await;
            self.reread();
        }
    }

    fn reread(&self) {
        match self.files.read() {
            Ok(certificate) => {
                let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
                if current.cert != certificate.cert {
                    tracing::info!("the certificate was renewed");
                    *current = Arc::new(certificate);
                }
            }
            Err(error) => tracing::warn!(
                error = crate::diagnostics::with_causes(&error),
                "the certificate was not renewed"
            ),
        }
    }
}

impl ResolvesServerCert for Certificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let current = self.current.read().unwrap_or_else(PoisonError::into_inner);
        Some(Arc::clone(&current))
    }
}

impl fmt::Debug for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Certificate")
            .field("files", &self.files)
            .finish_non_exhaustive()
    }
}

impl CertificateFiles {
    fn read(&self) -> Result<CertifiedKey, TlsError> {
        let unreadable = |flag, path: &Path| {
            let path = path.to_owned();
            move |source| TlsError::Unreadable { flag, path, source }
        };
        let chain = CertificateDer::pem_file_iter(&self.chain)
            .and_then(Iterator::collect::<Result<Vec<_>, _>>)
            .map_err(unreadable("--tls-cert", &self.chain))?;
        if chain.is_empty() {
            return Err(TlsError::NoCertificate(self.chain.clone()));
        }
        let key = PrivateKeyDer::from_pem_file(&self.key).map_err(unreadable("--tls-key", &self.key))?;
        CertifiedKey::from_der(chain, key, &provider()).map_err(TlsError::Unusable)
    }
}

fn provider() -> CryptoProvider {
    rustls::crypto::ring::default_provider()
}

/// Whether a handshake failed as they do: a scanner, a client without trust in the certificate.
pub(crate) fn handshake_failed(error: &io::Error) {
    tracing::debug!(%error, "a TLS handshake failed");
}

#[cfg(test)]
mod tests {
    use std::fs;

    use rcgen::{CertifiedKey, generate_simple_self_signed};

    use super::*;

    fn write_certificate(files: &CertificateFiles) {
        let CertifiedKey { cert, signing_key } =
            generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        fs::write(&files.chain, cert.pem()).unwrap();
        fs::write(&files.key, signing_key.serialize_pem()).unwrap();
    }

    fn files(folder: &tempfile::TempDir) -> CertificateFiles {
        CertificateFiles {
            chain: folder.path().join("tls.crt"),
            key: folder.path().join("tls.key"),
        }
    }

    #[test]
    fn a_renewed_certificate_is_taken_up_and_a_broken_one_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let files = files(&folder);
        write_certificate(&files);
        let certificate = Certificate::load(files.clone()).unwrap();
        certificate.acceptor().unwrap();
        let presented = || certificate.current.read().unwrap().cert.clone();
        let first = presented();

        write_certificate(&files);
        certificate.reread();
        let second = presented();
        assert_ne!(first, second);

        fs::write(&files.key, "half a key").unwrap();
        certificate.reread();
        assert_eq!(presented(), second);
    }

    #[test]
    fn files_that_are_no_certificate_are_refused_by_the_name_of_their_flag() {
        let folder = tempfile::tempdir().unwrap();
        let good = files(&folder);
        write_certificate(&good);
        let refused = |chain: &Path, key: &Path| {
            let files = CertificateFiles {
                chain: chain.to_owned(),
                key: key.to_owned(),
            };
            Certificate::load(files).unwrap_err().to_string()
        };
        let missing = folder.path().join("missing.pem");
        assert!(refused(&missing, &good.key).starts_with("--tls-cert"));
        assert!(refused(&good.chain, &missing).starts_with("--tls-key"));
        assert!(refused(&good.key, &good.key).contains("holds no certificate"));
        assert!(refused(&good.chain, &good.chain).starts_with("--tls-key"));

        let other = CertificateFiles {
            chain: folder.path().join("other.crt"),
            key: folder.path().join("other.key"),
        };
        write_certificate(&other);
        assert!(refused(&other.chain, &good.key).contains("do not belong together"));
    }
}
