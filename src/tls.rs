//! TLS on rustls: certificates and keys as files have them, and what speaks with them.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio_rustls::rustls::crypto::{CryptoProvider, ring};
use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore, ServerConfig};

mod certificates;

pub use certificates::Certificates;

/// What is spoken within TLS, the preferred first: gRPC needs HTTP/2.
const SPOKEN: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// A certificate and its key, in PEM files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pair {
    /// The certificate, and after it those that lead to an authority.
    pub cert: PathBuf,
    /// The key of the first certificate.
    pub key: PathBuf,
}

/// Why files do not do for TLS.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error("{} cannot be read: {source}", file.display())]
    Unreadable {
        /// Which.
        file: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A file is not what it should be.
    #[error("{} holds no {what} in PEM form", file.display())]
    Absent {
        /// Which.
        file: PathBuf,
        /// What it should hold.
        what: &'static str,
    },
    /// A certificate cannot be used.
    #[error("the certificate in {} cannot be used: {source}", file.display())]
    Certificate {
        /// Where it is.
        file: PathBuf,
        /// Why not.
        source: rustls::Error,
    },
    /// A key cannot be used.
    #[error("the key in {} cannot be used: {source}", file.display())]
    Key {
        /// Where it is.
        file: PathBuf,
        /// Why not.
        source: rustls::Error,
    },
    /// Key and certificate are of different pairs.
    #[error(
        "the key in {} is not that of the first certificate in {}", key.display(), cert.display()
    )]
    Strangers {
        /// Where the certificate is.
        cert: PathBuf,
        /// Where the key is.
        key: PathBuf,
    },
}

impl Pair {
    /// Reads both files; what serves with them.
    ///
    /// # Errors
    /// When a file cannot be read or holds nothing fit, or when the two do not belong together.
    pub fn read(&self) -> Result<Arc<ServerConfig>, TlsError> {
        let chain = certificates(&self.cert)?;
        let key = PrivateKeyDer::from_pem_slice(&bytes(&self.key)?);
        let key = key.map_err(|error| absent(&self.key, "private key without a password", &error));
        let builder = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .map_err(|error| self.misfit(error))?;
        let config = builder.with_no_client_auth().with_single_cert(chain, key?);
        let mut config = config.map_err(|error| self.misfit(error))?;
        config.alpn_protocols = SPOKEN.iter().map(|name| name.to_vec()).collect();
        Ok(Arc::new(config))
    }

    /// Which of the two an error of both is about.
    fn misfit(&self, source: rustls::Error) -> TlsError {
        let Self { cert, key } = self.clone();
        match source {
            rustls::Error::InconsistentKeys(_) => TlsError::Strangers { cert, key },
            rustls::Error::InvalidCertificate(_) => TlsError::Certificate { file: cert, source },
            _ => TlsError::Key { file: key, source },
        }
    }
}

impl TlsError {
    /// The file that it is about.
    #[must_use]
    pub fn file(&self) -> &Path {
        match self {
            Self::Unreadable { file, .. }
            | Self::Absent { file, .. }
            | Self::Certificate { file, .. }
            | Self::Key { file, .. } => file,
            Self::Strangers { key, .. } => key,
        }
    }
}

/// What asks servers: it trusts the authorities of this file, or the usual ones where none is given.
///
/// # Errors
/// When the file cannot be read or holds no authority.
pub fn asking(authorities: Option<&Path>) -> Result<ClientConfig, TlsError> {
    let roots = match authorities {
        Some(file) => roots(file)?,
        None => RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() },
    };
    let unfit = |source| TlsError::Certificate {
        file: authorities.unwrap_or(Path::new("the program")).to_owned(),
        source,
    };
    let builder = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(unfit)?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

/// Every certificate of a file as an authority.
fn roots(file: &Path) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(file)? {
        let added = roots.add(certificate);
        added.map_err(|source| TlsError::Certificate { file: file.to_owned(), source })?;
    }
    Ok(roots)
}

/// The certificates of a file; one at least.
fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let bytes = bytes(file)?;
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
    let all =
        all.and_then(|all| if all.is_empty() { Err(pem::Error::NoItemsFound) } else { Ok(all) });
    all.map_err(|error| absent(file, "certificate", &error))
}

fn bytes(file: &Path) -> Result<Vec<u8>, TlsError> {
    fs::read(file).map_err(|source| TlsError::Unreadable { file: file.to_owned(), source })
}

/// What of the contents is wrong is not told: it may be a part of a key.
fn absent(file: &Path, what: &'static str, _: &pem::Error) -> TlsError {
    TlsError::Absent { file: file.to_owned(), what }
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}
