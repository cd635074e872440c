//! The unit. What it says is said here and nowhere else: the one in `config/systemd` is printed by
//! `algonius service install --system --dry-run`.

use std::path::Path;

use super::fault::ServiceError;
use super::place::Owner;

/// What every unit of ours begins with.
const HEAD: &str = "# algonius as a service of systemd, as `algonius service install";

/// Whether this text is one of ours.
pub(super) fn is_ours(text: &str) -> bool {
    text.starts_with(HEAD)
}

/// A unit.
#[derive(Debug)]
pub(super) struct Unit {
    owner: Owner,
    program: String,
    config: String,
    path: String,
}

impl Unit {
    /// A unit that starts this program on this configuration, both absolute.
    pub(super) fn new(
        owner: Owner,
        program: &Path,
        config: &Path,
        path: String,
    ) -> Result<Self, ServiceError> {
        let program = said("the path of the program", program.to_str())?;
        let config = said("the path of the configuration", config.to_str())?;
        let path = said("PATH", Some(&path))?;
        Ok(Self { owner, program, config, path })
    }

    /// Where its configuration is.
    pub(super) fn config(&self) -> &str {
        &self.config
    }

    /// Where its agents are looked up.
    pub(super) fn path(&self) -> &str {
        &self.path
    }

    /// As systemd reads it.
    pub(super) fn text(&self) -> String {
        // Lines that are one path take no quotes.
        let (head, condition) = (self.head(), self.config.replace('%', "%%"));
        let start = [&self.program, "serve", "--config", &self.config].map(word).join(" ");
        let path = word(format!("PATH={}", self.path));
        let beside = Path::new(&self.config).with_file_name("environment");
        let beside = beside.display().to_string().replace('%', "%%");
        let Parts { order, user, folders, hardening, target } = self.parts();
        format!(
            "{head}\
             [Unit]\n\
             Description=Command-line agents as A2A agents\n\
             {order}\
             # Without a configuration nothing is started.\n\
             ConditionPathExists={condition}\n\
             \n\
             [Service]\n\
             # The service tells when its door is open, and when it drains.\n\
             Type=notify\n\
             {user}\
             ExecStart={start}\n\
             ExecReload=/bin/kill -HUP $MAINPID\n\
             Environment={path}\n\
             # Variables of secrets (`env_from`), one NAME=VALUE on a line; mode 600.\n\
             EnvironmentFile=-{beside}\n\
             {folders}\
             {LIFE}\n\
             {hardening}\n\
             [Install]\n\
             WantedBy={target}\n"
        )
    }

    fn head(&self) -> String {
        let (flag, user) = match self.owner {
            Owner::Machine => (" --system", ""),
            Owner::User => ("", " --user"),
        };
        format!(
            "{HEAD}{flag}` writes it.\n\
             #\n\
             # Another release, while agents go on working (docs/runtime.md): put it in the place of \
             the program,\n\
             # then\n\
             #\n\
             #   systemctl{user} kill --kill-whom=main --signal=SIGUSR2 algonius\n\
             \n"
        )
    }

    const fn parts(&self) -> Parts {
        match self.owner {
            Owner::Machine => MACHINE,
            Owner::User => USERS,
        }
    }
}

/// In what a unit of the machine and one of a user differ.
struct Parts {
    order: &'static str,
    user: &'static str,
    folders: &'static str,
    hardening: &'static str,
    target: &'static str,
}

const MACHINE: Parts = Parts {
    order: "After=network-online.target\nWants=network-online.target\n",
    user: "User=algonius\n",
    folders: "\
Environment=XDG_STATE_HOME=%S XDG_RUNTIME_DIR=%t
StateDirectory=algonius
StateDirectoryMode=0700
RuntimeDirectory=algonius
RuntimeDirectoryMode=0700
# The next life finds the wardens here.
RuntimeDirectoryPreserve=yes
",
    hardening: "\
# Control groups for agents with `resources`, from systemd 254 on. They also need
# ProtectControlGroups=no below. An older systemd must not delegate: it could not start the service
# again while an agent of an earlier life goes on.
# Delegate=memory pids
# DelegateSubgroup=algonius-service

# All of this holds for the agents too. What they often need is left open: home folders, new
# programs in memory, namespaces, the network. A private /tmp would go with each life.
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

/// The folders are those that the service chooses by itself. What needs namespaces of its own or
/// drops capabilities is left out: the systemd of a user may do neither.
const USERS: Parts = Parts {
    order: "",
    user: "",
    folders: "",
    hardening: "\
# All of this holds for the agents too. More is for a systemd with more rights.
NoNewPrivileges=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
",
    target: "default.target",
};

/// How a service of either begins and ends.
const LIFE: &str = "
# Only the service is told to end: its wardens see to the agents, or keep them for the next life.
KillMode=process
# Recovery of a long history is part of a start.
TimeoutStartSec=300
# Longer than drain_timeout and the grace of any agent.
TimeoutStopSec=120
# SIGUSR2 ends it well, and the next life is to follow.
Restart=always
RestartSec=100ms
# An agent that takes too much memory ends alone.
OOMPolicy=continue
LimitNOFILE=65536
# Processes are marked in this limit, which Linux does not enforce.
LimitLOCKS=infinity
";

/// What can stand in a unit.
fn said(what: &'static str, text: Option<&str>) -> Result<String, ServiceError> {
    let fits = |text: &&str| !text.chars().any(|char| char == '$' || char.is_control());
    text.filter(fits).map(str::to_owned).ok_or(ServiceError::Unfit { what })
}

/// One word of a line: `%` begins a name there, and blanks or quotes end a word.
fn word(text: impl AsRef<str>) -> String {
    let text = text.as_ref().replace('%', "%%");
    if !text.contains([' ', '"', '\'', '\\', ';', '#']) {
        return text;
    }
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests;
