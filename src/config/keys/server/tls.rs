//! `[server.tls]`: certificate and key for TLS.

use std::path::PathBuf;

use crate::config::diagnostics::from_message;
use crate::config::table::secret::is_open_to_others;
use crate::config::table::{Section, Spanned};
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
fn file(section: &mut Section<'_>, key: &'static str, is_needed: bool) -> Option<Spanned<PathBuf>> {
    let is_missing = is_needed && !section.has(key);
    let path = section.nonblank(key);
    if is_missing {
        section.reader.error(&section.position.below(key).hidden(), "is needed");
    }
    let path = path?;
    Some(Spanned { value: section.reader.resolve(&path.value), position: path.position })
}

fn certificate_files(
    section: &Section<'_>,
    cert: &Spanned<PathBuf>,
    key: &Spanned<PathBuf>,
) -> CertificateFiles {
    let reader = section.reader;
    let files = CertificateFiles { cert_file: cert.value.clone(), key_file: key.value.clone() };
    if let Err(error) = files.read() {
        let position = if error.file() == files.key_file { &key.position } else { &cert.position };
        reader.error(position, error.to_string());
    }
    if is_open_to_others(&files.key_file) {
        reader
            .warning(&key.position, from_message("others may read this file").hint("chmod 600 it"));
    }
    files
}
