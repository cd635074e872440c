//! Search for the configuration file, in the same order for all commands.

use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::cli::service::install_paths::{DirectoryVariables, UnitOwner};
use crate::cli::service::installed_unit::InstalledUnit;

/// Reason why a file is the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ConfigOrigin {
    /// The command or `ALGONIUS_CONFIG` names it.
    Named,
    /// An installed unit starts the service on it.
    Unit,
    /// It is the file of the present user.
    User,
    /// It is the file of the machine.
    Machine,
    /// No file exists.
    Shipped,
}

impl ConfigOrigin {
    /// Clause that follows the name of the file.
    pub(crate) const fn clause(self) -> &'static str {
        match self {
            Self::Named => "named by the command or by ALGONIUS_CONFIG",
            Self::Unit => "the installed service is started on it",
            Self::User => "the file of this user",
            Self::Machine => "the file of this machine",
            Self::Shipped => "no configuration file exists",
        }
    }
}

/// Configuration that a command works with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ConfigLocation {
    /// `None` for the shipped configuration.
    pub(crate) file: Option<PathBuf>,
    pub(crate) origin: ConfigOrigin,
}

impl ConfigLocation {
    /// Searches in the documented order. `named_file` is the file of the command line or of `ALGONIUS_CONFIG`, which is
    /// used even if it does not exist.
    pub(crate) fn find(named_file: Option<&Path>) -> Self {
        if let Some(file) = named_file {
            return Self { file: Some(file.to_owned()), origin: ConfigOrigin::Named };
        }
        if let Some(unit) = InstalledUnit::find() {
            return Self { file: Some(unit.config_file), origin: ConfigOrigin::Unit };
        }
        let directories = DirectoryVariables::from_env();
        let defaults =
            [(UnitOwner::User, ConfigOrigin::User), (UnitOwner::Machine, ConfigOrigin::Machine)];
        let existing = defaults.into_iter().find_map(|(owner, origin)| {
            let file = owner.config_file(&directories).ok().filter(|file| file.exists())?;
            Some(Self { file: Some(file), origin })
        });
        existing.unwrap_or(Self { file: None, origin: ConfigOrigin::Shipped })
    }

    /// Returns the path of the present user's file, even if it does not exist; `None` if no home directory is known.
    pub(crate) fn user_file() -> Option<PathBuf> {
        UnitOwner::User.config_file(&DirectoryVariables::from_env()).ok()
    }

    /// Returns the file and the reason for its choice, in one line.
    pub(crate) fn describe(&self) -> String {
        match &self.file {
            Some(file) => format!("{} ({})", file.display(), self.origin.clause()),
            None => "the shipped one, because no configuration file exists".to_owned(),
        }
    }
}
