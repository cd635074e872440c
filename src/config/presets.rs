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

use super::table::ConfigReader;

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
    /// Folder of the files that were read, or could not be.
    folder: PathBuf,
    unreadable: BTreeMap<String, (PathBuf, io::Error)>,
}

impl PresetCatalog {
    /// Opens the folder that the document names, relative to `folder`, and reads all presets.
    pub(super) fn open(document: &DeTable<'_>, folder: &Path) -> Self {
        // The document is not checked yet: the presets are merged into it before any key is read.
        let server = document.get("server").and_then(|server| server.get_ref().as_table());
        let presets_folder = server.and_then(|server| server.get("presets"));
        let presets_folder = presets_folder
            .and_then(|presets_folder| presets_folder.get_ref().as_str())
            .unwrap_or(PRESETS_DIR);
        Self::read(folder.join(presets_folder))
    }

    /// Returns the built-in presets, and those of a folder.
    fn read(folder: PathBuf) -> Self {
        let built_in = BUILT_IN_PRESETS.iter().map(|(name, text)| {
            let file = PathBuf::from(format!("{name}.{PRESET_EXTENSION} (built in)"));
            ((*name).to_owned(), PresetText { file, text: Cow::Borrowed(text) })
        });
        let mut preset_catalog =
            Self { presets: built_in.collect(), folder, unreadable: BTreeMap::new() };
        for (name, file) in preset_files(&preset_catalog.folder) {
            match read_preset(&file) {
                Ok(text) => {
                    let text = Cow::Owned(text);
                    preset_catalog.presets.insert(name, PresetText { file, text });
                }
                Err(error) => _ = preset_catalog.unreadable.insert(name, (file, error)),
            }
        }
        preset_catalog
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        self.presets.keys().map(String::as_str)
    }

    /// Registers the folder, so that its changes count as changes of the configuration.
    pub(super) fn register_files(&self, reader: &ConfigReader<'_>) {
        // The folder is registered too, so that a new file is noticed.
        reader.register_file(self.folder.clone());
        for (_, file) in preset_files(&self.folder) {
            reader.register_file(file);
        }
    }
}

/// Returns the presets of a folder by name.
fn preset_files(folder: &Path) -> Vec<(String, PathBuf)> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let files = entries.map(|entry| entry.path()).filter_map(|file| {
        let is_preset = file.extension().is_some_and(|extension| extension == PRESET_EXTENSION);
        let name = file.file_stem().filter(|_| is_preset)?.to_str()?.to_owned();
        Some((name, file))
    });
    files.collect()
}

fn read_preset(file: &Path) -> io::Result<String> {
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
}

/// Returns every preset that a configuration could name: `folder` is the folder of custom ones. An unreadable preset is
/// omitted; a configuration that names it gets the reason.
#[must_use]
pub fn available_presets(folder: Option<&Path>) -> Vec<PresetSummary> {
    let preset_catalog = PresetCatalog::read(folder.map_or_else(PathBuf::new, Path::to_owned));
    let summary = |(name, preset): (&String, &PresetText)| {
        let document = DeTable::parse(&preset.text).ok()?;
        let about = document.get_ref().get("about").and_then(|about| about.get_ref().as_table());
        let agent = document.get_ref().get("agent").and_then(|agent| agent.get_ref().as_table());
        let command = agent.and_then(|agent| agent.get("command"));
        Some(PresetSummary {
            name: name.clone(),
            metadata: preset_metadata::read_ignoring_faults(about),
            command: command.and_then(|it| it.get_ref().as_str()).map(str::to_owned),
            file: matches!(preset.text, Cow::Owned(_)).then(|| preset.file.clone()),
        })
    };
    preset_catalog.presets.iter().filter_map(summary).collect()
}

/// Returns a table below a key.
fn table<'t, 'i>(parent: &'t DeTable<'i>, key: &str) -> Option<&'t DeTable<'i>> {
    parent.get(key).and_then(|value| DeValue::as_table(value.get_ref()))
}
