//! `[about]`: description of a preset for its users.

use std::path::{Path, PathBuf};

use toml::de::DeTable;

use crate::config::table::{ConfigReader, Section, SourcePosition};

/// Description of a preset.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PresetMetadata {
    /// Display name of the agent.
    pub title: String,
    /// True if its command lines were run against the real program.
    pub is_verified: bool,
    /// Instructions for installing the program, one per line.
    pub install_instructions: Vec<String>,
    /// Variables of which one is enough to authenticate to the model.
    pub credential_variables: Vec<String>,
    /// Command to type in the agent's home to log in without such a variable.
    pub login_command: Option<String>,
    /// Further notes, one per line.
    pub notes: Vec<String>,
}

/// Reads the description, and reports its faults.
pub(super) fn read(mut section: Section<'_>) -> PresetMetadata {
    let mut texts = |key| -> Vec<String> {
        section.text_list(key).unwrap_or_default().into_iter().map(|text| text.value).collect()
    };
    let (install, credential_variables, notes) = (texts("install"), texts("keys"), texts("notes"));
    let metadata = PresetMetadata {
        title: section.nonblank_text("title").map(|title| title.value).unwrap_or_default(),
        is_verified: section.flag("verified", false),
        install_instructions: install,
        credential_variables,
        login_command: section.nonblank_text("login").map(|login| login.value),
        notes,
    };
    section.report_unknown_keys();
    metadata
}

/// Reads the description, and ignores its faults.
pub(super) fn read_ignoring_faults(table: Option<&DeTable<'_>>) -> PresetMetadata {
    let reader = ConfigReader::new(Path::new(""), "", PathBuf::new(), &|_| None);
    let position =
        SourcePosition { key_path: "about".to_owned(), span: 0..0, may_quote_source: false };
    read(Section::new(&reader, position, table))
}
