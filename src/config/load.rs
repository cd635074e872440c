//! Loading of a configuration: its text, its presets, and the check of both.

use std::ffi::OsString;
use std::path::Path;

use toml::de::DeTable;

use super::diagnostics::{
    ConfigFault, ConfigFaults, FaultCode, Severity, new_diagnostic, sort_by_position,
};
use super::document;
use super::presets::{self, PresetCatalog};
use super::service_files::{ConfiguredFiles, ServiceFiles};
use super::settings::{SecrecySettings, Settings};
use super::table::{ConfigReader, ReadResult, SourcePosition};

/// Configuration that is built into the program; it works without changes.
pub const BUILT_IN_CONFIG: &str = include_str!("../../config/supervisor.toml");

/// Usable settings, with warnings for their author.
#[derive(Debug, Clone)]
pub struct LoadedConfig {
    /// Checked settings.
    pub settings: Settings,
    /// Faults that do not prevent the use, in the order of the file.
    pub warnings: Vec<ConfigFault>,
}

/// Reads a file and checks it against this machine. `env` is the service's environment.
///
/// # Errors
/// Fails if the file has any error, and returns all faults, including warnings. A file that is not TOML yields its
/// syntax errors alone, because its meaning is unknown then.
pub fn load(
    path: &Path,
    env: &dyn Fn(&str) -> Option<OsString>,
) -> Result<LoadedConfig, ConfigFaults> {
    let text = std::fs::read_to_string(path);
    let text =
        text.map_err(|error| unreadable_file_faults(path, &format!("cannot be read: {error}")))?;
    load_config_text(&ConfigText { path, text: &text, is_built_in: false }, env)
}

/// Reads the configuration that is built into the program.
///
/// # Errors
/// Fails if the configuration does not suit this machine.
pub fn load_built_in(env: &dyn Fn(&str) -> Option<OsString>) -> Result<LoadedConfig, ConfigFaults> {
    load_built_in_text(BUILT_IN_CONFIG, env)
}

/// Reads a text of this program, which no file has. Only the built-in presets are available to it.
///
/// # Errors
/// Same as [`load`].
pub fn load_built_in_text(
    text: &str,
    env: &dyn Fn(&str) -> Option<OsString>,
) -> Result<LoadedConfig, ConfigFaults> {
    let path = Path::new("supervisor.toml");
    load_config_text(&ConfigText { path, text, is_built_in: true }, env)
}

/// Reads a text as the contents of a file.
///
/// # Errors
/// Same as [`load`].
pub fn load_text(
    path: &Path,
    text: &str,
    env: &dyn Fn(&str) -> Option<OsString>,
) -> Result<LoadedConfig, ConfigFaults> {
    load_config_text(&ConfigText { path, text, is_built_in: false }, env)
}

/// Text of a configuration, and the path that names it in faults.
struct ConfigText<'t> {
    path: &'t Path,
    text: &'t str,
    /// True if the text is built into the program, so that no file has it.
    is_built_in: bool,
}

/// Checks the text of a file. Relative paths are relative to the file's folder.
fn load_config_text(
    config_text: &ConfigText<'_>,
    env: &dyn Fn(&str) -> Option<OsString>,
) -> Result<LoadedConfig, ConfigFaults> {
    let ConfigText { path, text, is_built_in } = *config_text;
    let file = std::path::absolute(path);
    let file =
        file.map_err(|error| unreadable_file_faults(path, &format!("has no folder: {error}")))?;
    let reader = ConfigReader::new(path, text, file.parent().unwrap_or(&file).to_owned(), env);
    let (document, syntax_errors) = DeTable::parse_recoverable(text);
    for error in &syntax_errors {
        let span = error.span().unwrap_or_default();
        let position = SourcePosition { key_path: String::new(), span, may_quote_source: false };
        reader
            .report_error(&position, new_diagnostic(error.message()).with_code(FaultCode::Syntax));
    }
    let preset_catalog = match is_built_in {
        true => PresetCatalog::built_in(),
        false => PresetCatalog::read_configured(document.get_ref(), file.parent().unwrap_or(&file)),
    };
    let merged_document = syntax_errors
        .is_empty()
        .then(|| presets::merge(document.get_ref(), &preset_catalog, &reader));
    let settings = merged_document
        .as_ref()
        .and_then(|merged_document| document::read(&reader, merged_document));
    let ReadResult { faults, secrets, referenced_files, secret_files, mut config_files } =
        reader.into_result();
    if let Some(main_file) = config_files.first_mut().filter(|_| !is_built_in) {
        main_file.file.clone_from(&file);
    }
    // An agent could read the secrets of a preset that is not in use, too.
    config_files.extend(preset_catalog.files());
    let is_valid = faults.iter().all(|fault| fault.severity != Severity::Error);
    match settings {
        Some(settings) if is_valid => Ok(LoadedConfig {
            settings: Settings {
                service_files: ServiceFiles::new(
                    &settings.server,
                    Some(file.as_path()).filter(|_| !is_built_in),
                    ConfiguredFiles {
                        secret_files,
                        unsandboxed_programs: settings.observability.alerts.alert_program_files(),
                    },
                    (&config_files, &secrets),
                ),
                secrecy: SecrecySettings { secrets, ..settings.secrecy },
                referenced_files,
                ..settings
            },
            warnings: sort_by_position(faults),
        }),
        _ => Err(ConfigFaults::new(faults).with_referenced_files(referenced_files)),
    }
}

/// Returns the fault of a file as a whole.
fn unreadable_file_faults(path: &Path, message: &str) -> ConfigFaults {
    ConfigFaults::new(vec![ConfigFault {
        file: path.to_owned(),
        line: 0,
        column: 0,
        key_path: String::new(),
        value: None,
        code: FaultCode::FileUnreadable,
        message: message.to_owned(),
        hint: None,
        severity: Severity::Error,
    }])
}
