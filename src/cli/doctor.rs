//! `algonius doctor`: what keeps the service from working as promised, and what can be done.

mod agents;
mod machine;
mod places;
mod standing;
mod version;

use std::path::Path;

use algonius_actors::model::rungs::Rungs;
use serde::Serialize;
use serde_json::json;

use super::fault::CliError;
use super::out::Out;
use super::service::installed::Installed;
use crate::config::{self, Checked};
use crate::rungs;

/// How much a finding weighs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Weight {
    Good,
    Warning,
    Bad,
}

/// Something that was looked at. What is not good has a way to mend it.
#[derive(Debug, Serialize)]
pub(super) struct Finding {
    about: String,
    pub(super) weight: Weight,
    text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    fix: Option<String>,
}

impl Finding {
    pub(super) fn good(about: impl Into<String>, text: impl Into<String>) -> Self {
        Self { about: about.into(), weight: Weight::Good, text: text.into(), fix: None }
    }

    pub(super) fn warning(about: &str, text: impl Into<String>, fix: impl Into<String>) -> Self {
        let (about, text, fix) = (about.to_owned(), text.into(), Some(fix.into()));
        Self { about, weight: Weight::Warning, text, fix }
    }

    pub(super) fn bad(about: &str, text: impl Into<String>, fix: impl Into<String>) -> Self {
        let (about, text, fix) = (about.to_owned(), text.into(), Some(fix.into()));
        Self { about, weight: Weight::Bad, text, fix }
    }
}

/// Looks and prints. Needs no service. Without a file, what an installed unit is started with is looked
/// at; what it is started with decides in any case where agents are looked up.
///
/// # Errors
/// When something keeps the service from working.
pub(super) async fn run(file: Option<&Path>, out: &Out) -> Result<(), CliError> {
    let rungs = rungs();
    let unit = Installed::find().filter(|unit| file.is_none_or(|file| unit.starts(file)));
    let mut findings = machine::look(&rungs);
    findings.push(unit.as_ref().map_or_else(not_installed, Installed::finding));
    let env = |name: &str| Installed::variable_of(unit.as_ref(), name);
    let read = match file.or(unit.as_ref().map(|unit| unit.config.as_path())) {
        Some(file) => config::load(file, &env),
        None => config::load_shipped(&env),
    };
    match read {
        Ok(Checked { settings, warnings }) => {
            findings.extend(warnings.iter().map(|fault| {
                let fix =
                    fault.hint.clone().unwrap_or_else(|| "see docs/configuration.md".to_owned());
                Finding::warning("configuration", fault.to_string(), fix)
            }));
            findings.extend(places::look(&settings, unit.as_ref().map(Installed::variables)));
            findings.push(standing::door(&settings.server).await);
            findings.extend(agents::look(&settings, &rungs, env("PATH")).await);
        }
        Err(faults) => {
            let fix = "mend what is told here; `algonius check` tells it again";
            findings.push(Finding::bad("configuration", faults.to_string(), fix));
        }
    }
    let bad = findings.iter().filter(|finding| finding.weight == Weight::Bad).count();
    print(&rungs, &findings, out);
    if bad == 0 { Ok(()) } else { Err(CliError::Unsound { bad }) }
}

fn not_installed() -> Finding {
    Finding::good("service", "not installed under systemd; agents are looked up in this PATH")
}

impl Installed {
    /// On what it is started, and where agents are looked up.
    pub(super) fn finding(&self) -> Finding {
        let (unit, config) = (self.unit.display(), self.config.display());
        let path = self.variable("PATH").unwrap_or_default();
        let text = format!("{unit} starts it on {config}, and agents are looked up in {path}");
        Finding::good("service", text)
    }
}

fn print(rungs: &Rungs, findings: &[Finding], out: &Out) {
    if out.is_json() {
        return out.shape(&json!({"rungs": rungs, "findings": findings}));
    }
    print_findings(findings, out);
}

/// A line for each, and how to mend it.
pub(super) fn print_findings(findings: &[Finding], out: &Out) {
    for Finding { about, weight, text, fix } in findings {
        let mark = match weight {
            Weight::Good => "good   ",
            Weight::Warning => "warning",
            Weight::Bad => "BAD    ",
        };
        out.line(&format!("{mark}  {about}: {text}"));
        if let Some(fix) = fix {
            out.line(&format!("           fix: {fix}"));
        }
    }
}
