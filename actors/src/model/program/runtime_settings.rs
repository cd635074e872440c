//! Runtime settings of a program beside its arguments: the model, the home folder and the version check.

use std::collections::BTreeMap;
use std::path::PathBuf;

use regex::Regex;

use super::version::VersionRange;

/// Runtime settings of a program beside its arguments.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ProgramRuntimeSettings {
    /// Value of `{{ model }}`.
    pub model: Option<String>,
    /// Value of `{{ home }}`: the home folder of the agent, or that of the service.
    pub home: PathBuf,
    /// Home folder of the agent, if it has one.
    pub agent_home: Option<Box<AgentHome>>,
    /// Version check of the program.
    pub version_check: Option<Box<VersionCheckSpec>>,
    /// Preset on which the agent is based.
    pub preset: Option<PresetReference>,
}

/// Preset of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PresetReference {
    /// Name of the preset.
    pub name: String,
    /// True if the preset's command lines were tested against the real program.
    pub is_verified: bool,
}

/// Home folder that only one agent uses. It holds the program's state, above all its login.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentHome {
    /// Absolute path.
    pub path: PathBuf,
    /// Files that are created if they do not exist, by their path in the home folder.
    pub initial_files: BTreeMap<String, String>,
}

/// Version check of a program.
#[derive(Debug, Clone)]
pub struct VersionCheckSpec {
    /// Arguments of the version check.
    pub args: Vec<String>,
    /// Pattern that extracts the version from the output: the first group, or the whole match.
    pub regex: Regex,
    /// Range of tested versions.
    pub tested_versions: Option<VersionRange>,
}

impl PartialEq for VersionCheckSpec {
    fn eq(&self, other: &Self) -> bool {
        let Self { args, regex, tested_versions: tested } = self;
        *args == other.args
            && regex.as_str() == other.regex.as_str()
            && *tested == other.tested_versions
    }
}
