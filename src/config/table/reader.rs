//! State of reading one configuration: its texts, its environment, and the faults so far.

use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use algonius_redact::Redactor;
use regex::Regex;

use super::position::SourcePosition;
use super::secret::{VARIABLE_NOT_SET, VARIABLE_NOT_UTF_8, is_redactable, read_secret_file};
use super::shape::{KeyRecorder, ValueShape};
use crate::config::diagnostics::{ConfigFault, DiagnosticBuilder, Severity};

/// Greatest length in characters of a value in a fault.
const MAX_EXCERPT_CHARS: usize = 60;

/// Lookup of a variable in the service's environment.
pub(crate) type EnvLookup<'c> = &'c dyn Fn(&str) -> Option<OsString>;

/// Value of a variable that is not UTF-8.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NotUtf8;

/// Text of one file. Its byte offsets continue after the previous text, so that a span identifies its text.
struct SourceText {
    file: PathBuf,
    text: String,
    offset: usize,
}

/// State of reading one file, and the presets that are merged under it.
pub(crate) struct ConfigReader<'c> {
    source_texts: RefCell<Vec<SourceText>>,
    folder: PathBuf,
    env: EnvLookup<'c>,
    faults: RefCell<Vec<ConfigFault>>,
    /// Variables that are not UTF-8.
    non_utf8_variables: RefCell<BTreeSet<String>>,
    secrets: RefCell<Vec<String>>,
    referenced_files: RefCell<Vec<PathBuf>>,
    secret_files: RefCell<Vec<PathBuf>>,
    /// Default patterns of prompts, after their first use.
    default_prompts: OnceCell<Arc<[Regex]>>,
    /// Compiled patterns by their texts.
    regex_cache: RefCell<BTreeMap<String, Regex>>,
    /// Recorder of the shapes and descriptions of the keys, if they are recorded.
    key_recorder: Option<KeyRecorder>,
}

/// Result of a reading.
pub(crate) struct ReadResult {
    /// Faults of the configuration.
    pub(crate) faults: Vec<ConfigFault>,
    /// Secrets to redact.
    pub(crate) secrets: Vec<String>,
    /// Further files that were read.
    pub(crate) referenced_files: Vec<PathBuf>,
    /// Further files that contain a secret.
    pub(crate) secret_files: Vec<PathBuf>,
    /// Texts of the configuration, then of the presets under it.
    pub(crate) config_files: Vec<ConfigTextFile>,
}

/// File whose text is a part of the configuration, or could become one.
pub(crate) struct ConfigTextFile {
    /// Absolute path, unless the text is built in.
    pub(crate) file: PathBuf,
    /// Text; `None` if it could not be read.
    pub(crate) text: Option<String>,
}

impl<'c> ConfigReader<'c> {
    /// Starts to read `text` of `file`; relative paths start at `folder`.
    pub(crate) fn new(file: &'c Path, text: &'c str, folder: PathBuf, env: EnvLookup<'c>) -> Self {
        let (faults, secrets, referenced_files) =
            (RefCell::default(), RefCell::default(), RefCell::default());
        let secret_files = RefCell::default();
        let text = SourceText { file: file.to_owned(), text: text.to_owned(), offset: 0 };
        let source_texts = RefCell::new(vec![text]);
        let (default_prompts, patterns) = (OnceCell::new(), RefCell::default());
        Self {
            source_texts,
            folder,
            env,
            faults,
            non_utf8_variables: RefCell::default(),
            secrets,
            referenced_files,
            secret_files,
            default_prompts,
            regex_cache: patterns,
            key_recorder: None,
        }
    }

    /// Adds the text of another file; returns the offset of its spans.
    pub(crate) fn add_text(&self, file: PathBuf, text: &str) -> usize {
        let mut source_texts = self.source_texts.borrow_mut();
        // One byte stays free: the position at the end of a text must not be the start of the next one.
        let offset = source_texts.last().map_or(0, |last| last.offset + last.text.len() + 1);
        source_texts.push(SourceText { file, text: text.to_owned(), offset });
        offset
    }

    /// Registers a further file or folder, whose change is a change of the configuration.
    pub(crate) fn add_referenced_file(&self, path: PathBuf) {
        self.referenced_files.borrow_mut().push(path);
    }

    /// Returns the same reader, which also records the shape and the description of each key.
    pub(crate) fn with_key_recorder(self) -> Self {
        Self { key_recorder: Some(KeyRecorder::default()), ..self }
    }

    /// Records the shape of the value at a position.
    pub(crate) fn record_shape(
        &self,
        position: impl FnOnce() -> SourcePosition,
        shape: impl FnOnce() -> ValueShape,
    ) {
        if let Some(recorder) = &self.key_recorder {
            recorder.record_shape(&position().key_path, shape());
        }
    }

    /// Records the description of the value at a position.
    pub(crate) fn record_description(
        &self,
        position: impl FnOnce() -> SourcePosition,
        text: &'static str,
    ) {
        if let Some(recorder) = &self.key_recorder {
            recorder.record_description(&position().key_path, text);
        }
    }

    /// Compiles a regular expression. Equal expressions of several agents are compiled once, and shared.
    ///
    /// # Errors
    /// Fails if the text is not a regular expression.
    pub(crate) fn compile_regex(&self, text: &str) -> Result<Regex, regex::Error> {
        if let Some(known) = self.regex_cache.borrow().get(text) {
            return Ok(known.clone());
        }
        let regex = Regex::new(text)?;
        self.regex_cache.borrow_mut().insert(text.to_owned(), regex.clone());
        Ok(regex)
    }

    /// Returns the default patterns of prompts, which all agents share.
    pub(crate) fn default_prompt_patterns(
        &self,
        default: impl FnOnce() -> Arc<[Regex]>,
    ) -> Arc<[Regex]> {
        Arc::clone(self.default_prompts.get_or_init(default))
    }

    /// Returns the recorder of the keys, if there is one.
    pub(crate) fn into_key_recorder(self) -> Option<KeyRecorder> {
        self.key_recorder
    }

    /// Returns a variable of the service's environment, which may be empty. A value that is not UTF-8 is an error of
    /// the whole configuration; where a key names the variable, use [`Self::try_env`].
    pub(crate) fn env(&self, name: &str) -> Option<String> {
        self.try_env(name).unwrap_or_else(|_not_utf_8| {
            self.report_non_utf8_variable(name);
            None
        })
    }

    /// Returns a variable of the service's environment that a key names.
    ///
    /// # Errors
    /// Fails if the value is not UTF-8.
    pub(crate) fn try_env(&self, name: &str) -> Result<Option<String>, NotUtf8> {
        (self.env)(name).map(OsString::into_string).transpose().map_err(|_bytes| NotUtf8)
    }

    /// Records once that a variable is not UTF-8, as it would otherwise count as not set.
    fn report_non_utf8_variable(&self, name: &str) {
        if self.non_utf8_variables.borrow_mut().insert(name.to_owned()) {
            let position =
                SourcePosition { key_path: String::new(), span: 0..0, may_quote_source: false };
            let message =
                format!("the variable `{name}` of the service's environment is not UTF-8");
            self.report_error(&position, message);
        }
    }

    /// Returns a variable of the service's environment that names a path or an address; an empty one names none.
    pub(crate) fn nonempty_env(&self, name: &str) -> Option<String> {
        self.env(name).filter(|value| !value.is_empty())
    }

    /// Returns a variable of the service's environment, or the reason why there is none.
    pub(crate) fn required_env(&self, name: &str) -> Result<String, String> {
        match self.try_env(name) {
            Ok(Some(value)) => Ok(value),
            Ok(None) => Err(VARIABLE_NOT_SET.to_owned()),
            Err(NotUtf8) => Err(VARIABLE_NOT_UTF_8.to_owned()),
        }
    }

    /// Returns a variable of the service's environment with a credential, or the reason why there is none.
    pub(crate) fn credential_env(&self, name: &str) -> Result<String, String> {
        match self.required_env(name)? {
            value if value.is_empty() => Err("this variable is empty".to_owned()),
            value => Ok(value),
        }
    }

    /// Resolves a path relative to the file's folder.
    pub(crate) fn resolve_path(&self, path: &str) -> PathBuf {
        self.folder.join(path)
    }

    /// Reads a file that contains a secret, without the line break at its end.
    pub(crate) fn read_secret_file(&self, path: &Path) -> io::Result<String> {
        // Registered before it is read: a missing file that appears later is a change of the configuration too.
        self.referenced_files.borrow_mut().push(path.to_owned());
        self.secret_files.borrow_mut().push(path.to_owned());
        read_secret_file(path)
    }

    /// Registers a text that must be redacted everywhere.
    pub(crate) fn register_secret(&self, value: &str) {
        let mut secrets = self.secrets.borrow_mut();
        // An empty secret would match at every position of a text.
        if !value.is_empty() && !secrets.iter().any(|known| known == value) {
            secrets.push(value.to_owned());
        }
    }

    /// Registers a secret of another program or service. One that is too short to be recognized causes a warning.
    pub(crate) fn register_secret_or_warn(&self, position: &SourcePosition, value: &str) {
        if value.is_empty() || is_redactable(value) {
            return self.register_secret(value); // An empty one reveals nothing.
        }
        let min = Redactor::MIN_VALUE_CHARS;
        let message =
            format!("a secret of fewer than {min} characters is not redacted in the output");
        self.report_warning(position, message);
    }

    /// Records a fault that makes the configuration unusable.
    pub(crate) fn report_error(
        &self,
        position: &SourcePosition,
        diagnostic: impl Into<DiagnosticBuilder>,
    ) {
        self.record_fault(Severity::Error, position, diagnostic.into());
    }

    /// Records a fault that the author should know.
    pub(crate) fn report_warning(
        &self,
        position: &SourcePosition,
        diagnostic: impl Into<DiagnosticBuilder>,
    ) {
        self.record_fault(Severity::Warning, position, diagnostic.into());
    }

    /// Records a fault at a position.
    pub(crate) fn record_fault(
        &self,
        severity: Severity,
        position: &SourcePosition,
        diagnostic: DiagnosticBuilder,
    ) {
        let source_texts = self.source_texts.borrow();
        let Some(text) = source_texts.iter().rfind(|text| text.offset <= position.span.start)
        else {
            return;
        };
        let (line, column) = text.line_and_column(position.span.start);
        let fault = ConfigFault {
            file: text.file.clone(),
            line,
            column,
            key_path: position.key_path.clone(),
            value: text.excerpt(position),
            code: diagnostic.code_for(severity),
            message: diagnostic.message,
            hint: diagnostic.hint,
            severity,
        };
        self.faults.borrow_mut().push(fault);
    }

    /// Returns the number of faults so far.
    pub(crate) fn fault_count(&self) -> usize {
        self.faults.borrow().len()
    }

    /// Ends the reading.
    pub(crate) fn into_result(self) -> ReadResult {
        let to_file = |text: SourceText| ConfigTextFile { file: text.file, text: Some(text.text) };
        let config_files = self.source_texts.into_inner().into_iter().map(to_file).collect();
        ReadResult {
            faults: self.faults.into_inner(),
            referenced_files: self.referenced_files.into_inner(),
            secret_files: self.secret_files.into_inner(),
            config_files,
            secrets: self.secrets.into_inner(),
        }
    }
}

impl SourceText {
    /// Returns line and column of a byte, from 1, the column in characters.
    fn line_and_column(&self, byte_offset: usize) -> (usize, usize) {
        let before = self.text.get(..byte_offset - self.offset).unwrap_or(&self.text);
        let line = before.split('\n').next_back().unwrap_or_default();
        (before.matches('\n').count() + 1, line.chars().count() + 1)
    }

    /// Returns the first line of the text at a position, shortened.
    fn excerpt(&self, position: &SourcePosition) -> Option<String> {
        let span = position.span.start - self.offset..position.span.end.checked_sub(self.offset)?;
        let written = self.text.get(span).filter(|_| position.may_quote_source)?;
        let line = written.lines().next().filter(|line| !line.is_empty())?;
        let mut excerpt: String = line.chars().take(MAX_EXCERPT_CHARS).collect();
        if excerpt.len() < written.len() {
            excerpt.push('…');
        }
        Some(excerpt)
    }
}
