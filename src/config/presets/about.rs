//! `[about]`: what a preset says of itself, for whoever wants to use it.

use std::path::{Path, PathBuf};

use toml::de::DeTable;

use super::super::reader::{Place, Reader};
use super::super::section::Section;

/// What a preset says of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct About {
    /// What people call the agent.
    pub title: String,
    /// Whether its command lines were run against the real program.
    pub is_verified: bool,
    /// How the program is installed, a line each.
    pub install: Vec<String>,
    /// Variables of which one is enough to be let in by the model.
    pub keys: Vec<String>,
    /// What to type in the agent's home to log in without one.
    pub login: Option<String>,
    /// What else is worth knowing, a line each.
    pub notes: Vec<String>,
}

/// Reads it; what is wrong with it is told.
pub(super) fn read(mut section: Section<'_>) -> About {
    let mut texts = |key| -> Vec<String> {
        section.texts(key).unwrap_or_default().into_iter().map(|text| text.value).collect()
    };
    let (install, keys, notes) = (texts("install"), texts("keys"), texts("notes"));
    let about = About {
        title: section.nonblank("title").map(|title| title.value).unwrap_or_default(),
        is_verified: section.flag("verified", false),
        install,
        keys,
        login: section.nonblank("login").map(|login| login.value),
        notes,
    };
    section.finish();
    about
}

/// Reads it; what is wrong with it is left out.
pub(super) fn quietly(table: Option<&DeTable<'_>>) -> About {
    let reader = Reader::new(Path::new(""), "", PathBuf::new(), &|_| None);
    let top = Place { path: "about".to_owned(), span: 0..0, shown: false };
    read(Section::new(&reader, top, table))
}
