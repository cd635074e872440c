//! Whose service it is, and where the things of such a service are.

use std::path::{Path, PathBuf};

use nix::unistd::User;

use super::fault::ServiceError;

/// The name of the unit.
pub(super) const NAME: &str = "algonius.service";
/// The user that a service of the machine runs as.
pub(super) const USER: &str = "algonius";
/// Where a service of the machine finds programs.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Whose service it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Owner {
    /// The machine's: started when it boots.
    Machine,
    /// The present user's: started when that one logs in.
    User,
}

/// What the environment says about folders.
#[derive(Debug, Default)]
pub(super) struct Environment {
    pub(super) config_home: Option<PathBuf>,
    pub(super) path: Option<String>,
}

impl Environment {
    pub(super) fn of_this_process() -> Self {
        let folder = |name| std::env::var_os(name).map(PathBuf::from).filter(|it| it.is_absolute());
        let config_home =
            folder("XDG_CONFIG_HOME").or_else(|| Some(folder("HOME")?.join(".config")));
        Self { config_home, path: std::env::var("PATH").ok() }
    }

    fn below(&self, rest: &str) -> Result<PathBuf, ServiceError> {
        let home = self.config_home.as_ref().ok_or(ServiceError::NoHome)?;
        Ok(home.join(rest))
    }
}

impl Owner {
    /// Where the unit stands.
    pub(super) fn unit_file(&self, here: &Environment) -> Result<PathBuf, ServiceError> {
        match self {
            Self::Machine => Ok(Path::new("/etc/systemd/system").join(NAME)),
            Self::User => here.below(&format!("systemd/user/{NAME}")),
        }
    }

    /// Where the configuration is, when nobody says.
    pub(super) fn configuration(&self, here: &Environment) -> Result<PathBuf, ServiceError> {
        match self {
            Self::Machine => Ok(PathBuf::from("/etc/algonius/supervisor.toml")),
            Self::User => here.below("algonius/supervisor.toml"),
        }
    }

    /// Where agents are looked up. A user's agents are where that user finds them at a terminal,
    /// which systemd would not know.
    pub(super) fn path(&self, here: &Environment) -> String {
        match (self, &here.path) {
            (Self::User, Some(path)) => path.clone(),
            (Self::User, None) | (Self::Machine, _) => PATH.to_owned(),
        }
    }

    /// Checks that the user of the service is there.
    pub(super) fn exists(&self) -> Result<(), ServiceError> {
        match self {
            Self::Machine if !matches!(User::from_name(USER), Ok(Some(_))) => {
                Err(ServiceError::NoUser { user: USER })
            }
            Self::Machine | Self::User => Ok(()),
        }
    }

    /// What is good to know after an installation.
    pub(super) const fn remark(&self) -> Option<&'static str> {
        match self {
            Self::Machine => None,
            Self::User => Some(
                "it ends when you log out; `loginctl enable-linger` keeps it, and starts it at boot",
            ),
        }
    }
}
