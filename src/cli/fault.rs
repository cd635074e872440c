//! Why a command did not work, with the exit code that says so to scripts.

use std::path::PathBuf;

use super::agents::fault::AddError;
use super::service::ServiceError;
use crate::config::Faults;
use crate::tls::TlsError;
use crate::wire::admin::Wrong;
use crate::{StartError, wire::api::Trouble};

/// Why a command did not work.
#[derive(Debug, thiserror::Error)]
pub(super) enum CliError {
    /// The address is not one of ours.
    #[error("`{url}` is not an address of the service: it must begin with `http://` or `https://`")]
    Address { url: String },
    /// Nobody answers.
    #[error("no service answers at {url}; start one with `algonius serve`")]
    Unreachable { url: String, source: hyper_util::client::legacy::Error },
    /// Somebody answers, but it cannot be said that it is the service.
    #[error("nothing was sent to {url}: {why}")]
    Insecure { url: String, why: String },
    /// The authorities cannot be read.
    #[error("no authority can be trusted: {0}")]
    Authorities(TlsError),
    /// The connection broke.
    #[error("the connection to the service broke")]
    Broken { source: hyper::Error },
    /// There is no token.
    #[error("there is no token in {}; name one by --token-file", file.display())]
    NoToken { file: PathBuf, source: std::io::Error },
    /// A service answers, but not ours.
    #[error("the answer is not one of this service: {about}")]
    Strange { about: &'static str },
    /// The service refuses.
    #[error("{}\n  hint: {} ({})", .0.message, .0.hint, .0.code)]
    Refused(Trouble),
    /// The service does not take its configuration.
    #[error("{}", told(.trouble, .faults))]
    Rejected { trouble: Trouble, faults: Vec<Wrong> },
    /// The agent was asked and did not succeed.
    #[error("{message}")]
    NotDone { message: String, trouble: Option<Trouble> },
    /// The configuration is wrong.
    #[error("{0}")]
    Configuration(Faults),
    /// The machine lacks something.
    #[error("{bad} of these keep the service from working")]
    Unsound { bad: usize },
    /// A file could not be written or read.
    #[error("{what} {}", file.display())]
    File { what: &'static str, file: PathBuf, source: std::io::Error },
    /// The service did not start.
    #[error("{0}")]
    Start(#[from] StartError),
    /// systemd was not to be had, or did not do what was asked.
    #[error("{0}")]
    Service(#[from] ServiceError),
    /// An agent was not added.
    #[error("{0}")]
    Add(#[from] AddError),
    /// The message could not be read.
    #[error("standard input could not be read")]
    Input { source: std::io::Error },
    /// The answer could not be written.
    #[error("standard output could not be written")]
    Output { source: std::io::Error },
}

fn told(trouble: &Trouble, faults: &[Wrong]) -> String {
    let mut lines = vec![format!("{} ({})", trouble.message, trouble.code)];
    lines.extend(faults.iter().map(|fault| format!("  {fault}")));
    lines.join("\n")
}

impl CliError {
    /// What the service said of it, where it did.
    pub(super) const fn trouble(&self) -> Option<&Trouble> {
        match self {
            Self::Refused(trouble) => Some(trouble),
            Self::Rejected { trouble, .. } => Some(trouble),
            Self::NotDone { trouble, .. } => trouble.as_ref(),
            _ => None,
        }
    }

    /// The exit code, as the help lists them.
    pub(super) fn exit_code(&self) -> u8 {
        match self {
            Self::Address { .. }
            | Self::Authorities(_)
            | Self::Configuration(_)
            | Self::Rejected { .. } => 4,
            Self::Service(error) => error.exit_code(),
            Self::Add(error) => error.exit_code(),
            Self::NoToken { .. } => 2,
            Self::NotDone { .. } => 5,
            Self::Refused(trouble) => match trouble.code.as_str() {
                "unauthenticated" | "forbidden" => 2,
                "agent-unknown" | "execution-unknown" | "schedule-unknown" => 3,
                _ => 1,
            },
            Self::Unreachable { .. }
            | Self::Insecure { .. }
            | Self::Broken { .. }
            | Self::Strange { .. }
            | Self::Unsound { .. }
            | Self::File { .. }
            | Self::Start(_)
            | Self::Input { .. }
            | Self::Output { .. } => 1,
        }
    }
}
