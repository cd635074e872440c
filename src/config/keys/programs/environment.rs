//! Environment of a program: plain values, and secrets from other sources.

use std::collections::BTreeMap;

use algonius_actors::model::agent::Access;
use algonius_actors::model::program::{EnvVariable, VariableSecrecy};

use crate::config::diagnostics::{Severity, new_diagnostic};
use crate::config::table::secret::VARIABLE_NOT_UTF_8;
use crate::config::table::{ConfigReader, NotUtf8, Positioned, Section, SourcePosition, value};

/// Suffixes of name parts that mark a variable as a secret.
const SECRET_NAME_SUFFIXES: [&str; 6] =
    ["KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL"];

/// Reads `env`, the part of `access_env` for this access, `env_from`, `env_file` and `env_allow`. A fault of the
/// machine has the severity `machine_fault_severity`.
pub(crate) fn read_for_agent(
    agent: &mut Section<'_>,
    access: Access,
    machine_fault_severity: Severity,
) -> BTreeMap<String, EnvVariable> {
    let mut variables = VariableCollector::read_env_table(agent, machine_fault_severity);
    variables.add_access_table(agent.section("access_env"), access);
    variables.read_other_sources(agent)
}

/// Reads `env`, `env_from`, `env_file` and `env_allow` of a backend program, whose access is always the same.
pub(crate) fn read_for_backend(
    table: &mut Section<'_>,
    machine_fault_severity: Severity,
) -> BTreeMap<String, EnvVariable> {
    VariableCollector::read_env_table(table, machine_fault_severity).read_other_sources(table)
}

/// Variables that were collected so far.
struct VariableCollector<'c> {
    reader: &'c ConfigReader<'c>,
    machine_fault_severity: Severity,
    variables: BTreeMap<String, EnvVariable>,
}

impl<'c> VariableCollector<'c> {
    /// Reads `env`.
    fn read_env_table(table: &mut Section<'c>, machine_fault_severity: Severity) -> Self {
        let mut variables =
            Self { reader: table.reader, machine_fault_severity, variables: BTreeMap::new() };
        variables.add_table(table.section("env"));
        variables
    }

    /// Adds `env_from`, `env_file` and `env_allow`, and returns all variables.
    fn read_other_sources(mut self, table: &mut Section<'_>) -> BTreeMap<String, EnvVariable> {
        for (name, entry) in table.section("env_from").entries() {
            let entry = Positioned { position: entry.position.without_excerpt(), ..entry };
            if let Some(source_variable) = value::text(self.reader, &entry) {
                let value = self.reader.required_env(source_variable);
                self.add_secret(&name, &entry.position, value);
            }
        }
        for (name, entry) in table.section("env_file").entries() {
            let entry = Positioned { position: entry.position.without_excerpt(), ..entry };
            if let Some(path) = value::text(self.reader, &entry) {
                let value = self.reader.read_secret_file(&self.reader.resolve_path(path));
                let value = value.map_err(|error| format!("cannot be read: {error}"));
                self.add_secret(&name, &entry.position, value);
            }
        }
        for name in table.text_list("env_allow").unwrap_or_default() {
            self.add_inherited(&name);
        }
        self.variables
    }

    /// Adds the values of a table.
    fn add_table(&mut self, section: Section<'_>) {
        for (name, entry) in section.entries() {
            let position = entry.position.clone().without_excerpt();
            if let Some(text) =
                value::scalar(self.reader, &Positioned { position: position.clone(), ..entry })
            {
                self.add_expanded(&name, &Positioned { value: text, position });
            }
        }
    }

    /// Adds the values of the table for this access; those of the other are only checked.
    fn add_access_table(&mut self, mut section: Section<'_>, access: Access) {
        for (key, table_access) in
            [("read-only", Access::ReadOnly), ("read-write", Access::ReadWrite)]
        {
            let table = section.section(key);
            if table_access == access {
                self.add_table(table);
            } else {
                let (reader, machine_fault_severity) = (self.reader, self.machine_fault_severity);
                VariableCollector { reader, machine_fault_severity, variables: BTreeMap::new() }
                    .add_table(table);
            }
        }
        section.report_unknown_keys();
    }

    /// Copies a variable of the service. A variable that the file sets stays as it is, and one that the service does
    /// not have is skipped.
    fn add_inherited(&mut self, name: &Positioned<String>) {
        if !is_identifier(&name.value) {
            return self.reader.report_error(&name.position, "is not the name of a variable");
        }
        if self.variables.contains_key(&name.value) {
            return;
        }
        let value = match self.reader.try_env(&name.value) {
            Ok(Some(value)) => value,
            Ok(None) => return,
            Err(NotUtf8) => return self.record_machine_fault(&name.position, VARIABLE_NOT_UTF_8),
        };
        let secrecy = if is_secret_name(&name.value) {
            VariableSecrecy::Secret
        } else {
            VariableSecrecy::Plain
        };
        self.validate_and_add(name, EnvVariable { value, secrecy }, &name.position);
    }

    /// Adds a value of the file with `${NAME}` expanded.
    fn add_expanded(&mut self, name: &Positioned<String>, text: &Positioned<String>) {
        let expanded = match expand(&text.value, &|name| self.reader.try_env(name)) {
            Ok(expanded) => expanded,
            Err(ExpandError::Unset { name }) => {
                let message = format!("`{name}` is not set in the service's environment");
                return self.record_machine_fault(&text.position, &message);
            }
            Err(ExpandError::NotUtf8 { name }) => {
                let message = format!("`{name}` is not UTF-8 in the service's environment");
                return self.record_machine_fault(&text.position, &message);
            }
            Err(error) => return self.reader.report_error(&text.position, error.to_string()),
        };
        let is_secret = is_secret_name(&name.value)
            || expanded.variable_names.iter().any(|used_name| is_secret_name(used_name));
        let secrecy = if is_secret { VariableSecrecy::Secret } else { VariableSecrecy::Plain };
        self.validate_and_add(name, EnvVariable { value: expanded.text, secrecy }, &text.position);
    }

    /// Adds a value from another source.
    fn add_secret(
        &mut self,
        name: &Positioned<String>,
        position: &SourcePosition,
        secret_value: Result<String, String>,
    ) {
        match secret_value {
            Ok(value) => {
                self.validate_and_add(
                    name,
                    EnvVariable { value, secrecy: VariableSecrecy::Secret },
                    position,
                );
            }
            Err(message) => self.record_machine_fault(position, &message),
        }
    }

    /// Records that this machine has no value for a variable.
    fn record_machine_fault(&self, position: &SourcePosition, message: &str) {
        self.reader.record_fault(self.machine_fault_severity, position, new_diagnostic(message));
    }

    /// Validates a variable and adds it; a second value for a name is a fault.
    fn validate_and_add(
        &mut self,
        name: &Positioned<String>,
        variable: EnvVariable,
        position: &SourcePosition,
    ) {
        let is_valid_name = !name.value.is_empty() && !name.value.contains(['=', '\0']);
        if !is_valid_name {
            return self.reader.report_error(&name.position, "is not the name of a variable");
        }
        if variable.value.contains('\0') {
            return self.reader.report_error(position, "must not hold a NUL character");
        }
        if variable.secrecy == VariableSecrecy::Secret {
            self.reader.register_secret_or_warn(position, &variable.value);
        }
        if self.variables.insert(name.value.clone(), variable).is_some() {
            self.reader.report_error(&name.position, "this variable is set twice");
        }
    }
}

/// Reason why a text could not be expanded.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ExpandError {
    /// A variable is missing.
    #[error("`{name}` is not set")]
    Unset {
        /// Name of the variable.
        name: String,
    },
    /// The value of a variable is no text.
    #[error("`{name}` is not UTF-8")]
    NotUtf8 {
        /// Name of the variable.
        name: String,
    },
    /// A dollar sign without a meaning.
    #[error("`$` must be followed by `{{NAME}}`, or by `$` for a dollar sign")]
    StrayDollar,
}

/// Text with its variables expanded.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ExpandedText {
    /// Expanded text.
    pub(crate) text: String,
    /// Variables that were expanded.
    pub(crate) variable_names: Vec<String>,
}

/// Expands `${NAME}`; `$$` is a dollar sign.
pub(crate) fn expand(
    source: &str,
    env: &dyn Fn(&str) -> Result<Option<String>, NotUtf8>,
) -> Result<ExpandedText, ExpandError> {
    let (mut text, mut names, mut rest) = (String::new(), Vec::new(), source);
    while let Some((before, after)) = rest.split_once('$') {
        text.push_str(before);
        if let Some(after) = after.strip_prefix('$') {
            text.push('$');
            rest = after;
            continue;
        }
        let braced = after.strip_prefix('{').and_then(|after| after.split_once('}'));
        let (name, after) =
            braced.filter(|(name, _)| is_identifier(name)).ok_or(ExpandError::StrayDollar)?;
        let value = env(name).map_err(|NotUtf8| ExpandError::NotUtf8 { name: name.to_owned() })?;
        text.push_str(&value.ok_or_else(|| ExpandError::Unset { name: name.to_owned() })?);
        names.push(name.to_owned());
        rest = after;
    }
    text.push_str(rest);
    Ok(ExpandedText { text, variable_names: names })
}

/// Returns true if the name of a variable marks it as a secret.
pub(crate) fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    name.split('_').any(|part| SECRET_NAME_SUFFIXES.iter().any(|suffix| part.ends_with(suffix)))
}

/// Returns true if a text can be a name of a variable or parameter.
pub(crate) fn is_identifier(text: &str) -> bool {
    let is_word_byte = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    text.bytes().all(is_word_byte)
        && text.bytes().next().is_some_and(|first| !first.is_ascii_digit())
}
