//! How it is told what came of a reload: to who asked, in `/status`, and in the log.

use algonius_actors::model::code::Code;
use algonius_actors::model::failure::Failure;

use crate::StartError;
use crate::config::{Fault, Faults, Severity};
use crate::wire::admin::{Changes, Reloaded, Wrong};

/// The errors of a configuration that was not understood.
pub(super) fn errors(faults: &Faults) -> Vec<Wrong> {
    faults.iter().filter(|fault| fault.severity == Severity::Error).map(wrong).collect()
}

/// A fault and its place. Its file is told without its folder: `/status` is read by many.
pub(super) fn wrong(fault: &Fault) -> Wrong {
    let file = fault.file.file_name().map(|name| name.to_string_lossy().into_owned());
    let shown = |number: usize| (number > 0).then_some(number);
    Wrong {
        file,
        line: shown(fault.line),
        column: shown(fault.column),
        key: Some(fault.path.clone()).filter(|key| !key.is_empty()),
        message: fault.message.clone(),
        hint: fault.hint.clone(),
    }
}

/// What keeps a configuration that was understood from coming into force.
pub(super) fn unfit(error: &StartError) -> Wrong {
    let key = match error {
        StartError::Open { agent }
        | StartError::Sandbox { agent, .. }
        | StartError::Home { agent, .. }
        | StartError::Group { agent, .. } => Some(format!("agents.{agent}")),
        StartError::Token { .. } | StartError::ShortToken => Some("server.token_file".to_owned()),
        _ => None,
    };
    let message = match error {
        // Its cause may name places of this machine.
        StartError::Ledger(_) | StartError::Store(_) => {
            tracing::error!(%error, "the configuration could not be applied");
            "the ledger could not be reached; the log has the cause".to_owned()
        }
        _ => error.to_string(),
    };
    Wrong { file: None, line: None, column: None, key, message, hint: None }
}

/// What is told where it is not the configuration that is at fault.
pub(super) fn failure(error: &StartError) -> Option<Failure> {
    let is_ledger = matches!(error, StartError::Ledger(_) | StartError::Store(_));
    let message = "the ledger could not be reached; the configuration before stays in force";
    is_ledger.then(|| Failure::new(Code::LedgerUnavailable, message))
}

/// Tells the log.
pub(super) fn log(told: &Reloaded, why: &str) {
    let Reloaded { generation, applied, pending, rejected, warnings } = told;
    for warning in warnings {
        tracing::warn!(%warning, "configuration");
    }
    for wrong in rejected {
        tracing::error!(why, %wrong, "configuration rejected: the one before stays in force");
    }
    if rejected.is_empty() {
        let Changes { added, changed, removed } = &applied.agents;
        let tokens = &applied.tokens;
        let tokens: Vec<_> =
            [&tokens.added, &tokens.changed, &tokens.removed].into_iter().flatten().collect();
        let it = &applied.schedules;
        let schedules: Vec<_> =
            [&it.added, &it.changed, &it.removed].into_iter().flatten().collect();
        let settings = &applied.settings;
        tracing::info!(
            generation,
            why,
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
