//! Results of checks.

use serde::Serialize;

use crate::cli::output::CliOutput;

/// Severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum FindingLevel {
    Good,
    Warning,
    Bad,
}

/// Result of one check. A problem has a suggested fix.
#[derive(Debug, Serialize)]
pub(crate) struct Finding {
    about: String,
    pub(crate) weight: FindingLevel,
    text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    fix: Option<String>,
}

impl Finding {
    pub(crate) fn good(about: impl Into<String>, text: impl Into<String>) -> Self {
        Self { about: about.into(), weight: FindingLevel::Good, text: text.into(), fix: None }
    }

    pub(crate) fn warning(about: &str, text: impl Into<String>, fix: impl Into<String>) -> Self {
        let (about, text, fix) = (about.to_owned(), text.into(), Some(fix.into()));
        Self { about, weight: FindingLevel::Warning, text, fix }
    }

    pub(crate) fn bad(about: &str, text: impl Into<String>, fix: impl Into<String>) -> Self {
        let (about, text, fix) = (about.to_owned(), text.into(), Some(fix.into()));
        Self { about, weight: FindingLevel::Bad, text, fix }
    }
}

/// Prints a line for each finding, with its fix.
pub(crate) fn print_findings(findings: &[Finding], out: &CliOutput) {
    for Finding { about, weight, text, fix } in findings {
        let mark = match weight {
            FindingLevel::Good => "good   ",
            FindingLevel::Warning => "warning",
            FindingLevel::Bad => "BAD    ",
        };
        out.print_line(&format!("{mark}  {about}: {text}"));
        if let Some(fix) = fix {
            out.print_line(&format!("           fix: {fix}"));
        }
    }
}
