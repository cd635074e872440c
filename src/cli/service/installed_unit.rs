//! Installed unit: the configuration and the variables of the service.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use super::install_paths::{DirectoryVariables, UnitOwner};
use crate::app::file_trust::ServiceAccount;

/// Variables that systemd or the login adds.
const LOGIN_VARIABLES: [&str; 8] = [
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "XDG_CONFIG_HOME",
    "XDG_RUNTIME_DIR",
    "XDG_STATE_HOME",
];

/// Content of a unit.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::cli) struct InstalledUnit {
    /// Path of the unit.
    pub(in crate::cli) unit_file: PathBuf,
    /// Path of the configuration.
    pub(in crate::cli) config_file: PathBuf,
    /// Value of `User=`; `None` if the unit has no such line, as the unit of a user.
    user_name: Option<String>,
    /// Variables that the unit sets.
    unit_variables: Vec<(String, String)>,
    environment_file: PathBuf,
}

impl InstalledUnit {
    /// Returns the unit of the present user, otherwise that of the machine, if `service install` wrote it.
    pub(in crate::cli) fn find() -> Option<Self> {
        let directories = DirectoryVariables::from_env();
        [UnitOwner::User, UnitOwner::Machine].into_iter().find_map(|owner| {
            let unit_file = owner.unit_file(&directories).ok()?;
            let text = fs::read_to_string(&unit_file).ok()?;
            parse_unit(unit_file, &text).filter(|_| super::unit::is_generated(&text))
        })
    }

    /// Returns true if the unit starts the service with this configuration.
    pub(in crate::cli) fn uses_config_file(&self, file: &Path) -> bool {
        let canonical = |file: &Path| fs::canonicalize(file).ok();
        canonical(file).is_some_and(|file| canonical(&self.config_file) == Some(file))
    }

    /// Returns the account of the service for a configuration: the `User=` of the installed unit. Without such a unit
    /// or user, returns the account of this process.
    pub(in crate::cli) fn service_account(config_file: Option<&Path>) -> ServiceAccount {
        let unit =
            config_file.and_then(|file| Self::find().filter(|unit| unit.uses_config_file(file)));
        let user_name = unit.and_then(|unit| unit.user_name);
        let account = user_name.and_then(|name| ServiceAccount::of_user(&name));
        account.unwrap_or_else(ServiceAccount::of_process)
    }

    /// Returns the path of the file with secret variables.
    pub(in crate::cli) fn environment_file(&self) -> &Path {
        &self.environment_file
    }

    /// Returns the future value of a variable in the service.
    pub(in crate::cli) fn variable(&self, name: &str) -> Option<OsString> {
        let unit_variable = self.unit_variables.iter().find(|(key, _)| key == name);
        if let Some((_, value)) = unit_variable {
            return Some(value.into());
        }
        let bytes = fs::read(&self.environment_file).unwrap_or_default();
        let mut lines = bytes.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
        let file_value = lines.find_map(|line| {
            let value = line.strip_prefix(name.as_bytes())?.strip_prefix(b"=")?;
            Some(match std::str::from_utf8(value) {
                Ok(text) => unquote(text).into(),
                Err(_) => OsString::from_vec(value.to_vec()),
            })
        });
        file_value
            .or_else(|| LOGIN_VARIABLES.contains(&name).then(|| std::env::var_os(name)).flatten())
    }
}

impl InstalledUnit {
    /// Returns the value of a variable in the service that this unit starts or, without a unit, in this process.
    pub(in crate::cli) fn unit_or_process_variable(
        unit: Option<&Self>,
        name: &str,
    ) -> Option<OsString> {
        unit.map_or_else(|| std::env::var_os(name), |unit| unit.variable(name))
    }
}

fn parse_unit(unit_file: PathBuf, text: &str) -> Option<InstalledUnit> {
    let value_of = |key: &str| text.lines().find_map(|line| line.strip_prefix(key));
    let start_command = split_words(value_of("ExecStart=")?);
    let config_file = start_command.iter().skip_while(|word| *word != "--config").nth(1)?;
    let config_file = PathBuf::from(config_file);
    let environment = text.lines().filter_map(|line| line.strip_prefix("Environment="));
    let unit_variables = environment.flat_map(split_words).filter_map(|word| {
        let (name, value) = word.split_once('=')?;
        Some((name.to_owned(), expand_specifier(value).to_owned()))
    });
    let (unit_variables, environment_file) =
        (unit_variables.collect(), config_file.with_file_name("environment"));
    let user_name = value_of("User=").map(str::to_owned);
    Some(InstalledUnit { unit_file, config_file, user_name, unit_variables, environment_file })
}

/// Returns the directory for a specifier of systemd.
fn expand_specifier(value: &str) -> &str {
    match value {
        "%S" => "/var/lib",
        "%t" => "/run",
        other => other,
    }
}

fn unquote(value: &str) -> &str {
    let strip_quotes = |quote| value.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote));
    strip_quotes('"').or_else(|| strip_quotes('\'')).unwrap_or(value)
}

/// Splits a line into words by the rules of systemd: quotes protect blanks, a backslash protects the next character,
/// and `%%` is `%`.
fn split_words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut is_quoted) = (Vec::new(), String::new(), false);
    let mut chars = line.chars().peekable();
    while let Some(char) = chars.next() {
        match char {
            '"' => is_quoted = !is_quoted,
            '\\' => word.extend(chars.next()),
            '%' => {
                _ = chars.next_if_eq(&'%');
                word.push('%');
            }
            ' ' if !is_quoted => words.push(std::mem::take(&mut word)),
            char => word.push(char),
        }
    }
    words.push(word);
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::super::unit::Unit;
    use super::*;

    #[test]
    fn an_installed_unit_is_read_back() {
        for (config, path) in [
            ("/etc/algonius/supervisor.toml", "/usr/bin:/bin"),
            ("/srv/a b/50% \"x\"/c.toml", "/opt/a b/bin:/srv/50%/bin"),
        ] {
            for owner in [UnitOwner::User, UnitOwner::Machine] {
                let (program, config) = (Path::new("/usr/bin/algonius"), Path::new(config));
                let unit =
                    Unit::new(owner.clone(), program, config, path.as_ref()).expect("a unit");
                let installed =
                    parse_unit(PathBuf::from("unit"), &unit.text()).expect("what it says");
                assert_eq!(
                    (
                        installed.config_file.as_path(),
                        installed.variable("PATH").as_deref().and_then(std::ffi::OsStr::to_str)
                    ),
                    (config, Some(path))
                );
                let state_home =
                    installed.unit_variables.iter().find(|(name, _)| name == "XDG_STATE_HOME");
                let is_machine = owner == UnitOwner::Machine;
                assert_eq!(
                    state_home.map(|(_, value)| value.as_str()),
                    is_machine.then_some("/var/lib")
                );
            }
        }
    }
}
