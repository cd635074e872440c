//! One reading of one file: its text, its surroundings, and what was found wrong so far.

use std::cell::{OnceCell, RefCell};
use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use regex::Regex;

use super::environment::secret_file;
use super::fault::{Complaint, Fault, Severity};
use super::shape::{Shape, Shapes};

/// Longest value shown in a fault, in characters.
const SHOWN: usize = 60;

/// Looks up a variable of the service's environment.
pub(super) type Lookup<'c> = &'c dyn Fn(&str) -> Option<String>;

/// Where a value stands.
#[derive(Debug, Clone)]
pub(super) struct Place {
    /// The key with its tables.
    pub(super) path: String,
    /// Bytes of the file; of the value, or of the key where there is no value to blame.
    pub(super) span: Range<usize>,
    /// Whether the text there may be printed.
    pub(super) shown: bool,
}

impl Place {
    /// The place of a key below this one, at the same bytes.
    pub(super) fn below(&self, key: &str) -> Self {
        let path =
            if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) };
        Self { path, ..self.clone() }
    }

    /// The same place at other bytes.
    pub(super) fn at(self, span: Range<usize>) -> Self {
        Self { span, ..self }
    }

    /// The same place, whose text is not printed.
    pub(super) fn hidden(self) -> Self {
        Self { shown: false, ..self }
    }
}

/// A value and where it stands.
#[derive(Debug, Clone)]
pub(super) struct Found<T> {
    pub(super) value: T,
    pub(super) place: Place,
}

/// A text that is read, and the file that it is of. Its bytes are counted on from those of the text
/// before it, so that a span tells which text it is of.
struct Text {
    file: PathBuf,
    text: String,
    base: usize,
}

/// One reading of one file, and of those that are laid under it.
pub(super) struct Reader<'c> {
    texts: RefCell<Vec<Text>>,
    folder: PathBuf,
    env: Lookup<'c>,
    faults: RefCell<Vec<Fault>>,
    secrets: RefCell<Vec<String>>,
    files: RefCell<Vec<PathBuf>>,
    /// How questions to a person usually look, once somebody wants to know.
    prompts: OnceCell<Arc<[Regex]>>,
    /// The patterns that were read, by their texts.
    patterns: RefCell<BTreeMap<String, Regex>>,
    /// Where what each key may hold is noted, when that is asked for.
    shapes: Option<Shapes>,
}

/// What a reading has found.
pub(super) struct Findings {
    /// What is wrong.
    pub(super) faults: Vec<Fault>,
    /// What must be masked.
    pub(super) secrets: Vec<String>,
    /// The further files that were read.
    pub(super) files: Vec<PathBuf>,
}

impl<'c> Reader<'c> {
    /// Starts to read `text`, which stands in `file`; relative paths are taken from `folder`.
    pub(super) fn new(file: &'c Path, text: &'c str, folder: PathBuf, env: Lookup<'c>) -> Self {
        let (faults, secrets, files) = (RefCell::default(), RefCell::default(), RefCell::default());
        let text = Text { file: file.to_owned(), text: text.to_owned(), base: 0 };
        let texts = RefCell::new(vec![text]);
        let (prompts, patterns) = (OnceCell::new(), RefCell::default());
        Self { texts, folder, env, faults, secrets, files, prompts, patterns, shapes: None }
    }

    /// Takes in a text of another file; answers by how much its spans are moved.
    pub(super) fn take_in(&self, file: PathBuf, text: &str) -> usize {
        let mut texts = self.texts.borrow_mut();
        let base = texts.last().map_or(0, |last| last.base + last.text.len() + 1);
        texts.push(Text { file, text: text.to_owned(), base });
        base
    }

    /// Names a further file, or a folder, whose change is a change of the configuration.
    pub(super) fn keep_file(&self, path: PathBuf) {
        self.files.borrow_mut().push(path);
    }

    /// The same, that notes what each key may hold.
    pub(super) fn describing(self) -> Self {
        Self { shapes: Some(Shapes::default()), ..self }
    }

    /// Notes what the value at a place may be.
    pub(super) fn note(&self, place: impl FnOnce() -> Place, shape: impl FnOnce() -> Shape) {
        if let Some(shapes) = &self.shapes {
            shapes.note(&place().path, shape());
        }
    }

    /// A regular expression. What several agents say alike is read once, and shared.
    ///
    /// # Errors
    /// When it is none.
    pub(super) fn regex(&self, text: &str) -> Result<Regex, regex::Error> {
        if let Some(known) = self.patterns.borrow().get(text) {
            return Ok(known.clone());
        }
        let regex = Regex::new(text)?;
        self.patterns.borrow_mut().insert(text.to_owned(), regex.clone());
        Ok(regex)
    }

    /// How questions to a person usually look, the same for all.
    pub(super) fn usual_prompts(&self, usual: impl FnOnce() -> Arc<[Regex]>) -> Arc<[Regex]> {
        Arc::clone(self.prompts.get_or_init(usual))
    }

    /// What was noted.
    pub(super) fn into_shapes(self) -> Option<Shapes> {
        self.shapes
    }

    /// A variable of the service's environment; an empty one counts as absent.
    pub(super) fn env(&self, name: &str) -> Option<String> {
        (self.env)(name).filter(|value| !value.is_empty())
    }

    /// The path as it is seen from the file's folder.
    pub(super) fn resolve(&self, path: &str) -> PathBuf {
        self.folder.join(path)
    }

    /// The text of a file that holds a secret, without the line break at its end.
    pub(super) fn secret_file(&self, path: &Path) -> io::Result<String> {
        self.files.borrow_mut().push(path.to_owned());
        secret_file(path)
    }

    /// Registers a text that must be masked wherever it turns up.
    pub(super) fn keep_secret(&self, value: &str) {
        let mut secrets = self.secrets.borrow_mut();
        if !value.is_empty() && !secrets.iter().any(|known| known == value) {
            secrets.push(value.to_owned());
        }
    }

    /// Records something that makes the configuration unusable.
    pub(super) fn error(&self, place: &Place, complaint: impl Into<Complaint>) {
        self.record(Severity::Error, place, complaint.into());
    }

    /// Records something that the reader should know.
    pub(super) fn warning(&self, place: &Place, complaint: impl Into<Complaint>) {
        self.record(Severity::Warning, place, complaint.into());
    }

    /// Records something at a place.
    pub(super) fn record(&self, severity: Severity, place: &Place, complaint: Complaint) {
        let texts = self.texts.borrow();
        let Some(text) = texts.iter().rfind(|text| text.base <= place.span.start) else { return };
        let (line, column) = text.position(place.span.start);
        let fault = Fault {
            file: text.file.clone(),
            line,
            column,
            path: place.path.clone(),
            value: text.shown(place),
            message: complaint.message,
            hint: complaint.hint,
            severity,
        };
        self.faults.borrow_mut().push(fault);
    }

    /// How much was found wrong so far.
    pub(super) fn count(&self) -> usize {
        self.faults.borrow().len()
    }

    /// Ends the reading.
    pub(super) fn finish(self) -> Findings {
        Findings {
            faults: self.faults.into_inner(),
            secrets: self.secrets.into_inner(),
            files: self.files.into_inner(),
        }
    }
}

impl Text {
    /// Line and column of a byte, from 1, the column in characters.
    fn position(&self, offset: usize) -> (usize, usize) {
        let before = self.text.get(..offset - self.base).unwrap_or(&self.text);
        let line = before.split('\n').next_back().unwrap_or_default();
        (before.matches('\n').count() + 1, line.chars().count() + 1)
    }

    /// The first line of what is written at a place, shortened.
    fn shown(&self, place: &Place) -> Option<String> {
        let span = place.span.start - self.base..place.span.end.checked_sub(self.base)?;
        let written = self.text.get(span).filter(|_| place.shown)?;
        let line = written.lines().next().filter(|line| !line.is_empty())?;
        let mut short: String = line.chars().take(SHOWN).collect();
        if short.len() < written.len() {
            short.push('…');
        }
        Some(short)
    }
}
