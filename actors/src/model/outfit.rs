//! What a program is given beside its arguments: a model, a home of its own, and a look at its version.

use std::collections::BTreeMap;
use std::path::PathBuf;

use regex::Regex;

use super::version::VersionRange;

/// What a program is given beside its arguments.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Outfit {
    /// What `{{ model }}` is.
    pub model: Option<String>,
    /// What `{{ home }}` is: its own home, or the service's.
    pub home: PathBuf,
    /// Its own home, where it has one.
    pub own: Option<Box<OwnHome>>,
    /// How it is asked for its version.
    pub version: Option<Box<VersionSpec>>,
    /// Which preset stands behind it.
    pub preset: Option<PresetName>,
}

/// The preset behind an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PresetName {
    /// Its name.
    pub name: String,
    /// Whether its command lines were run against the real program.
    pub is_verified: bool,
}

/// A home that no other agent uses. It holds what the program keeps: its login above all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnHome {
    /// Absolute path.
    pub path: PathBuf,
    /// Files that are written where there are none, by their paths in it.
    pub files: BTreeMap<String, String>,
}

/// How a program is asked for its version.
#[derive(Debug, Clone)]
pub struct VersionSpec {
    /// Its arguments then.
    pub args: Vec<String>,
    /// What of its answer is the version: the first group, or all that matches.
    pub regex: Regex,
    /// The versions that were tested.
    pub tested: Option<VersionRange>,
}

impl PartialEq for VersionSpec {
    fn eq(&self, other: &Self) -> bool {
        let Self { args, regex, tested } = self;
        *args == other.args && regex.as_str() == other.regex.as_str() && *tested == other.tested
    }
}
