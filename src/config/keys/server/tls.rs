//! `[server.tls]`: certificate and key for TLS.

use std::path::PathBuf;

use crate::config::diagnostics::new_diagnostic;
use crate::config::table::secret::is_open_to_others;
use crate::config::table::{Positioned, Section};
use crate::platform::tls::CertificateFiles;

/// Result of reading `[server.tls]`.
pub(crate) struct TlsSection {
    /// True if TLS is configured, even if its files are faulty.
    pub(crate) is_given: bool,
    /// Certificate and key.
    pub(crate) files: Option<CertificateFiles>,
}

/// Reads `[server.tls]` and its files. A key that other users may read causes a warning.
pub(crate) fn read(server: &mut Section<'_>) -> TlsSection {
    let is_given = server.has("tls");
    let mut section = server.section("tls");
    let (cert, key) = (file(&mut section, "cert", is_given), file(&mut section, "key", is_given));
    let files = cert.zip(key).map(|(cert, key)| certificate_files(&section, &cert, &key));
    section.finish();
    TlsSection { is_given, files }
}

/// Reads one of the two files, which are required together.
fn file(
    section: &mut Section<'_>,
    key: &'static str,
    is_needed: bool,
) -> Option<Positioned<PathBuf>> {
    let is_missing = is_needed && !section.has(key);
    let path = section.nonblank(key);
    if is_missing {
        section.reader.error(&section.position.below(key).unprintable(), "is needed");
    }
    let path = path?;
    Some(Positioned { value: section.reader.resolve(&path.value), position: path.position })
}

fn certificate_files(
    section: &Section<'_>,
    cert: &Positioned<PathBuf>,
    key: &Positioned<PathBuf>,
) -> CertificateFiles {
    let reader = section.reader;
    let files = CertificateFiles { cert_file: cert.value.clone(), key_file: key.value.clone() };
    if let Err(error) = files.read_server_config() {
        let position = if error.file() == files.key_file { &key.position } else { &cert.position };
        reader.error(position, error.to_string());
    }
    if is_open_to_others(&files.key_file) {
        reader.warning(
            &key.position,
            new_diagnostic("others may read this file").with_hint("chmod 600 it"),
        );
    }
    files
}
