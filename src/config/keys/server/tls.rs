//! `[server.tls]`: certificate and key for TLS.

use std::path::PathBuf;

use crate::config::table::{Positioned, Section};
use crate::platform::tls::CertificateFiles;

/// Result of reading `[server.tls]`.
pub(crate) struct ConfiguredTls {
    /// True if TLS is configured, even if its files are faulty.
    pub(crate) is_configured: bool,
    /// Certificate and key.
    pub(crate) files: Option<CertificateFiles>,
}

/// Reads `[server.tls]` and its files. A key that other users may read causes a warning.
pub(crate) fn read(server: &mut Section<'_>) -> ConfiguredTls {
    let is_given = server.has_key("tls");
    let mut section = server.section("tls");
    let (cert, key) = (
        read_file_path(&mut section, "cert", is_given),
        read_file_path(&mut section, "key", is_given),
    );
    let files = cert.zip(key).map(|(cert, key)| check_certificate_files(&section, &cert, &key));
    section.report_unknown_keys();
    ConfiguredTls { is_configured: is_given, files }
}

/// Reads one of the two files, which are required together.
fn read_file_path(
    section: &mut Section<'_>,
    key: &'static str,
    is_needed: bool,
) -> Option<Positioned<PathBuf>> {
    let is_missing = is_needed && !section.has_key(key);
    let path = section.nonblank_text(key);
    if is_missing {
        section.reader.report_error(&section.position.child(key).without_excerpt(), "is needed");
    }
    let path = path?;
    Some(Positioned { value: section.reader.resolve_path(&path.value), position: path.position })
}

fn check_certificate_files(
    section: &Section<'_>,
    cert: &Positioned<PathBuf>,
    key: &Positioned<PathBuf>,
) -> CertificateFiles {
    let reader = section.reader;
    let files = CertificateFiles { cert_file: cert.value.clone(), key_file: key.value.clone() };
    if let Err(error) = files.read_server_config() {
        let position = if error.file() == files.key_file { &key.position } else { &cert.position };
        reader.report_error(position, error.to_string());
    }
    files
}
