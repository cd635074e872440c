//! Diagnostics about positions, before they become faults.

use super::fault::{FaultCode, Severity};
use super::suggestion::{nearest_word, renamed_key};

/// Diagnostic about a position: the message and an optional hint.
pub(crate) struct DiagnosticBuilder {
    pub(crate) code: Option<FaultCode>,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
}

impl DiagnosticBuilder {
    /// Adds a suggestion for the author.
    pub(crate) fn with_hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// Sets the code of the diagnostic.
    pub(crate) fn with_code(self, code: FaultCode) -> Self {
        Self { code: Some(code), ..self }
    }

    /// Returns the code: the one that was set, or the one that the severity implies.
    pub(crate) fn code_for(&self, severity: Severity) -> FaultCode {
        self.code.unwrap_or(match severity {
            Severity::Error if self.message == MISSING_KEY_MESSAGE => FaultCode::MissingKey,
            Severity::Error => FaultCode::InvalidValue,
            Severity::Warning => FaultCode::Advice,
            Severity::WarningWhileDisabled => FaultCode::MissingWhileDisabled,
            Severity::AgentUnavailable => FaultCode::ProgramMissing,
        })
    }

    /// Adds the nearest of the `known` words, or all of them if none is near.
    pub(crate) fn suggest_from<'w>(
        self,
        unknown: &str,
        known: impl IntoIterator<Item = &'w str>,
    ) -> Self {
        let known: Vec<&str> = known.into_iter().collect();
        if let Some(current) = renamed_key(unknown).filter(|current| known.contains(current)) {
            return self.with_hint(format!("its name is now `{current}`"));
        }
        match nearest_word(unknown, &known) {
            Some(word) => self.with_hint(format!("did you mean `{word}`?")),
            None if known.is_empty() => self,
            None => self.with_hint(format!("known: {}", known.join(", "))),
        }
    }
}

/// Diagnostic about a missing key that is required.
const MISSING_KEY_MESSAGE: &str = "is needed";

/// Starts a diagnostic that will get a hint.
pub(crate) fn new_diagnostic(message: impl Into<String>) -> DiagnosticBuilder {
    DiagnosticBuilder { code: None, message: message.into(), hint: None }
}

impl From<&str> for DiagnosticBuilder {
    fn from(message: &str) -> Self {
        new_diagnostic(message)
    }
}

impl From<String> for DiagnosticBuilder {
    fn from(message: String) -> Self {
        new_diagnostic(message)
    }
}
