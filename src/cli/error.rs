//! Errors of commands, with their exit codes.

pub(super) mod add_agent;
pub(super) mod service;

use std::path::PathBuf;

use crate::config::ConfigFaults;
use crate::platform::tls::TlsError;
use crate::wire::admin::ConfigurationError;
use crate::{StartError, wire::api::ErrorBody};
use add_agent::AddAgentError;
use service::ServiceCommandError;

/// Error of a command.
#[derive(Debug, thiserror::Error)]
pub(super) enum CliError {
    /// The address is not a URL of a service.
    #[error(
        "`{url}` is not an address of the service: it must begin with `http://` or `https://`, and have a port from 1 to 65535 or none"
    )]
    InvalidUrl { url: String },
    /// No service responds.
    #[error("no service answers at {url}; start one with `algonius serve`")]
    Unreachable { url: String, source: hyper_util::client::legacy::Error },
    /// A server responds, but its identity cannot be verified.
    #[error("nothing was sent to {url}: {reason}")]
    InsecureConnection { url: String, reason: String },
    /// The certificate authorities cannot be read.
    #[error("no authority can be trusted: {0}")]
    InvalidCertificateAuthorities(TlsError),
    /// The connection was lost.
    #[error("the connection to the service broke")]
    ConnectionLost { source: hyper::Error },
    /// No token was found.
    #[error("there is no token in {}; name one by --token-file", file.display())]
    NoToken { file: PathBuf, source: std::io::Error },
    /// The environment names no folder for the token.
    #[error(
        "neither XDG_STATE_HOME nor HOME is set, so there is no place for the token; set HOME, or name an existing \
         token by --token-file"
    )]
    NoTokenFolder,
    /// The response is not one of this service.
    #[error("the answer is not one of this service: {reason}")]
    UnexpectedResponse { reason: &'static str },
    /// The response has other members than this service gives: the service may be of another release.
    #[error("the answer has another form than this program reads")]
    UnreadableResponse { source: serde_json::Error },
    /// Another program answered, such as a proxy.
    #[error("the answer is not one of this service: HTTP {status}, {media_type}")]
    ForeignResponse { status: u16, media_type: String },
    /// The service refused the request.
    #[error("{}\n  hint: {} ({})", .0.message, .0.hint, .0.code)]
    RequestRefused(ErrorBody),
    /// No error has this code.
    #[error("there is no error code `{code}`\n  hint: {hint}")]
    UnknownCode { code: String, hint: String },
    /// A part of an id names several tasks.
    #[error("`{id}` is a part of several ids; give more of it:{}", candidate_lines(.candidates, *.has_more))]
    AmbiguousId { id: String, candidates: Vec<String>, has_more: bool },
    /// The service refuses requests for a known time.
    #[error("{}", too_many_requests_message(.error_body, *.seconds))]
    TooManyRequests { error_body: ErrorBody, seconds: u64 },
    /// The service rejected its configuration.
    #[error("{}", rejection_message(.error_body, .faults))]
    ConfigurationRejected { error_body: ErrorBody, faults: Vec<ConfigurationError> },
    /// The agent did not succeed.
    #[error("{message}")]
    ExecutionNotSucceeded { message: String, error_body: Option<ErrorBody> },
    /// The configuration is invalid.
    #[error("{0}")]
    InvalidConfiguration(ConfigFaults),
    /// Agents of the configuration have no program on this machine.
    #[error("{agents} of the agents are unavailable: their programs are not installed")]
    UnavailableAgents { agents: usize },
    /// A unit would start a service whose `PATH` lacks programs.
    #[error("{}", .0.join("\n"))]
    MissingPrograms(Vec<String>),
    /// Some checks of the machine failed.
    #[error("{failed_checks} of these problems prevent the service from working")]
    ChecksFailed { failed_checks: usize },
    /// A file cannot be written or read.
    #[error("{problem} {}", file.display())]
    File { problem: &'static str, file: PathBuf, source: std::io::Error },
    /// The service did not start.
    #[error("{0}")]
    Start(#[from] StartError),
    /// systemd is not available or refused the request.
    #[error("{0}")]
    Service(#[from] ServiceCommandError),
    /// An agent was not added.
    #[error("{0}")]
    AddAgent(#[from] AddAgentError),
    /// The message cannot be read.
    #[error("standard input could not be read")]
    Input { source: std::io::Error },
    /// The output cannot be written.
    #[error("standard output could not be written")]
    Output { source: std::io::Error },
    /// The output about a task cannot be written.
    #[error("standard output could not be written; `algonius tasks show {task_id}` shows the task")]
    ExecutionOutput { task_id: String, source: std::io::Error },
    /// The text of a new token cannot be written, and nobody else has it.
    #[error(
        "the token `{name}` was created, but its text could not be written; \
         `algonius token create {name} --replace` creates another"
    )]
    TokenOutput { name: String, source: std::io::Error },
    /// The text of a token would be lost.
    #[error(
        "the token `{name}` was not created: standard output is closed or discarded, so nobody would get its text"
    )]
    TokenDiscarded { name: String },
}

fn candidate_lines(candidates: &[String], has_more: bool) -> String {
    let lines = candidates.iter().map(|candidate| format!("\n  {candidate}"));
    lines.chain(has_more.then(|| "\n  …".to_owned())).collect()
}

fn rejection_message(error_body: &ErrorBody, faults: &[ConfigurationError]) -> String {
    let mut lines = vec![format!("{} ({})", error_body.message, error_body.code)];
    lines.extend(faults.iter().map(|fault| format!("  {fault}")));
    lines.join("\n")
}

/// Formats the refusal with its remaining time.
fn too_many_requests_message(error_body: &ErrorBody, seconds: u64) -> String {
    let ErrorBody { code, message, hint, .. } = error_body;
    let wait_clause =
        if code == "locked-out" { "wrong tokens are blocked for another" } else { "wait" };
    let remaining = duration_text(seconds);
    format!("{message}; {wait_clause} {remaining}\n  hint: {hint} ({code})")
}

/// Formats a duration in its two largest units.
fn duration_text(seconds: u64) -> String {
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, seconds) => format!("{seconds} s"),
        (0, minutes, seconds) => format!("{minutes} min {seconds} s"),
        (hours, minutes, _) => format!("{hours} h {minutes} min"),
    }
}

impl CliError {
    /// Returns the seconds to wait before the next request, if the service reported them.
    pub(super) const fn retry_after(&self) -> Option<u64> {
        match self {
            Self::TooManyRequests { seconds, .. } => Some(*seconds),
            _ => None,
        }
    }

    /// Returns the error of the service, if there is one.
    pub(super) const fn error_body(&self) -> Option<&ErrorBody> {
        match self {
            Self::RequestRefused(error_body)
            | Self::TooManyRequests { error_body, .. }
            | Self::ConfigurationRejected { error_body, .. } => Some(error_body),
            Self::ExecutionNotSucceeded { error_body, .. } => error_body.as_ref(),
            _ => None,
        }
    }

    /// Returns true if the reader of standard output has closed it. The text of a token must reach somebody.
    pub(super) fn is_closed_pipe(&self) -> bool {
        matches!(self, Self::Output { source } | Self::ExecutionOutput { source, .. }
            if source.kind() == std::io::ErrorKind::BrokenPipe)
    }

    /// Returns the exit code that the help lists.
    pub(super) fn exit_code(&self) -> u8 {
        match self {
            Self::InvalidUrl { .. }
            | Self::InvalidCertificateAuthorities(_)
            | Self::InvalidConfiguration(_)
            | Self::UnavailableAgents { .. }
            | Self::MissingPrograms(_)
            | Self::AmbiguousId { .. }
            | Self::UnknownCode { .. }
            | Self::ConfigurationRejected { .. } => 4,
            Self::Service(error) => error.exit_code(),
            Self::AddAgent(error) => error.exit_code(),
            Self::NoToken { .. } | Self::NoTokenFolder => 2,
            Self::ExecutionNotSucceeded { .. } => 5,
            Self::RequestRefused(error_body) | Self::TooManyRequests { error_body, .. } => {
                match error_body.code.as_str() {
                    "unauthenticated" | "forbidden" | "locked-out" => 2,
                    "agent-unknown" | "execution-unknown" | "schedule-unknown" => 3,
                    _ => 1,
                }
            }
            Self::Unreachable { .. }
            | Self::InsecureConnection { .. }
            | Self::ConnectionLost { .. }
            | Self::UnexpectedResponse { .. }
            | Self::UnreadableResponse { .. }
            | Self::ForeignResponse { .. }
            | Self::ChecksFailed { .. }
            | Self::File { .. }
            | Self::Start(_)
            | Self::Input { .. }
            | Self::Output { .. }
            | Self::ExecutionOutput { .. }
            | Self::TokenOutput { .. }
            | Self::TokenDiscarded { .. } => 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_shows_its_two_largest_units() {
        let texts = [1, 59, 60, 898, 3600, 7385].map(duration_text);
        let expected = ["1 s", "59 s", "1 min 0 s", "14 min 58 s", "1 h 0 min", "2 h 3 min"];
        assert_eq!(texts, expected);
    }
}
