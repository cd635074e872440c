//! Text of the unit, which is defined only here: the file in `config/systemd` is the output of `algonius service
//! install --system --dry-run`.

use std::ffi::OsStr;
use std::path::Path;

use super::install_paths::UnitOwner;
use crate::cli::error::service::ServiceCommandError;

/// First line of every unit that this command writes.
const UNIT_HEADER: &str = "# algonius as a service of systemd, as `algonius service install";

/// True if this command wrote the text.
pub(super) fn is_generated(text: &str) -> bool {
    text.starts_with(UNIT_HEADER)
}

/// Unit of the service.
#[derive(Debug)]
pub(super) struct Unit {
    owner: UnitOwner,
    program: String,
    config_file: String,
    search_path: String,
}

impl Unit {
    /// Creates a unit that starts this program on this configuration; both paths are absolute.
    pub(super) fn new(
        owner: UnitOwner,
        program: &Path,
        config_file: &Path,
        search_path: &OsStr,
    ) -> Result<Self, ServiceCommandError> {
        let program = validate_unit_value("the path of the program", program.to_str())?;
        let config_file =
            validate_unit_value("the path of the configuration", config_file.to_str())?;
        let search_path = validate_unit_value("PATH", search_path.to_str())?;
        Ok(Self { owner, program, config_file, search_path })
    }

    /// Returns the path of the configuration.
    pub(super) fn config_file(&self) -> &str {
        &self.config_file
    }

    /// Returns the search path for agents.
    pub(super) fn search_path(&self) -> &str {
        &self.search_path
    }

    /// Returns the text of the unit.
    pub(super) fn text(&self) -> String {
        // Lines that consist of one path must not be quoted.
        let (header, condition) = (self.header(), self.config_file.replace('%', "%%"));
        let start_command =
            [&self.program, "serve", "--config", &self.config_file].map(quote).join(" ");
        let path_variable = quote(format!("PATH={}", self.search_path));
        let environment_file = Path::new(&self.config_file).with_file_name("environment");
        let environment_file = environment_file.display().to_string().replace('%', "%%");
        let UnitVariant { dependencies: order, user, folders, hardening, target } = self.variant();
        format!(
            "{header}\
             [Unit]\n\
             Description=Command-line agents as A2A agents\n\
             {order}\
             # Without a configuration the service does not start.\n\
             ConditionPathExists={condition}\n\
             \n\
             [Service]\n\
             # The service notifies systemd when it accepts connections, and when it drains.\n\
             Type=notify\n\
             {user}\
             ExecStart={start_command}\n\
             ExecReload=/bin/kill -HUP $MAINPID\n\
             Environment={path_variable}\n\
             # Variables of secrets (`env_from`), one NAME=VALUE on a line; mode 600.\n\
             EnvironmentFile=-{environment_file}\n\
             {folders}\
             {LIFECYCLE_OPTIONS}\n\
             {hardening}\n\
             [Install]\n\
             WantedBy={target}\n"
        )
    }

    fn header(&self) -> String {
        let (flag, user) = match self.owner {
            UnitOwner::Machine => (" --system", ""),
            UnitOwner::User => ("", " --user"),
        };
        format!(
            "{UNIT_HEADER}{flag}` writes it.\n\
             #\n\
             # To upgrade while agents continue to work (docs/runtime.md), replace the program, then run\n\
             #\n\
             #   systemctl{user} kill --kill-whom=main --signal=SIGUSR2 algonius\n\
             \n"
        )
    }

    const fn variant(&self) -> UnitVariant {
        match self.owner {
            UnitOwner::Machine => MACHINE_UNIT,
            UnitOwner::User => USER_UNIT,
        }
    }
}

/// Parts in which the unit of the machine differs from that of a user.
struct UnitVariant {
    dependencies: &'static str,
    user: &'static str,
    folders: &'static str,
    hardening: &'static str,
    target: &'static str,
}

const MACHINE_UNIT: UnitVariant = UnitVariant {
    dependencies: "After=network-online.target\nWants=network-online.target\n",
    user: "User=algonius\n",
    folders: "\
Environment=XDG_STATE_HOME=%S XDG_RUNTIME_DIR=%t
StateDirectory=algonius
StateDirectoryMode=0700
RuntimeDirectory=algonius
RuntimeDirectoryMode=0700
# The next process of the service finds the process holders here.
RuntimeDirectoryPreserve=yes
",
    hardening: "\
# Control groups for agents, tools and MCP servers with `resources`, since systemd 254. They also need
# ProtectControlGroups=no below. An older systemd must not delegate: it could not restart the service
# while an agent of an earlier process runs.
# Delegate=memory pids
# DelegateSubgroup=algonius-service

# These options apply to the agents too. They permit what agents often need: home folders, new
# programs in memory, namespaces, the network. Each restart would remove a private /tmp.
NoNewPrivileges=yes
ProtectSystem=full
ProtectClock=yes
ProtectControlGroups=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
CapabilityBoundingSet=
",
    target: "multi-user.target",
};

/// Parts of a user's unit. The service selects its directories itself. Options that need namespaces or drop
/// capabilities are left out, because the systemd instance of a user may do neither.
const USER_UNIT: UnitVariant = UnitVariant {
    dependencies: "",
    user: "",
    folders: "",
    hardening: "\
# These options apply to the agents too. Further options need a systemd with more rights.
NoNewPrivileges=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
",
    target: "default.target",
};

/// Start and stop of the service, for both owners.
const LIFECYCLE_OPTIONS: &str = "
# Stops only the service: its process holders end the agents, or hold them for the next process.
KillMode=process
# Recovery of a long history is part of a start.
TimeoutStartSec=300
# Longer than drain_timeout and the grace period of any agent.
TimeoutStopSec=120
# After SIGUSR2 the service exits successfully, and systemd starts the next process.
Restart=always
RestartSec=100ms
# If an agent uses too much memory, only the agent ends.
OOMPolicy=continue
LimitNOFILE=65536
# The service labels processes in this limit, which Linux does not enforce.
LimitLOCKS=infinity
";

/// Checks that a unit can contain the value.
fn validate_unit_value(
    name: &'static str,
    text: Option<&str>,
) -> Result<String, ServiceCommandError> {
    let is_allowed = |text: &&str| !text.chars().any(|char| char == '$' || char.is_control());
    text.filter(is_allowed).map(str::to_owned).ok_or(ServiceCommandError::InvalidUnitValue { name })
}

/// Returns one quoted word of a line: `%` starts a specifier there, and blanks or quotes end a word.
fn quote(text: impl AsRef<str>) -> String {
    let text = text.as_ref().replace('%', "%%");
    if !text.contains([' ', '"', '\'', '\\', ';', '#']) {
        return text;
    }
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests;
