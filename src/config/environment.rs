//! The environment of a program: plain values, and secrets from elsewhere.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use algonius_actors::model::agent::Access;
use algonius_actors::model::program::{Secrecy, Variable};

use super::fault::{Severity, said};
use super::reader::{Found, Place, Reader};
use super::section::Section;
use super::value;

/// Longest file a secret is read from, in bytes.
const SECRET_FILE: u64 = 64 << 10;
/// A shorter secret would mask half of every text.
const SHORTEST_MASKED: usize = 6;
/// A variable whose name has a part that ends so holds a secret.
const TELLING: [&str; 6] = ["KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL"];

/// Reads `env`, what of `access_env` is for this access, `env_from`, `env_file` and `env_allow`. What
/// the machine lacks weighs `lacking`.
pub(super) fn read(
    agent: &mut Section<'_>,
    access: Access,
    lacking: Severity,
) -> BTreeMap<String, Variable> {
    let reader = agent.reader;
    let mut variables = Variables { reader, lacking, known: BTreeMap::new() };
    variables.written(agent.section("env"));
    variables.of_access(agent.section("access_env"), access);
    for (name, entry) in agent.section("env_from").entries() {
        let entry = Found { place: entry.place.hidden(), ..entry };
        if let Some(from) = value::text(reader, &entry) {
            let found = reader.env(from);
            variables.secret(&name, &entry.place, found.ok_or(NOT_SET.to_owned()));
        }
    }
    for (name, entry) in agent.section("env_file").entries() {
        let entry = Found { place: entry.place.hidden(), ..entry };
        if let Some(path) = value::text(reader, &entry) {
            let found = reader.secret_file(&reader.resolve(path));
            let found = found.map_err(|error| format!("cannot be read: {error}"));
            variables.secret(&name, &entry.place, found);
        }
    }
    for name in agent.texts("env_allow").unwrap_or_default() {
        variables.passed(&name);
    }
    variables.known
}

/// Said of a variable of the service that is missing.
pub(super) const NOT_SET: &str = "this variable is not set in the service's environment";

/// Variables as they gather.
struct Variables<'c> {
    reader: &'c Reader<'c>,
    lacking: Severity,
    known: BTreeMap<String, Variable>,
}

impl Variables<'_> {
    /// Takes the values of a table.
    fn written(&mut self, section: Section<'_>) {
        for (name, entry) in section.entries() {
            let place = entry.place.clone().hidden();
            if let Some(text) = value::scalar(self.reader, &Found { place: place.clone(), ..entry })
            {
                self.plain(&name, &Found { value: text, place });
            }
        }
    }

    /// Takes the values of the table for this access; those of the other are checked alone.
    fn of_access(&mut self, mut section: Section<'_>, access: Access) {
        for (key, of) in [("read-only", Access::ReadOnly), ("read-write", Access::ReadWrite)] {
            let table = section.section(key);
            if of == access {
                self.written(table);
            } else {
                let (reader, lacking) = (self.reader, self.lacking);
                Variables { reader, lacking, known: BTreeMap::new() }.written(table);
            }
        }
        section.finish();
    }

    /// Takes a variable of the service over as it is. One that the file sets is left as it is set, and
    /// one that the service does not have is passed over.
    fn passed(&mut self, name: &Found<String>) {
        if !is_name(&name.value) {
            return self.reader.error(&name.place, "is not the name of a variable");
        }
        if self.known.contains_key(&name.value) {
            return;
        }
        let Some(value) = self.reader.env(&name.value) else { return };
        let secrecy = if is_telling(&name.value) { Secrecy::Secret } else { Secrecy::Plain };
        self.set(name, Variable { value, secrecy }, &name.place);
    }

    /// Takes a value of the file with `${NAME}` filled in.
    fn plain(&mut self, name: &Found<String>, text: &Found<String>) {
        let expanded = match expand(&text.value, &|name| self.reader.env(name)) {
            Ok(expanded) => expanded,
            Err(ExpandError::Unset { name }) => {
                let message = format!("`{name}` is not set in the service's environment");
                return self.reader.record(self.lacking, &text.place, said(message));
            }
            Err(error) => return self.reader.error(&text.place, error.to_string()),
        };
        let is_secret = is_telling(&name.value) || expanded.names.iter().any(|n| is_telling(n));
        let secrecy = if is_secret { Secrecy::Secret } else { Secrecy::Plain };
        self.set(name, Variable { value: expanded.text, secrecy }, &text.place);
    }

    /// Takes a value from elsewhere.
    fn secret(&mut self, name: &Found<String>, place: &Place, found: Result<String, String>) {
        match found {
            Ok(value) => self.set(name, Variable { value, secrecy: Secrecy::Secret }, place),
            Err(lack) => self.reader.record(self.lacking, place, said(lack)),
        }
    }

    /// Sets a variable, once.
    fn set(&mut self, name: &Found<String>, variable: Variable, place: &Place) {
        let is_name = !name.value.is_empty() && !name.value.contains(['=', '\0']);
        if !is_name {
            return self.reader.error(&name.place, "is not the name of a variable");
        }
        if variable.value.contains('\0') {
            return self.reader.error(place, "must not hold a NUL character");
        }
        if variable.secrecy == Secrecy::Secret {
            self.mask(&variable.value, place);
        }
        if self.known.insert(name.value.clone(), variable).is_some() {
            self.reader.error(&name.place, "this variable is set twice");
        }
    }

    /// Registers a secret, unless masking it would mask everything.
    fn mask(&self, value: &str, place: &Place) {
        if value.len() < SHORTEST_MASKED {
            let message = format!(
                "a secret of fewer than {SHORTEST_MASKED} characters is not masked in the output"
            );
            return self.reader.warning(place, message);
        }
        self.reader.keep_secret(value);
    }
}

/// Why a text could not be filled in.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum ExpandError {
    /// A variable is missing.
    #[error("`{name}` is not set")]
    Unset {
        /// Which.
        name: String,
    },
    /// A dollar sign that means nothing.
    #[error("`$` must be followed by `{{NAME}}`, or by `$` for a dollar sign")]
    Stray,
}

/// A text with its variables filled in.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Expanded {
    /// The text.
    pub(super) text: String,
    /// The variables that were filled in.
    pub(super) names: Vec<String>,
}

/// Fills in `${NAME}`; `$$` is a dollar sign.
pub(super) fn expand(
    source: &str,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<Expanded, ExpandError> {
    let (mut text, mut names, mut rest) = (String::new(), Vec::new(), source);
    while let Some((before, after)) = rest.split_once('$') {
        text.push_str(before);
        if let Some(after) = after.strip_prefix('$') {
            text.push('$');
            rest = after;
            continue;
        }
        let braced = after.strip_prefix('{').and_then(|after| after.split_once('}'));
        let (name, after) = braced.filter(|(name, _)| is_name(name)).ok_or(ExpandError::Stray)?;
        text.push_str(&env(name).ok_or_else(|| ExpandError::Unset { name: name.to_owned() })?);
        names.push(name.to_owned());
        rest = after;
    }
    text.push_str(rest);
    Ok(Expanded { text, names })
}

/// Whether the name of a variable says that it holds a secret.
pub(super) fn is_telling(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    name.split('_').any(|part| TELLING.iter().any(|ending| part.ends_with(ending)))
}

/// Whether a text can be a name of a variable or parameter.
pub(super) fn is_name(text: &str) -> bool {
    let word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    text.bytes().all(word) && text.bytes().next().is_some_and(|first| !first.is_ascii_digit())
}

/// The text of a file without the line break at its end.
pub(super) fn secret_file(path: &Path) -> io::Result<String> {
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    let mut text = String::new();
    fs::File::open(path)?.take(SECRET_FILE + 1).read_to_string(&mut text)?;
    if text.len() as u64 > SECRET_FILE {
        return Err(io::Error::other("it is too long for a secret"));
    }
    text.truncate(text.trim_end_matches(['\n', '\r']).len());
    Ok(text)
}

/// Whether others than the owner may read a file.
pub(super) fn is_open_to_others(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|data| data.permissions().mode() & 0o077 != 0)
}
