//! Search for secrets that are written into the text of a configuration or a preset.

use algonius_redact::Redactor;
use toml::{Table, Value};

use crate::config::keys::programs::environment::{expand, is_secret_name};

/// Tables whose entries are variables.
const ENVIRONMENT_TABLES: [&str; 2] = ["env", "access_env"];
/// Tables whose entries name variables or files with secrets.
const REFERENCE_TABLES: [&str; 2] = ["env_from", "env_file"];
/// Key whose value looks like a secret and is a name: agents with the same one share an account.
const ACCOUNT_KEY: &str = "credential";
/// Words before a secret in a header.
const AUTHENTICATION_SCHEMES: [&str; 3] = ["Bearer", "Basic", "Token"];

/// Search for known secrets, and for others by their format or their context.
pub(super) struct SecretSearch {
    redactor: Redactor,
}

/// Result of the search in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SearchResult {
    SecretFound,
    NoSecret,
    /// The text is not valid TOML, so that it cannot be searched.
    Unparsed,
}

/// Kind of a table, which decides about the meaning of its entries.
struct TableKind {
    /// True if the entries are variables.
    has_variables: bool,
    /// True if the entries only name places of secrets.
    has_references: bool,
    /// True if the keys are ids, such as those of `[agents.<id>]`.
    has_ids: bool,
}

impl TableKind {
    const fn root() -> Self {
        Self { has_variables: false, has_references: false, has_ids: false }
    }

    /// Returns the kind of the table with this key.
    fn of_entry(&self, key: &str) -> Self {
        if self.has_ids {
            return Self::root();
        }
        Self {
            has_variables: self.has_variables || ENVIRONMENT_TABLES.contains(&key),
            has_references: REFERENCE_TABLES.contains(&key),
            // `agents`, `tokens`, `tools`, …
            has_ids: key.ends_with('s') && !self.has_variables,
        }
    }
}

impl SecretSearch {
    /// Returns a search for these secrets and for others.
    pub(super) fn new(secrets: &[String]) -> Self {
        Self { redactor: Redactor::new(secrets.iter().cloned()).without_emails() }
    }

    /// Searches a text for a secret: a known one, the value of a variable whose name marks a secret, or a text that the
    /// redactor recognizes.
    pub(super) fn search(&self, text: &str) -> SearchResult {
        let Ok(table) = text.parse::<Table>() else { return SearchResult::Unparsed };
        let has_secret =
            self.has_secret_comment(text) || self.has_secret_entry(&table, &TableKind::root());
        if has_secret { SearchResult::SecretFound } else { SearchResult::NoSecret }
    }

    fn has_secret_entry(&self, table: &Table, kind: &TableKind) -> bool {
        table.iter().any(|(key, value)| {
            self.is_secret(key)
                || match value {
                    Value::Table(table) => self.has_secret_entry(table, &kind.of_entry(key)),
                    value => self.is_secret_value(key, value, kind),
                }
        })
    }

    fn is_secret_value(&self, key: &str, value: &Value, kind: &TableKind) -> bool {
        match value {
            Value::String(text) => {
                let is_reference = kind.has_references || key == ACCOUNT_KEY;
                self.is_secret(text)
                    || kind.has_variables && is_secret_variable(key, text)
                    // The redactor recognizes many secrets by their name only.
                    || !is_reference && self.is_secret(&format!("{key} = \"{text}\""))
            }
            Value::Array(items) => {
                let words = items.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" ");
                // An option and its value are two items.
                self.is_secret(&words)
                    || items.iter().any(|item| match item {
                        Value::Table(table) => self.has_secret_entry(table, &kind.of_entry(key)),
                        item => self.is_secret_value("", item, &TableKind::root()),
                    })
            }
            Value::Table(table) => self.has_secret_entry(table, &kind.of_entry(key)),
            // A secret of digits only need not be in quotes.
            Value::Integer(_) | Value::Float(_) => kind.has_variables && is_secret_name(key),
            Value::Boolean(_) | Value::Datetime(_) => false,
        }
    }

    /// Returns true if a comment, or what looks like one, contains a secret. A comment may be a disabled line, and a
    /// secret may have several lines.
    fn has_secret_comment(&self, text: &str) -> bool {
        let (mut block, mut is_reference_table) = (String::new(), false);
        for line in text.lines() {
            if let Some(header) = header_of(line) {
                is_reference_table = REFERENCE_TABLES.iter().any(|table| header.contains(table));
            }
            let Some((_, comment)) = line.split_once('#') else {
                if self.is_secret(&block) {
                    return true;
                }
                block.clear();
                continue;
            };
            let mut parts = comment.split('#').map(str::trim);
            if parts.any(|part| self.is_secret_line(part, is_reference_table)) {
                return true;
            }
            // A disabled line was examined with regard to its key.
            if comment.parse::<Table>().is_err() {
                block.push_str(comment.trim_start_matches(['#', ' ']));
                block.push('\n');
            }
        }
        self.is_secret(&block)
    }

    /// Returns true if a text from a comment is a secret or a disabled line with one.
    fn is_secret_line(&self, line: &str, is_reference: bool) -> bool {
        match line.parse::<Table>() {
            Ok(table) => table.iter().any(|(key, value)| {
                // The line may have been below `[agents.<id>.env]`.
                let has_variables = !is_reference && key.to_ascii_uppercase() == *key;
                let kind =
                    TableKind { has_variables, has_references: is_reference, ..TableKind::root() };
                match value {
                    Value::Table(table) => self.has_secret_entry(table, &kind.of_entry(key)),
                    value => self.is_secret_value(key, value, &kind),
                }
            }),
            Err(_prose) => self.is_secret(line),
        }
    }

    /// Returns true if the redactor hides a part of a text.
    fn is_secret(&self, text: &str) -> bool {
        self.redactor.redact_and_count(text).1 > 0
    }
}

/// Returns the name of the table that starts with a line, disabled or not.
fn header_of(line: &str) -> Option<&str> {
    line.trim_start_matches(['#', ' ', '\t'])
        .strip_prefix('[')?
        .split_once(']')
        .map(|(name, _)| name)
}

/// Returns true if the text of a variable is a secret itself, and does not only refer to one.
fn is_secret_variable(name: &str, text: &str) -> bool {
    if !is_secret_name(name) {
        return false;
    }
    let Ok(expanded) = expand(text, &|_name| Ok(Some(String::new()))) else { return true };
    let has_reference = !expanded.variable_names.is_empty();
    let mut words = expanded.text.split_whitespace();
    // Without a reference, the word is the secret.
    words.any(|word| {
        let is_scheme = has_reference && AUTHENTICATION_SCHEMES.contains(&word);
        !is_scheme && word.contains(|it: char| it.is_alphanumeric())
    })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    fn search(text: &str) -> SearchResult {
        SecretSearch::new(&["registered \"secret\"".to_owned()]).search(text)
    }

    fn has_secret(text: &str) -> bool {
        search(text) == SearchResult::SecretFound
    }

    #[test]
    fn secrets_are_found_in_each_form_that_toml_permits() {
        for text in [
            r#"prompt = "a registered \"secret\"""#,
            r#"prompt = 'a registered "secret"'"#,
            r#"prompt = "a regis\u0074ered \"secret\"""#,
            "prompt = '''\na registered \"secret\"\n'''",
            "# an old registered \"secret\"",
            "[agents.a]\nenv.API_KEY = 'short'",
            "[agents.a]\nenv.API_KEY = 12345",
            "[agents.a]\nenv = { PASSWORD = 'one$$two' }",
            "[agents.a.access_env.read-only]\nAPI_KEY = 'short'",
            "[agents.a]\nenv.API_KEY = '${PREFIX}short'",
            "[agents.a]\nenv.DATABASE_URL = 'postgres://user:s3cr3t-pw@host/db'",
            "[agents.a]\nargs = ['--header', 'Authorization: Bearer abcdef0123456789abcdef']",
            "[agents.a.env]\n# API_KEY = 'short'",
            "[agents.a]\nenv.API_KEY = 'short-${REGION}'",
            "## sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789",
            "listen = '127.0.0.1:1' # listen = '' # password: hunter2-hunter2",
            "[agents.a]\ncli_args = { '--api-key' = 'hunter2-hunter2-99' }",
            "[agents.a]\nparams.password = 'hunter2-hunter2-99'",
            "[agents.a]\nargs = ['--api-key', 'hunter2-hunter2-99']",
            "[mcp_servers.a]\nargs = ['--password', 'hunter2-hunter2-99']",
            "[mcp_servers.a.env]\nAPI_KEY = 'short'",
            "[agents.a]\ncli_args = { '--api-key=hunter2-hunter2-99' = '' }",
            "[agents.a]\nargs = ['--password', 'p4ss-w0rd-4711@corp.example']",
            "# -----BEGIN PRIVATE KEY-----\n# MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg\n# -----END PRIVATE KEY-----",
            "# env.API_KEY = \"0123abcd4567efgh\"",
            "listen = '127.0.0.1:1' # password: hunter2-hunter2",
        ] {
            assert!(has_secret(text), "{text}");
        }
        assert_eq!(search("not toml"), SearchResult::Unparsed);
    }

    #[test]
    fn references_to_secrets_are_no_secrets() {
        for text in [
            "[agents.a]\nenv.API_KEY = '${API_KEY}'",
            "[agents.a]\nenv.AUTH_HEADER_SECRET = 'Bearer ${API_TOKEN}'",
            "[agents.a]\nenv.API_KEY = ''",
            "[agents.a]\nenv_file.API_KEY = 'secrets/key'\nenv_from.OTHER_KEY = 'OTHER_KEY'",
            "[agents.a]\nenv.DATABASE_URL = 'postgres://user:${DB_PASSWORD}@host/db'",
            "[agents.a]\nenv.GIT_AUTHOR_EMAIL = 'bot@example.org'",
            "# ask operators@example.org, or <other@example.org>",
            "# env_from = { API_KEY = 'MY_KEY' } # a comment in a comment",
            "# token_file = 'secrets/token'",
            "# [agents.a.env_file]\n# API_KEY = 'api.key'",
            "[tokens.a]\ntoken_file = 'secrets/token'",
            "[tokens.env]\ntoken_file = 'secrets/token'",
            "[agents.env]\ncommand = 'cat'\nenv_file.API_KEY = 'key'",
            "# PATH = \"$HOME/bin\"",
            "# API_KEY = '…'",
            "[agents.a]\nargs = ['--author=bob@example.org', 'mailto:ann@example.org']",
            "[agents.a]\ncredential = 'team-plan'",
        ] {
            assert!(!has_secret(text), "{text}");
        }
    }

    #[test]
    fn no_shipped_file_contains_a_secret() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("config");
        let mut checked_files = 0;
        for folder in [folder.clone(), folder.join("presets"), folder.join("examples")] {
            for entry in fs::read_dir(folder).unwrap().flatten() {
                let file = entry.path();
                if file.extension().is_some_and(|extension| extension == "toml") {
                    assert!(!has_secret(&fs::read_to_string(&file).unwrap()), "{}", file.display());
                    checked_files += 1;
                }
            }
        }
        assert!(checked_files > 12, "{checked_files}");
    }
}
