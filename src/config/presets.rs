//! Presets: tables of known agents, merged under the tables of the file.
//!
//! A preset is a file with `[about]`, which describes it, and `[agent]`, a part of an agent's table. Files in a folder
//! can replace the built-in presets and add others.

mod preset_merge;
mod preset_metadata;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{fs, io};

use toml::de::{DeTable, DeValue};

use super::table::{ConfigReader, ConfigTextFile};

pub(super) use preset_merge::{AgentPreset, MergedDocument, merge};
pub use preset_metadata::PresetMetadata;

/// Default folder of custom presets, beside the configuration.
pub(super) const PRESETS_DIR: &str = "presets";
/// File extension of a preset.
const PRESET_EXTENSION: &str = "toml";
/// Greatest size of a preset file in bytes.
const MAX_PRESET_BYTES: u64 = 256 << 10;

/// Presets that are built into the program.
const BUILT_IN_PRESETS: [(&str, &str); 12] = [
    ("aider", include_str!("../../config/presets/aider.toml")),
    ("claude-code", include_str!("../../config/presets/claude-code.toml")),
    ("codex", include_str!("../../config/presets/codex.toml")),
    ("continue", include_str!("../../config/presets/continue.toml")),
    ("copilot", include_str!("../../config/presets/copilot.toml")),
    ("cursor-agent", include_str!("../../config/presets/cursor-agent.toml")),
    ("gemini", include_str!("../../config/presets/gemini.toml")),
    ("generic", include_str!("../../config/presets/generic.toml")),
    ("goose", include_str!("../../config/presets/goose.toml")),
    ("llm", include_str!("../../config/presets/llm.toml")),
    ("opencode", include_str!("../../config/presets/opencode.toml")),
    ("qwen", include_str!("../../config/presets/qwen.toml")),
];

/// Preset as written.
struct PresetText {
    /// Path that faults name.
    file: PathBuf,
    text: Cow<'static, str>,
}

/// Available presets: the built-in ones, overridden by those of a folder.
pub(super) struct PresetCatalog {
    presets: BTreeMap<String, PresetText>,
    /// Folder of the files that were read, or could not be; `None` if only the built-in presets are available.
    folder: Option<PathBuf>,
    unreadable_files: BTreeMap<String, (PathBuf, io::Error)>,
    /// Reason why the files of the folder are unknown.
    folder_error: Option<io::Error>,
}

impl PresetCatalog {
    /// Opens the folder that the document names, relative to `folder`, and reads all presets.
    pub(super) fn read_configured(document: &DeTable<'_>, config_folder: &Path) -> Self {
        // The document is not checked yet: the presets are merged into it before any key is read.
        let server = document.get("server").and_then(|server| server.get_ref().as_table());
        let presets_folder = server.and_then(|server| server.get("presets"));
        let presets_folder = presets_folder
            .and_then(|presets_folder| presets_folder.get_ref().as_str())
            .unwrap_or(PRESETS_DIR);
        Self::read_folder(config_folder.join(presets_folder))
    }

    /// Returns the built-in presets.
    pub(super) fn built_in() -> Self {
        let built_in = BUILT_IN_PRESETS.iter().map(|(name, text)| {
            let file = PathBuf::from(format!("{name}.{PRESET_EXTENSION} (built in)"));
            ((*name).to_owned(), PresetText { file, text: Cow::Borrowed(text) })
        });
        let (presets, unreadable) = (built_in.collect(), BTreeMap::new());
        Self { presets, folder: None, unreadable_files: unreadable, folder_error: None }
    }

    /// Returns the built-in presets, and those of a folder.
    fn read_folder(folder: PathBuf) -> Self {
        let mut preset_catalog = Self::built_in();
        match list_preset_files(&folder) {
            Ok(files) => {
                files.into_iter().for_each(|(name, file)| preset_catalog.add_file(name, file));
            }
            Err(error) => preset_catalog.folder_error = Some(error),
        }
        Self { folder: Some(folder), ..preset_catalog }
    }

    fn add_file(&mut self, name: String, file: PathBuf) {
        match read_preset(&file) {
            Ok(text) => {
                let text = Cow::Owned(text);
                self.presets.insert(name, PresetText { file, text });
            }
            Err(error) => _ = self.unreadable_files.insert(name, (file, error)),
        }
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        self.presets.keys().map(String::as_str)
    }

    /// Registers the folder and its files, so that their changes count as changes of the configuration.
    pub(super) fn register_referenced_files(&self, reader: &ConfigReader<'_>) {
        let Some(folder) = &self.folder else { return };
        // The folder is registered too, so that a new file is noticed.
        reader.add_referenced_file(folder.clone());
        self.files().for_each(|file| reader.add_referenced_file(file.file));
    }

    /// Returns the files of the folder, whether an agent uses them or not.
    pub(super) fn files(&self) -> impl Iterator<Item = ConfigTextFile> {
        let is_in_folder = |preset: &&PresetText| {
            self.folder.as_ref().is_some_and(|folder| preset.file.starts_with(folder))
        };
        let readable_files = self.presets.values().filter(is_in_folder).map(|preset| {
            let text = Some(preset.text.clone().into_owned());
            ConfigTextFile { file: preset.file.clone(), text }
        });
        let unreadable_files = self.unreadable_files.values();
        let unreadable_files =
            unreadable_files.map(|(file, _)| ConfigTextFile { file: file.clone(), text: None });
        readable_files.chain(unreadable_files)
    }
}

/// Returns the files of the presets of a folder by name. A folder that does not exist has none.
fn list_preset_files(folder: &Path) -> io::Result<Vec<(String, PathBuf)>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut files = Vec::new();
    for entry in entries {
        let file = entry?.path();
        let is_preset = file.extension().is_some_and(|extension| extension == PRESET_EXTENSION);
        if let Some(stem) = file.file_stem().filter(|_| is_preset) {
            // A configuration cannot name a file whose name is not UTF-8, but a list has it.
            files.push((stem.to_string_lossy().into_owned(), file));
        }
    }
    Ok(files)
}

fn read_preset(file: &Path) -> io::Result<String> {
    if file.file_name().is_some_and(|name| name.to_str().is_none()) {
        return Err(io::Error::other("its name is not UTF-8"));
    }
    if fs::metadata(file)?.len() > MAX_PRESET_BYTES {
        return Err(io::Error::other("it is too long for a preset"));
    }
    fs::read_to_string(file)
}

/// Available preset, for display.
#[derive(Debug, Clone)]
pub struct PresetSummary {
    /// Name of the preset.
    pub name: String,
    /// Description of the preset.
    pub metadata: PresetMetadata,
    /// Program, if the preset names one.
    pub command: Option<String>,
    /// Path of its file, unless it is built in.
    pub file: Option<PathBuf>,
    /// Reason why its file cannot be read.
    pub read_error: Option<String>,
}

/// Returns every preset that a configuration could name, by name: `folder` is the folder of custom ones. A preset that
/// is unreadable or no TOML has only a name and a file.
///
/// # Errors
/// Fails if the folder exists and cannot be read.
pub fn available_presets(folder: Option<&Path>) -> io::Result<Vec<PresetSummary>> {
    let preset_catalog = match folder {
        Some(folder) => PresetCatalog::read_folder(folder.to_owned()),
        None => PresetCatalog::built_in(),
    };
    if let Some(error) = preset_catalog.folder_error {
        return Err(error);
    }
    let unreadable = preset_catalog.unreadable_files;
    let is_readable = |(name, _): &(&String, &PresetText)| !unreadable.contains_key(*name);
    let readable = preset_catalog.presets.iter().filter(is_readable);
    let mut summaries: Vec<_> =
        readable.map(|(name, preset)| PresetSummary::from_text(name, preset)).collect();
    summaries.extend(unreadable.into_iter().map(|(name, (file, error))| PresetSummary {
        name,
        metadata: PresetMetadata::default(),
        command: None,
        file: Some(file),
        read_error: Some(error.to_string()),
    }));
    summaries.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(summaries)
}

impl PresetSummary {
    fn from_text(name: &str, preset: &PresetText) -> Self {
        let document = DeTable::parse(&preset.text).ok();
        let section =
            |key| document.as_ref().and_then(|document| child_table(document.get_ref(), key));
        let command = section("agent").and_then(|agent| agent.get("command"));
        Self {
            name: name.to_owned(),
            metadata: preset_metadata::read_ignoring_faults(section("about")),
            command: command.and_then(|it| it.get_ref().as_str()).map(str::to_owned),
            file: matches!(preset.text, Cow::Owned(_)).then(|| preset.file.clone()),
            read_error: None,
        }
    }
}

/// Returns a table below a key.
fn child_table<'t, 'i>(parent: &'t DeTable<'i>, key: &str) -> Option<&'t DeTable<'i>> {
    parent.get(key).and_then(|value| DeValue::as_table(value.get_ref()))
}
