//! Credentials that the service sends to another service: from a file or from a variable, and never inline.

use algonius_actors::model::push::Secret;

use super::position::Positioned;
use super::section::Section;
use crate::config::diagnostics::{Severity, new_diagnostic};

/// Keys of a credential, and its name in messages.
pub(crate) struct CredentialKeys {
    /// Key that is refused: the credential itself.
    pub(crate) inline: &'static str,
    /// Key of the variable.
    pub(crate) env: &'static str,
    /// Key of the file.
    pub(crate) file: &'static str,
    /// Name of the credential, such as "token".
    pub(crate) noun: &'static str,
}

/// Reads a credential from one of two sources, and registers it for redaction. A source that is not there has the
/// severity `machine_fault_severity`.
pub(crate) fn read_credential(
    section: &mut Section<'_>,
    keys: &CredentialKeys,
    machine_fault_severity: Severity,
) -> Option<Secret> {
    let reader = section.reader;
    let CredentialKeys { inline, env, file, noun } = *keys;
    if let Some(inline) = section.entry(inline) {
        let message =
            format!("a {noun} is not written into the configuration, which is read by many");
        let diagnostic = new_diagnostic(message).with_hint(format!("use `{file}` or `{env}`"));
        reader.report_error(&inline.position.without_excerpt(), diagnostic);
    }
    let (text, position) = match (section.nonblank_text(env), section.nonblank_text(file)) {
        (None, None) => return None,
        (Some(_), Some(file_path)) => {
            let message = format!("give one of `{env}`, `{file}`");
            reader.report_error(&file_path.position.without_excerpt(), message);
            return None;
        }
        (None, Some(file_path)) => (read_credential_file(section, &file_path), file_path.position),
        (Some(name), None) => (reader.credential_env(&name.value), name.position),
    };
    let text = match text {
        Ok(text) => text.trim().to_owned(),
        Err(message) => {
            reader.record_fault(machine_fault_severity, &position, new_diagnostic(message));
            return None;
        }
    };
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        let message = format!("the {noun} must be of visible ASCII characters");
        reader.report_error(&position.without_excerpt(), message);
        return None;
    }
    reader.register_secret_or_warn(&position, &text);
    Some(Secret(text))
}

/// Returns the text of a file with a credential.
fn read_credential_file(
    section: &Section<'_>,
    file: &Positioned<String>,
) -> Result<String, String> {
    let path = section.reader.resolve_path(&file.value);
    section.reader.read_secret_file(&path).map_err(|error| format!("cannot be read: {error}"))
}
