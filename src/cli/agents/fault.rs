//! Why an agent was not added.

use std::path::PathBuf;

/// Why an agent was not added. Nothing is written then, or it is as it was.
#[derive(Debug, thiserror::Error)]
pub(in crate::cli) enum AddError {
    /// The configuration has it.
    #[error(
        "there is an agent `{id}` already\n  hint: give this one another name by --id (agent-exists)"
    )]
    Exists { id: String },
    /// Something is missing that must be there first.
    #[error(
        "nothing was written, because something must be there first\n  hint: do what is said \
         above, and run this again (agent-not-ready)"
    )]
    NotReady,
    /// Nobody said that it may be written.
    #[error(
        "nothing was written, because nobody agreed\n  hint: --yes writes it without asking \
         (not-agreed)"
    )]
    NotAgreed,
    /// The service that runs does not take it.
    #[error(
        "the service does not take it, so {} is as it was:\n{told}\n  hint: mend that for the \
         service, whose PATH and variables are its own, and run this again (agent-not-taken)",
        file.display()
    )]
    NotTaken { file: PathBuf, told: String },
    /// The service that runs does not read this file.
    #[error(
        "it is written, but the service at this address does not read {}\n  hint: name the one \
         that does by --url, and try it by `algonius agents test` (configuration-elsewhere)",
        file.display()
    )]
    Elsewhere { file: PathBuf },
}

impl AddError {
    /// The exit code, as the help lists them.
    pub(in crate::cli) const fn exit_code(&self) -> u8 {
        match self {
            Self::Exists { .. } | Self::NotTaken { .. } => 4,
            Self::NotReady | Self::NotAgreed | Self::Elsewhere { .. } => 1,
        }
    }
}
