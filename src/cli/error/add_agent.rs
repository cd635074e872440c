//! Errors of `algonius agents add`.

use std::path::PathBuf;
use std::time::Duration;

/// Reason why an agent was not added. The file is unchanged or restored.
#[derive(Debug, thiserror::Error)]
pub(in crate::cli) enum AddAgentError {
    /// The configuration already contains the agent.
    #[error(
        "there is an agent `{id}` already\n  hint: give this one another name by --id (agent-exists)"
    )]
    AgentExists { id: String },
    /// A prerequisite is missing.
    #[error(
        "nothing was written, because a prerequisite is missing\n  hint: follow the steps \
         above, and run this again (agent-not-ready)"
    )]
    NotReady,
    /// The user did not agree to the change.
    #[error(
        "nothing was written, because the change was not confirmed\n  hint: --yes writes it without confirmation \
         (not-agreed)"
    )]
    NotConfirmed,
    /// The running service rejects the agent.
    #[error(
        "the service rejects it, so {} is unchanged:\n{reason}\n  hint: correct that for the \
         service, whose PATH and variables are its own, and run this again (agent-not-taken)",
        file.display()
    )]
    RejectedByService { file: PathBuf, reason: String },
    /// The running service does not read this file.
    #[error(
        "it is written, but the service at this address does not read {}\n  hint: start that service \
         again on this file, or name the one that reads it by --url; then try the agent by \
         `algonius agents test` (configuration-elsewhere)",
        file.display()
    )]
    ServiceReadsOtherFile { file: PathBuf },
    /// The program at the address of the service does not answer.
    #[error(
        "it is written to {}, but nothing at {url} answered within {} s, so the service may not have it yet\n  hint: \
         `algonius status` shows whether a service answers there; `algonius reload` adds the agent then (no-reply)",
        file.display(), timeout.as_secs()
    )]
    NoReply { file: PathBuf, url: String, timeout: Duration },
}

impl AddAgentError {
    /// Returns the exit code that the help lists.
    pub(in crate::cli) const fn exit_code(&self) -> u8 {
        match self {
            Self::AgentExists { .. } | Self::RejectedByService { .. } => 4,
            Self::NotReady
            | Self::NotConfirmed
            | Self::ServiceReadsOtherFile { .. }
            | Self::NoReply { .. } => 1,
        }
    }
}
