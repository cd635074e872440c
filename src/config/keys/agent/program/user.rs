//! `user`: user of an agent's program.

use std::collections::BTreeMap;

use algonius_actors::model::program::{EnvVariable, ProgramUser, UnixUser, VariableSecrecy};
use nix::unistd::{self, Uid, geteuid};
use toml::de::DeValue;

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
    home: String,
}

/// Reads `user`. A fault of the machine has the severity `machine_fault_severity`.
pub(crate) fn read(section: &mut Section<'_>, machine_fault_severity: Severity) -> RunAs {
    let Some(name) = section.nonblank_text("user") else { return RunAs::Service };
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
            reader.record_fault(machine_fault_severity, &name.position, diagnostic);
            return RunAs::Service;
        }
        Err(errno) => {
            reader.record_fault(
                machine_fault_severity,
                &name.position,
                new_diagnostic(format!("cannot be looked up: {errno}")),
            );
            return RunAs::Service;
        }
    };
    match validate_system_user(name.value, &account, geteuid()) {
        Ok(user) => RunAs::Named(user),
        Err(problem) => {
            reader.report_error(&name.position, problem);
            RunAs::Service
        }
    }
}

/// Reports an agent with a dynamic user, because no range of users is configured.
pub(crate) fn refuse_dynamic_user(section: &mut Section<'_>) {
    let is_enabled = section.peek("enabled").and_then(DeValue::as_bool) != Some(false);
    let user = section.entry("user").filter(|_| is_enabled);
    if let Some(user) = user.filter(|user| user.value.as_str() == Some(DYNAMIC_USER)) {
        let diagnostic = new_diagnostic("needs a range of users")
            .with_hint("set `server.agent_users`, such as \"61184-61999\"");
        section.reader.report_error(&user.position, diagnostic);
    }
}

/// Returns the user of an account, or the reason why no program of the user `service_uid` may run as that user.
fn validate_system_user(
    name: String,
    account: &unistd::User,
    service_uid: Uid,
) -> Result<SystemUser, &'static str> {
    if account.uid.is_root() {
        return Err("must not be root: root can do whatever the service can");
    }
    if account.uid == service_uid {
        return Err("is the service's own user: leave it out");
    }
    // The variable HOME would name another folder.
    let home = account.dir.to_str().ok_or("has a home directory whose path is not UTF-8")?;
    let user = UnixUser { uid: account.uid.as_raw(), gid: account.gid.as_raw() };
    Ok(SystemUser { name, user, home: home.to_owned() })
}

impl RunAs {
    /// Returns the user of a program. `is_shared` is false until all agents are read.
    pub(crate) fn program_user(&self) -> ProgramUser {
        let ids = match self {
            Self::Named(account) => Some(account.user),
            Self::Service | Self::Dynamic => None,
        };
        ProgramUser { ids, is_dynamic: self.is_dynamic(), is_shared: false }
    }

    /// Returns true if the service picks the user.
    pub(crate) fn is_dynamic(&self) -> bool {
        *self == Self::Dynamic
    }

    /// Sets the variables that name the user of a program, unless the file sets them.
    pub(crate) fn set_variables(&self, env: &mut BTreeMap<String, EnvVariable>) {
        let Self::Named(SystemUser { name, home, .. }) = self else { return };
        for (variable, value) in [("HOME", home), ("USER", name), ("LOGNAME", name)] {
            let new_variable =
                || EnvVariable { value: value.clone(), secrecy: VariableSecrecy::Plain };
            env.entry(variable.to_owned()).or_insert_with(new_variable);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::{CString, OsString};
    use std::os::unix::ffi::OsStringExt;

    use nix::unistd::Gid;

    use super::*;

    #[test]
    fn an_account_needs_a_usable_home_and_other_rights() {
        let validated_home = |uid: u32, home: &[u8]| {
            let account = unistd::User {
                name: "agent".to_owned(),
                passwd: CString::default(),
                uid: Uid::from_raw(uid),
                gid: Gid::from_raw(uid),
                gecos: CString::default(),
                dir: OsString::from_vec(home.to_vec()).into(),
                shell: "/bin/sh".into(),
            };
            validate_system_user("agent".to_owned(), &account, Uid::from_raw(7))
                .map(|user| user.home)
        };
        assert_eq!(validated_home(8, b"/srv/agent").as_deref(), Ok("/srv/agent"));
        for (uid, home, problem) in [
            (8, &b"/srv/caf\xe9"[..], "not UTF-8"),
            (7, b"/srv/agent", "own user"),
            (0, b"/root", "must not be root"),
        ] {
            assert!(validated_home(uid, home).unwrap_err().contains(problem), "{uid}");
        }
    }
}
