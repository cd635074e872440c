//! Asks systemd, by its own command.

use std::path::Path;
use std::process::{Command, Stdio};

use super::fault::ServiceError;
use super::place::{NAME, Owner};

/// The systemd of the machine or of a user.
pub(super) struct Systemd {
    whose: &'static [&'static str],
    log: &'static str,
}

/// What systemd says about the service.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Told {
    /// Whether it runs, in systemd's words: `active (running)`.
    pub(super) active: String,
    /// Whether it is started by itself: `enabled`, `disabled`.
    pub(super) enabled: String,
    /// Its process, while it runs.
    pub(super) pid: Option<u32>,
    /// What the service itself has told last.
    pub(super) says: String,
}

impl Systemd {
    /// The one that is asked for, if it runs here.
    pub(super) fn of(owner: &Owner) -> Result<Self, ServiceError> {
        let runs = |folder: &Path| folder.is_dir();
        match owner {
            // As sd_booted(3) has it.
            Owner::Machine if runs(Path::new("/run/systemd/system")) => {
                Ok(Self { whose: &[], log: "journalctl -u algonius" })
            }
            Owner::User if users().is_some_and(|folder| runs(&folder)) => {
                Ok(Self { whose: &["--user"], log: "journalctl --user -u algonius" })
            }
            Owner::Machine => Err(ServiceError::NoSystemd { whose: "machine" }),
            Owner::User => Err(ServiceError::NoSystemd { whose: "user" }),
        }
    }

    /// How its log is read.
    pub(super) const fn log(&self) -> &'static str {
        self.log
    }

    /// Has it do something; what it printed.
    pub(super) fn ask(&self, words: &[&str]) -> Result<String, ServiceError> {
        let mut command = Command::new("systemctl");
        command.args(self.whose).args(words).stdin(Stdio::null());
        let told = |said: String| ServiceError::Refused {
            command: [&["systemctl"], self.whose, words].concat().join(" "),
            said,
        };
        let output = command.output().map_err(|error| told(error.to_string()))?;
        if !output.status.success() {
            return Err(told(String::from_utf8_lossy(&output.stderr).trim().to_owned()));
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// How the service is.
    pub(super) fn show(&self) -> Result<Told, ServiceError> {
        let properties = "--property=ActiveState,SubState,UnitFileState,MainPID,StatusText";
        Ok(read(&self.ask(&["show", properties, NAME])?))
    }
}

/// The folder that the systemd of a user has while it runs.
fn users() -> Option<std::path::PathBuf> {
    Some(Path::new(&std::env::var_os("XDG_RUNTIME_DIR")?).join("systemd"))
}

fn read(properties: &str) -> Told {
    let of = |name: &str| {
        let mut found = properties.lines().filter_map(|line| line.split_once('='));
        found.find(|(key, _)| *key == name).map_or("", |(_, value)| value)
    };
    Told {
        active: format!("{} ({})", of("ActiveState"), of("SubState")),
        enabled: of("UnitFileState").to_owned(),
        pid: of("MainPID").parse().ok().filter(|pid| *pid != 0),
        says: of("StatusText").to_owned(),
    }
}
