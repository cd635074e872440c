//! Calls of systemd by its own command.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;
use tokio::time::timeout;

use super::install_paths::{UNIT_NAME, UnitOwner};
use crate::cli::error::service::ServiceCommandError;

/// Time limit for a query. A change has none: a stop may wait for the drain, and a start for the first reply.
const QUERY_TIMEOUT: Duration = Duration::from_secs(5);

/// systemd instance of the machine or of a user.
pub(super) struct Systemd {
    scope_args: &'static [&'static str],
    log_command: &'static str,
}

/// State of the service in systemd.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct SystemdState {
    /// Activity in the words of systemd: `active (running)`.
    pub(super) active_state: String,
    /// Automatic start: `enabled`, `disabled`.
    pub(super) enabled_state: String,
    /// Process id, while the service runs.
    pub(super) pid: Option<u32>,
    /// Last status text of the service.
    pub(super) status_text: String,
}

impl Systemd {
    /// Returns the requested instance, if it runs here.
    pub(super) fn for_owner(owner: &UnitOwner) -> Result<Self, ServiceCommandError> {
        let is_running = |folder: &Path| folder.is_dir();
        match owner {
            // Same check as in sd_booted(3).
            UnitOwner::Machine if is_running(Path::new("/run/systemd/system")) => {
                Ok(Self { scope_args: &[], log_command: "journalctl -u algonius" })
            }
            UnitOwner::User if user_runtime_dir().is_some_and(|folder| is_running(&folder)) => {
                Ok(Self { scope_args: &["--user"], log_command: "journalctl --user -u algonius" })
            }
            UnitOwner::Machine => Err(ServiceCommandError::NoSystemd { owner: "machine" }),
            UnitOwner::User => Err(ServiceCommandError::NoSystemd { owner: "user" }),
        }
    }

    /// Returns the command that shows the log.
    pub(super) const fn log_command(&self) -> &'static str {
        self.log_command
    }

    /// Runs a command that changes the state of systemd.
    pub(super) async fn run_systemctl(
        &self,
        arguments: &[&str],
    ) -> Result<(), ServiceCommandError> {
        self.systemctl_output(arguments).await.map(drop)
    }

    /// Returns the state of the service.
    pub(super) async fn query_state(&self) -> Result<SystemdState, ServiceCommandError> {
        let properties = "--property=ActiveState,SubState,UnitFileState,MainPID,StatusText";
        let arguments = ["show", properties, UNIT_NAME];
        let output = timeout(QUERY_TIMEOUT, self.systemctl_output(&arguments)).await;
        let output = output.unwrap_or_else(|_elapsed| {
            let message = format!("it did not answer within {} s", QUERY_TIMEOUT.as_secs());
            Err(self.systemctl_error(&arguments, message))
        });
        Ok(parse_properties(&output?))
    }

    /// Runs `systemctl` to its end and returns its output. If the future is dropped earlier, the command is killed.
    async fn systemctl_output(&self, arguments: &[&str]) -> Result<String, ServiceCommandError> {
        let mut command = Command::new("systemctl");
        command.args(self.scope_args).args(arguments).stdin(Stdio::null()).kill_on_drop(true);
        let output = command.output().await;
        let output = output.map_err(|error| self.systemctl_error(arguments, error.to_string()))?;
        if !output.status.success() {
            let message = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            return Err(self.systemctl_error(arguments, message));
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    fn systemctl_error(&self, arguments: &[&str], message: String) -> ServiceCommandError {
        let command = [&["systemctl"], self.scope_args, arguments].concat().join(" ");
        ServiceCommandError::SystemctlFailed { command, message }
    }
}

/// Returns the runtime directory of a user's systemd instance.
fn user_runtime_dir() -> Option<std::path::PathBuf> {
    Some(Path::new(&std::env::var_os("XDG_RUNTIME_DIR")?).join("systemd"))
}

fn parse_properties(properties: &str) -> SystemdState {
    let property = |name: &str| {
        let mut pairs = properties.lines().filter_map(|line| line.split_once('='));
        pairs.find(|(key, _)| *key == name).map_or("", |(_, value)| value)
    };
    SystemdState {
        active_state: format!("{} ({})", property("ActiveState"), property("SubState")),
        enabled_state: property("UnitFileState").to_owned(),
        pid: property("MainPID").parse().ok().filter(|pid| *pid != 0),
        status_text: property("StatusText").to_owned(),
    }
}
