//! Why an agent was not added.

use std::path::PathBuf;

/// Why an agent was not added. Nothing is written then, or it is as it was.
#[derive(Debug, thiserror::Error)]
pub(in crate::cli) enum AddError {
    /// The configuration has it.
    #[error("there is an agent `{id}` already; --id gives this one another name")]
    Exists { id: String },
    /// Something is missing that must be there first.
    #[error("nothing was written: do what is said above, and run this again")]
    NotReady,
    /// Nobody said that it may be written.
    #[error("nothing was written; --yes writes it without asking")]
    NotAgreed,
    /// The service that runs does not take it.
    #[error("the service does not take it, so {} is as it was:\n{told}", file.display())]
    NotTaken { file: PathBuf, told: String },
    /// The service that runs does not read this file.
    #[error(
        "it is written, but the service at this address does not read {}; \
         name the one that does by --url", file.display()
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
