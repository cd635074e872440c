//! What is wrong with a configuration, in the form compilers use.

use std::fmt;
use std::path::PathBuf;

/// How much a fault weighs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// The configuration is not used.
    Error,
    /// The configuration is used; the reader should know all the same.
    Warning,
    /// The configuration is used, because it is about an agent that is switched off: on, it is wrong.
    Lack,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Error => "error",
            Self::Warning | Self::Lack => "warning",
        })
    }
}

/// One thing wrong at one place of the file. Printed as one line; it never holds a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The file as the caller named it.
    pub file: PathBuf,
    /// Line from 1; 0 when the fault is about the file as a whole.
    pub line: usize,
    /// Column in characters from 1; 0 when the fault is about the file as a whole.
    pub column: usize,
    /// The key with its tables, such as `agents.echo.timeout`; empty for a fault of syntax.
    pub path: String,
    /// The value as written, shortened; absent where it may be a secret.
    pub value: Option<String>,
    /// What is wrong, or what is allowed.
    pub message: String,
    /// What the writer may have meant, or can do.
    pub hint: Option<String>,
    /// How much it weighs.
    pub severity: Severity,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.file.display())?;
        if self.line > 0 {
            write!(f, "{}:{}:", self.line, self.column)?;
        }
        write!(f, " {}: ", self.severity)?;
        if !self.path.is_empty() {
            f.write_str(&self.path)?;
            if let Some(value) = &self.value {
                write!(f, " = {value}")?;
            }
            f.write_str(": ")?;
        }
        f.write_str(&self.message)?;
        self.hint.as_ref().map_or(Ok(()), |hint| write!(f, "; {hint}"))
    }
}

/// All that is wrong with a configuration, in the order of the file; at least one is an error.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
pub struct Faults {
    list: Vec<Fault>,
    files: Vec<PathBuf>,
}

impl fmt::Debug for Faults {
    /// Leaves the files out: what was written where a path should be may be a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Faults").field("list", &self.list).finish_non_exhaustive()
    }
}

impl Faults {
    /// Takes faults and puts them into the order of the file.
    pub(super) fn new(list: Vec<Fault>) -> Self {
        Self { list: in_order(list), files: Vec::new() }
    }

    /// The same, of a configuration that named these files.
    pub(super) fn naming(self, files: Vec<PathBuf>) -> Self {
        Self { files, ..self }
    }

    /// The files that the configuration names, as far as it was read.
    #[must_use]
    pub fn files(&self) -> &[PathBuf] {
        &self.files
    }

    /// Every fault, warnings among them.
    pub fn iter(&self) -> impl Iterator<Item = &Fault> {
        self.list.iter()
    }

    /// How many of them are errors.
    #[must_use]
    pub fn errors(&self) -> usize {
        self.list.iter().filter(|fault| fault.severity == Severity::Error).count()
    }
}

impl fmt::Display for Faults {
    /// One line for each fault.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, fault) in self.list.iter().enumerate() {
            let line_break = if index == 0 { "" } else { "\n" };
            write!(f, "{line_break}{fault}")?;
        }
        Ok(())
    }
}

/// Sorts by line and column; faults of one place stay as found.
pub(super) fn in_order(mut list: Vec<Fault>) -> Vec<Fault> {
    list.sort_by_key(|fault| (fault.line, fault.column));
    list
}

/// What is said about a place: the message and, maybe, a hint.
pub(super) struct Complaint {
    pub(super) message: String,
    pub(super) hint: Option<String>,
}

impl Complaint {
    /// Adds what the writer may have meant, or can do.
    pub(super) fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// Adds the nearest of the `known` words, or all of them when none is near.
    pub(super) fn among<'w>(self, given: &str, known: impl IntoIterator<Item = &'w str>) -> Self {
        let known: Vec<&str> = known.into_iter().collect();
        match nearest(given, &known) {
            Some(word) => self.hint(format!("did you mean `{word}`?")),
            None if known.is_empty() => self,
            None => self.hint(format!("known: {}", known.join(", "))),
        }
    }
}

/// Starts a complaint that will get a hint.
pub(super) fn said(message: impl Into<String>) -> Complaint {
    Complaint { message: message.into(), hint: None }
}

impl From<&str> for Complaint {
    fn from(message: &str) -> Self {
        said(message)
    }
}

impl From<String> for Complaint {
    fn from(message: String) -> Self {
        said(message)
    }
}

/// The known word that `given` is most likely a slip of.
pub(super) fn nearest<'w>(given: &str, known: &[&'w str]) -> Option<&'w str> {
    let given = given.to_lowercase().replace('-', "_");
    let slips = |word: &str| strsim::damerau_levenshtein(&given, &word.replace('-', "_"));
    let (slips, word) = known.iter().map(|word| (slips(word), *word)).min()?;
    (slips <= (word.len() / 3).max(1)).then_some(word)
}
