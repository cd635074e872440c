//! TLS with rustls: certificates and keys from files, and the configurations of servers and clients.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio_rustls::rustls::crypto::{CryptoProvider, ring};
use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore, ServerConfig};

mod watched_tls_config;

pub use watched_tls_config::WatchedTlsConfig;

/// Protocols within TLS, the preferred one first: gRPC requires HTTP/2.
const ALPN_PROTOCOLS: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// Certificate and its key, in PEM files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateFiles {
    /// File with the certificate, followed by the intermediate certificates.
    pub cert_file: PathBuf,
    /// File with the key of the first certificate.
    pub key_file: PathBuf,
}

/// Reason why files cannot be used for TLS.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error("{} cannot be read: {source}", file.display())]
    Unreadable {
        /// Path of the file.
        file: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// A file does not contain the expected item.
    #[error("{} holds no {item} in PEM form", file.display())]
    MissingItem {
        /// Path of the file.
        file: PathBuf,
        /// Expected item.
        item: &'static str,
    },
    /// A certificate cannot be used.
    #[error("the certificate in {} cannot be used: {source}", file.display())]
    Certificate {
        /// Path of the file.
        file: PathBuf,
        /// Reason for the rejection.
        source: rustls::Error,
    },
    /// A key cannot be used.
    #[error("the key in {} cannot be used: {source}", file.display())]
    Key {
        /// Path of the file.
        file: PathBuf,
        /// Reason for the rejection.
        source: rustls::Error,
    },
    /// Key and certificate do not belong together.
    #[error(
        "the key in {} is not that of the first certificate in {}", key.display(), cert.display()
    )]
    KeyMismatch {
        /// Path of the certificate file.
        cert: PathBuf,
        /// Path of the key file.
        key: PathBuf,
    },
}

impl CertificateFiles {
    /// Reads both files and returns the server configuration.
    ///
    /// # Errors
    /// Fails if a file cannot be read or does not contain the expected item, or if key and certificate do not belong
    /// together.
    pub fn read_server_config(&self) -> Result<Arc<ServerConfig>, TlsError> {
        let chain = read_certificates(&self.cert_file)?;
        let key = PrivateKeyDer::from_pem_slice(&read_file(&self.key_file)?);
        let key = key.map_err(|error| {
            missing_item(&self.key_file, "private key without a password", &error)
        });
        let builder = ServerConfig::builder_with_provider(crypto_provider())
            .with_safe_default_protocol_versions()
            .map_err(|error| self.pair_error(error))?;
        let config = builder.with_no_client_auth().with_single_cert(chain, key?);
        let mut config = config.map_err(|error| self.pair_error(error))?;
        config.alpn_protocols = ALPN_PROTOCOLS.iter().map(|name| name.to_vec()).collect();
        Ok(Arc::new(config))
    }

    /// Attributes an error of the pair to one of the two files.
    fn pair_error(&self, source: rustls::Error) -> TlsError {
        let Self { cert_file: cert, key_file: key } = self.clone();
        match source {
            rustls::Error::InconsistentKeys(_) => TlsError::KeyMismatch { cert, key },
            rustls::Error::InvalidCertificate(_) => TlsError::Certificate { file: cert, source },
            _ => TlsError::Key { file: key, source },
        }
    }
}

impl TlsError {
    /// Returns the file to which the error belongs.
    #[must_use]
    pub fn file(&self) -> &Path {
        match self {
            Self::Unreadable { file, .. }
            | Self::MissingItem { file, .. }
            | Self::Certificate { file, .. }
            | Self::Key { file, .. } => file,
            Self::KeyMismatch { key, .. } => key,
        }
    }
}

/// Returns the client configuration that trusts the authorities of this file, or the built-in root certificates
/// without a file.
///
/// # Errors
/// Fails if the file cannot be read or contains no authority.
pub fn client_config(authorities_file: Option<&Path>) -> Result<ClientConfig, TlsError> {
    let roots = match authorities_file {
        Some(file) => read_root_store(file)?,
        None => RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() },
    };
    let certificate_error = |source| TlsError::Certificate {
        file: authorities_file.unwrap_or(Path::new("the program")).to_owned(),
        source,
    };
    let builder = ClientConfig::builder_with_provider(crypto_provider())
        .with_safe_default_protocol_versions()
        .map_err(certificate_error)?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

/// Certificates of authorities that are trusted in addition to the built-in ones.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CertificateAuthorities(Arc<Vec<CertificateDer<'static>>>);

impl CertificateAuthorities {
    /// Reads a PEM file.
    ///
    /// # Errors
    /// Fails when the file cannot be read, or holds no certificate of an authority.
    pub fn read(file: &Path) -> Result<Self, TlsError> {
        read_root_store(file)?; // Each of them can be an authority.
        Ok(Self(Arc::new(read_certificates(file)?)))
    }

    /// Returns these authorities and those of another file.
    #[must_use]
    pub fn union_with(&self, other: &Self) -> Self {
        Self(Arc::new(self.iter().chain(other.iter()).cloned().collect()))
    }

    /// Iterates over the certificates.
    pub fn iter(&self) -> impl Iterator<Item = &CertificateDer<'static>> {
        self.0.iter()
    }
}

/// Returns each certificate of a file as an authority.
fn read_root_store(file: &Path) -> Result<RootCertStore, TlsError> {
    let mut root_store = RootCertStore::empty();
    for certificate in read_certificates(file)? {
        let added = root_store.add(certificate);
        added.map_err(|source| TlsError::Certificate { file: file.to_owned(), source })?;
    }
    Ok(root_store)
}

/// Returns the certificates of a file, at least one.
fn read_certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let bytes = read_file(file)?;
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
    let certificates = certificates.and_then(|certificates| {
        if certificates.is_empty() { Err(pem::Error::NoItemsFound) } else { Ok(certificates) }
    });
    certificates.map_err(|error| missing_item(file, "certificate", &error))
}

fn read_file(file: &Path) -> Result<Vec<u8>, TlsError> {
    fs::read(file).map_err(|source| TlsError::Unreadable { file: file.to_owned(), source })
}

/// Creates the error without a description of the content, which may be a part of a key.
fn missing_item(file: &Path, item: &'static str, _: &pem::Error) -> TlsError {
    TlsError::MissingItem { file: file.to_owned(), item }
}

fn crypto_provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}
