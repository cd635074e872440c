//! Errors of `algonius service`.

use std::io;
use std::path::PathBuf;

/// Reason why systemd is not available or did not execute the request.
#[derive(Debug, thiserror::Error)]
pub(in crate::cli) enum ServiceCommandError {
    /// systemd does not run for this user or machine.
    #[error(
        "no systemd of this {owner} answers here\n  hint: start `algonius serve` by the service \
         manager of this machine; `algonius service install --dry-run` prints the unit \
         for another one (no-systemd)"
    )]
    NoSystemd { owner: &'static str },
    /// systemd refused the request.
    #[error("`{command}` failed: {message} (systemd-refused)")]
    SystemctlFailed { command: String, message: String },
    /// The unit was written by another program.
    #[error(
        "{} was not written by this command\n  hint: inspect it, then remove it, or install \
         with --force (unit-foreign)", file.display()
    )]
    ForeignUnit { file: PathBuf },
    /// The unit does not exist.
    #[error(
        "there is no {}\n  hint: `algonius service install` writes it (unit-missing)",
        file.display()
    )]
    NotInstalled { file: PathBuf },
    /// The configuration for the service does not exist.
    #[error(
        "there is no configuration {}\n  hint: `algonius init FOLDER` writes one, --config names \
         another (configuration-missing)", file.display()
    )]
    NoConfiguration { file: PathBuf },
    /// The user of the unit does not exist.
    #[error(
        "there is no user `{user}`\n  hint: `useradd --system --create-home {user}` makes it \
         (user-missing)"
    )]
    NoUser { user: &'static str },
    /// A unit cannot contain the value.
    #[error(
        "{name} cannot be written into a unit: it contains `$` or a control character (unit-unfit)"
    )]
    InvalidUnitValue { name: &'static str },
    /// The user has no directory for units.
    #[error("neither XDG_CONFIG_HOME nor HOME is set (home-missing)")]
    NoHome,
    /// The system does not report the path of this program.
    #[error("the path of this program is unknown")]
    UnknownProgramPath { source: io::Error },
}

impl ServiceCommandError {
    /// Returns the exit code that the help lists.
    pub(in crate::cli) const fn exit_code(&self) -> u8 {
        match self {
            Self::NoConfiguration { .. } | Self::InvalidUnitValue { .. } => 4,
            Self::NoSystemd { .. }
            | Self::SystemctlFailed { .. }
            | Self::ForeignUnit { .. }
            | Self::NotInstalled { .. }
            | Self::NoUser { .. }
            | Self::NoHome
            | Self::UnknownProgramPath { .. } => 1,
        }
    }
}
