//! Owner of a service, and the paths of its files.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use nix::unistd::User;

use crate::cli::error::service::ServiceCommandError;

/// Name of the unit.
pub(super) const UNIT_NAME: &str = "algonius.service";
/// User under which a service of the machine runs.
pub(super) const SERVICE_USER: &str = "algonius";
/// Search path of a service of the machine.
const SYSTEM_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Owner of a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::cli) enum UnitOwner {
    /// The machine: the service starts at boot.
    Machine,
    /// The present user: the service starts at login.
    User,
}

/// Directories from the environment.
#[derive(Debug, Default)]
pub(in crate::cli) struct DirectoryVariables {
    pub(super) config_home: Option<PathBuf>,
    pub(super) search_path: Option<OsString>,
}

impl DirectoryVariables {
    pub(in crate::cli) fn from_env() -> Self {
        let folder = |name| std::env::var_os(name).map(PathBuf::from).filter(|it| it.is_absolute());
        let config_home =
            folder("XDG_CONFIG_HOME").or_else(|| Some(folder("HOME")?.join(".config")));
        Self { config_home, search_path: std::env::var_os("PATH") }
    }

    fn path_in_config_home(&self, relative_path: &str) -> Result<PathBuf, ServiceCommandError> {
        let home = self.config_home.as_ref().ok_or(ServiceCommandError::NoHome)?;
        Ok(home.join(relative_path))
    }
}

impl UnitOwner {
    /// Returns the path of the unit.
    pub(super) fn unit_file(
        &self,
        directories: &DirectoryVariables,
    ) -> Result<PathBuf, ServiceCommandError> {
        match self {
            Self::Machine => Ok(Path::new("/etc/systemd/system").join(UNIT_NAME)),
            Self::User => directories.path_in_config_home(&format!("systemd/user/{UNIT_NAME}")),
        }
    }

    /// Returns the default path of the configuration.
    pub(in crate::cli) fn config_file(
        &self,
        directories: &DirectoryVariables,
    ) -> Result<PathBuf, ServiceCommandError> {
        match self {
            Self::Machine => Ok(PathBuf::from("/etc/algonius/supervisor.toml")),
            Self::User => directories.path_in_config_home("algonius/supervisor.toml"),
        }
    }

    /// Returns the search path for agents. The agents of a user are in the search path of that user's terminal,
    /// which systemd does not know.
    pub(super) fn search_path(&self, directories: &DirectoryVariables) -> OsString {
        match (self, &directories.search_path) {
            (Self::User, Some(path)) => path.clone(),
            (Self::User, None) | (Self::Machine, _) => SYSTEM_PATH.into(),
        }
    }

    /// Checks that the user of the service exists.
    pub(super) fn check_user_exists(&self) -> Result<(), ServiceCommandError> {
        match self {
            Self::Machine if !matches!(User::from_name(SERVICE_USER), Ok(Some(_))) => {
                Err(ServiceCommandError::NoUser { user: SERVICE_USER })
            }
            Self::Machine | Self::User => Ok(()),
        }
    }

    /// Returns a remark to print after an installation.
    pub(super) const fn install_note(&self) -> Option<&'static str> {
        match self {
            Self::Machine => None,
            Self::User => Some(
                "it ends when you log out; `loginctl enable-linger` keeps it, and starts it at boot",
            ),
        }
    }
}
