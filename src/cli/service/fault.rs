//! Why a service could not be given to systemd.

use std::io;
use std::path::PathBuf;

/// Why systemd was not to be had, or did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub(in crate::cli) enum ServiceError {
    /// Nobody to ask.
    #[error(
        "no systemd of this {whose} answers here\n  hint: have `algonius serve` started by what \
         starts services on this machine; `algonius service install --dry-run` prints the unit \
         for another one (no-systemd)"
    )]
    NoSystemd { whose: &'static str },
    /// It was asked and refused.
    #[error("`{command}` failed: {said} (systemd-refused)")]
    Refused { command: String, said: String },
    /// Somebody else wrote the unit.
    #[error(
        "{} was not written by this command\n  hint: look at it, then remove it, or install \
         with --force (unit-foreign)", file.display()
    )]
    Foreign { file: PathBuf },
    /// There is no unit.
    #[error(
        "there is no {}\n  hint: `algonius service install` writes it (unit-missing)",
        file.display()
    )]
    NotInstalled { file: PathBuf },
    /// There is nothing that the service could be started with.
    #[error(
        "there is no configuration {}\n  hint: `algonius init FOLDER` writes one, --config names \
         another (configuration-missing)", file.display()
    )]
    NoConfiguration { file: PathBuf },
    /// The user that the unit names.
    #[error(
        "there is no user `{user}`\n  hint: `useradd --system --create-home {user}` makes it \
         (user-missing)"
    )]
    NoUser { user: &'static str },
    /// Something that a unit cannot say.
    #[error("{what} cannot stand in a unit: it has a `$` or a character of control (unit-unfit)")]
    Unfit { what: &'static str },
    /// The user has no folder for units.
    #[error("neither XDG_CONFIG_HOME nor HOME is set (home-missing)")]
    NoHome,
    /// The system does not tell.
    #[error("this program does not know where it is")]
    Unknown { source: io::Error },
}

impl ServiceError {
    /// The exit code, as the help lists them.
    pub(in crate::cli) const fn exit_code(&self) -> u8 {
        match self {
            Self::NoConfiguration { .. } | Self::Unfit { .. } => 4,
            Self::NoSystemd { .. }
            | Self::Refused { .. }
            | Self::Foreign { .. }
            | Self::NotInstalled { .. }
            | Self::NoUser { .. }
            | Self::NoHome
            | Self::Unknown { .. } => 1,
        }
    }
}
