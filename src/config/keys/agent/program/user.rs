//! `user`: user of an agent's program.

use std::collections::BTreeMap;
use std::path::PathBuf;

use algonius_actors::model::program::{EnvVariable, UnixUser, VariableSecrecy};
use nix::unistd::{self, geteuid};

use crate::config::diagnostics::{Severity, new_diagnostic};
use crate::config::table::Section;

/// Keyword for a user that the service picks from `server.agent_users`.
const DYNAMIC_USER: &str = "dynamic";

/// User of a program.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) enum RunAs {
    /// The service's own user.
    #[default]
    Service,
    /// A user of the system.
    Named(SystemUser),
    /// A user from the configured range.
    Dynamic,
}

/// Account of the system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SystemUser {
    name: String,
    user: UnixUser,
    home: PathBuf,
}

/// Reads `user`. A fault of the machine has the severity `missing_severity`.
pub(crate) fn read(section: &mut Section<'_>, missing_severity: Severity) -> RunAs {
    let Some(name) = section.nonblank("user") else { return RunAs::Service };
    if name.value == DYNAMIC_USER {
        return RunAs::Dynamic;
    }
    let reader = section.reader;
    let account = match unistd::User::from_name(&name.value) {
        Ok(Some(account)) => account,
        Ok(None) => {
            let diagnostic = new_diagnostic("there is no such user on this machine").with_hint(
                "make it, as by `useradd --system --create-home NAME`, or write \"dynamic\"",
            );
            reader.record_fault(missing_severity, &name.position, diagnostic);
            return RunAs::Service;
        }
        Err(errno) => {
            reader.record_fault(
                missing_severity,
                &name.position,
                new_diagnostic(format!("cannot be looked up: {errno}")),
            );
            return RunAs::Service;
        }
    };
    if account.uid.is_root() {
        reader.error(&name.position, "must not be root: root can do whatever the service can");
    } else if account.uid == geteuid() {
        reader.error(&name.position, "is the service's own user: leave it out");
    }
    RunAs::Named(SystemUser {
        name: name.value,
        user: UnixUser { uid: account.uid.as_raw(), gid: account.gid.as_raw() },
        home: account.dir,
    })
}

impl RunAs {
    /// Returns the user, if it is known already.
    pub(crate) fn user(&self) -> Option<UnixUser> {
        match self {
            Self::Named(account) => Some(account.user),
            Self::Service | Self::Dynamic => None,
        }
    }

    /// Returns true if the service picks the user.
    pub(crate) fn is_dynamic(&self) -> bool {
        *self == Self::Dynamic
    }

    /// Sets the variables that name the user of a program, unless the file sets them.
    pub(crate) fn set_variables(&self, env: &mut BTreeMap<String, EnvVariable>) {
        let Self::Named(SystemUser { name, home, .. }) = self else { return };
        let home = home.display().to_string();
        for (variable, value) in [("HOME", &home), ("USER", name), ("LOGNAME", name)] {
            let new_variable =
                || EnvVariable { value: value.clone(), secrecy: VariableSecrecy::Plain };
            env.entry(variable.to_owned()).or_insert_with(new_variable);
        }
    }
}
