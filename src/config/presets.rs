//! Presets: tables of agents that are known, laid under the tables of the file.
//!
//! A preset is a file with `[about]`, which says what it is, and `[agent]`, a part of an agent's table.
//! Those that come with the program can be replaced, and others added, by files in a folder.

mod about;
mod lay;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use toml::de::{DeTable, DeValue};

use super::reader::Reader;

pub use about::About;
pub(super) use lay::{Behind, Laid, lay};

/// Where presets of one's own are when no configuration says, beside the configuration.
pub(super) const FOLDER: &str = "presets";
/// What a file of a preset ends in.
const ENDING: &str = "toml";
/// Longest file of a preset, in bytes.
const LONGEST: u64 = 256 << 10;

/// The presets that come with the program.
const BUILT_IN: [(&str, &str); 12] = [
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

/// A preset as written.
struct Preset {
    /// As faults name it.
    file: PathBuf,
    text: Cow<'static, str>,
}

/// The presets that can be named: those of the program, and those of a folder over them.
pub(super) struct Shelf {
    presets: BTreeMap<String, Preset>,
    /// The folder, with the files that were read, or could not be.
    folder: PathBuf,
    unread: BTreeMap<String, (PathBuf, io::Error)>,
}

impl Shelf {
    /// What the document says of the folder, seen from `beside`. Reads all that is there.
    pub(super) fn open(document: &DeTable<'_>, beside: &Path) -> Self {
        let server = document.get("server").and_then(|server| server.get_ref().as_table());
        let named = server.and_then(|server| server.get("presets"));
        let named = named.and_then(|named| named.get_ref().as_str()).unwrap_or(FOLDER);
        Self::read(beside.join(named))
    }

    /// The presets of the program, and those of a folder.
    fn read(folder: PathBuf) -> Self {
        let built_in = BUILT_IN.iter().map(|(name, text)| {
            let file = PathBuf::from(format!("{name}.{ENDING} (built in)"));
            ((*name).to_owned(), Preset { file, text: Cow::Borrowed(text) })
        });
        let mut shelf = Self { presets: built_in.collect(), folder, unread: BTreeMap::new() };
        for (name, file) in files(&shelf.folder) {
            match text(&file) {
                Ok(text) => {
                    let text = Cow::Owned(text);
                    shelf.presets.insert(name, Preset { file, text });
                }
                Err(error) => _ = shelf.unread.insert(name, (file, error)),
            }
        }
        shelf
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        self.presets.keys().map(String::as_str)
    }

    /// Has changes of the folder seen as changes of the configuration.
    pub(super) fn watched(&self, reader: &Reader<'_>) {
        // One that is made later is seen too.
        reader.keep_file(self.folder.clone());
        for (_, file) in files(&self.folder) {
            reader.keep_file(file);
        }
    }
}

/// The presets of a folder, by their names.
fn files(folder: &Path) -> Vec<(String, PathBuf)> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let files = entries.map(|entry| entry.path()).filter_map(|file| {
        let is_preset = file.extension().is_some_and(|ending| ending == ENDING);
        let name = file.file_stem().filter(|_| is_preset)?.to_str()?.to_owned();
        Some((name, file))
    });
    files.collect()
}

fn text(file: &Path) -> io::Result<String> {
    if fs::metadata(file)?.len() > LONGEST {
        return Err(io::Error::other("it is too long for a preset"));
    }
    fs::read_to_string(file)
}

/// A preset, as it is shown to whoever looks for one.
#[derive(Debug, Clone)]
pub struct Offer {
    /// Its name.
    pub name: String,
    /// What it says of itself.
    pub about: About,
    /// The program, where it names one.
    pub command: Option<String>,
    /// Where it is from, unless it came with the program.
    pub file: Option<PathBuf>,
}

/// Every preset that a configuration could name: `folder` is where its own are. One that cannot be read
/// is left out; whoever names it is told why.
#[must_use]
pub fn offers(folder: Option<&Path>) -> Vec<Offer> {
    let shelf = Shelf::read(folder.map_or_else(PathBuf::new, Path::to_owned));
    let offer = |(name, preset): (&String, &Preset)| {
        let document = DeTable::parse(&preset.text).ok()?;
        let about = document.get_ref().get("about").and_then(|about| about.get_ref().as_table());
        let agent = document.get_ref().get("agent").and_then(|agent| agent.get_ref().as_table());
        let command = agent.and_then(|agent| agent.get("command"));
        Some(Offer {
            name: name.clone(),
            about: about::quietly(about),
            command: command.and_then(|it| it.get_ref().as_str()).map(str::to_owned),
            file: matches!(preset.text, Cow::Owned(_)).then(|| preset.file.clone()),
        })
    };
    shelf.presets.iter().filter_map(offer).collect()
}

/// A table below a key.
fn table<'t, 'i>(of: &'t DeTable<'i>, key: &str) -> Option<&'t DeTable<'i>> {
    of.get(key).and_then(|value| DeValue::as_table(value.get_ref()))
}
