//! Report of a reload: for its requester, in `/status`, and in the log.

use algonius_actors::model::code::Code;
use algonius_actors::model::failure::Failure;

use crate::StartError;
use crate::config::{ConfigFault, ConfigFaults, Severity};
use crate::wire::admin::{Changes, ConfigurationError, ReloadResult};

/// Returns the errors of an invalid configuration.
pub(super) fn configuration_errors(faults: &ConfigFaults) -> Vec<ConfigurationError> {
    faults
        .iter()
        .filter(|fault| fault.severity == Severity::Error)
        .map(configuration_error)
        .collect()
}

/// Returns a fault with its place. The file is named without its folder, because many callers read `/status`.
pub(super) fn configuration_error(fault: &ConfigFault) -> ConfigurationError {
    let file = fault.file.file_name().map(|name| name.to_string_lossy().into_owned());
    let nonzero = |number: usize| (number > 0).then_some(number);
    ConfigurationError {
        file,
        line: nonzero(fault.line),
        column: nonzero(fault.column),
        key: Some(fault.key_path.clone()).filter(|key| !key.is_empty()),
        message: fault.message.clone(),
        hint: fault.hint.clone(),
    }
}

/// Returns the reason why a valid configuration was not applied.
pub(super) fn rejection(error: &StartError) -> ConfigurationError {
    let key = match error {
        StartError::AnonymousAccess { agent }
        | StartError::Sandbox { agent, .. }
        | StartError::Home { agent, .. }
        | StartError::ControlGroup { agent, .. } => Some(format!("agents.{agent}")),
        StartError::BackendSandbox { backend, .. }
        | StartError::BackendControlGroup { backend, .. } => Some(backend.section()),
        StartError::TokenFile { .. } | StartError::ShortToken => {
            Some("server.token_file".to_owned())
        }
        _ => None,
    };
    let message = match error {
        // The cause may contain paths of this machine.
        StartError::Ledger(_) | StartError::Store(_) => {
            tracing::error!(%error, "the configuration could not be applied");
            "the ledger could not be reached; see the log for the cause".to_owned()
        }
        StartError::UntrustedFiles(untrusted) => {
            tracing::error!(%error, "the configuration could not be applied");
            untrusted.describe_without_paths()
        }
        _ => error.to_string(),
    };
    ConfigurationError { file: None, line: None, column: None, key, message, hint: None }
}

/// Returns the failure if the ledger is at fault, and not the configuration.
pub(super) fn ledger_failure(error: &StartError) -> Option<Failure> {
    let is_ledger_failure = matches!(error, StartError::Ledger(_) | StartError::Store(_));
    let message = "the ledger could not be reached; the configuration before stays in force";
    is_ledger_failure.then(|| Failure::new(Code::LedgerUnavailable, message))
}

/// Logs the result of a reload.
pub(super) fn log_result(reload_result: &ReloadResult, reason: &str) {
    let ReloadResult { generation, applied, pending, rejected, warnings } = reload_result;
    for warning in warnings {
        tracing::warn!(%warning, "configuration");
    }
    for error in rejected {
        tracing::error!(reason, wrong = %error, "configuration rejected: the one before stays in force");
    }
    if rejected.is_empty() {
        let Changes { added, changed, removed } = &applied.agents;
        let tokens = &applied.tokens;
        let tokens: Vec<_> =
            [&tokens.added, &tokens.changed, &tokens.removed].into_iter().flatten().collect();
        let schedule_changes = &applied.schedules;
        let schedules: Vec<_> =
            [&schedule_changes.added, &schedule_changes.changed, &schedule_changes.removed]
                .into_iter()
                .flatten()
                .collect();
        let settings = &applied.settings;
        tracing::info!(
            generation,
            reason,
            ?added,
            ?changed,
            ?removed,
            ?settings,
            ?tokens,
            ?schedules,
            ?pending,
            "configuration read"
        );
    }
}
