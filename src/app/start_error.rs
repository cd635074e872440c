//! Errors that prevent the start of the service.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use algonius_actors::model::id::AgentId;
use algonius_actors::model::program::backend_program::BackendRole;
use algonius_actors::ports::ledger::LedgerError;
use algonius_store::StoreError;

use crate::app::file_trust::UntrustedFiles;
use crate::platform::tls::TlsError;

/// Error that prevents the start of the service.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The address is in use or not available.
    #[error("cannot listen on {address}; is a service running there? (--listen takes another)")]
    Listen {
        /// Configured listen address.
        address: SocketAddr,
        /// Cause of the failure.
        source: io::Error,
    },
    /// Another user of the machine can read or change a file that the service relies on.
    #[error("the service does not start on files that other users can read or change:\n  {0}")]
    UntrustedFiles(#[from] UntrustedFiles),
    /// The files of `[server.tls]` are unusable.
    #[error("the service cannot speak TLS: {0}")]
    Tls(#[from] TlsError),
    /// An agent accepts every caller, and others can reach it.
    #[error("the agent `{agent}` admits every caller, which needs an address on loopback")]
    AnonymousAccess {
        /// Id of the agent.
        agent: AgentId,
    },
    /// The store did not open.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The ledger failed an operation of the start.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The file with the switches of agents is invalid.
    #[error(
        "the switches of agents cannot be read; `{file}` in `data_dir` can be removed, then agents are \
         on and off as the configuration says"
    )]
    Switches {
        /// Name of the file.
        file: &'static str,
        /// Cause of the failure.
        source: io::Error,
    },
    /// The key of sealed inputs can be neither read nor created.
    #[error("the key of sealed inputs in `runtime_dir` can be neither read nor made")]
    InputKey {
        /// Cause of the failure.
        source: io::Error,
    },
    /// Others can read or replace the key of sealed inputs.
    #[error(
        "the {kind} of the key of sealed inputs is open to other users: `{}`; remove it and a new key is made, \
         or if you trust it: chown it to the user of the service, and chmod 600 the file, 700 the folder",
        path.display()
    )]
    InputKeyExposed {
        /// Kind of the place.
        kind: &'static str,
        /// Path of the place.
        path: PathBuf,
    },
    /// The token file can be neither read nor created.
    #[error("the token file can be neither read nor made")]
    TokenFile {
        /// Cause of the failure.
        source: io::Error,
    },
    /// The token in the file is too short.
    #[error("the token in the token file has fewer than 32 characters; remove the file to get one")]
    ShortToken,
    /// Push notifications cannot be sent.
    #[error("push notifications cannot be sent: {cause}")]
    Push {
        /// Cause of the failure.
        cause: String,
    },
    /// Alerts cannot be sent as configured.
    #[error(
        "`alerts.webhook` cannot be used: {cause}; `alerts.allow` opens addresses of your own network to it"
    )]
    Alerts {
        /// Cause of the failure.
        cause: String,
    },
    /// Telemetry cannot be sent to the collector as configured.
    #[error("`telemetry.otlp_endpoint` cannot be used: {cause}")]
    Telemetry {
        /// Cause of the failure.
        cause: String,
    },
    /// No process holder can be started.
    #[error("no warden can be started, which holds the agents' programs: {source}")]
    Warden {
        /// Cause of the failure.
        source: io::Error,
    },
    /// It cannot be determined which sandboxes work. Without an answer, agents would run without theirs.
    #[error(
        "bubblewrap (`bwrap` on the PATH) cannot be tested: {source}; try again, or repair bubblewrap"
    )]
    SandboxProbe {
        /// Cause of the failure.
        source: io::Error,
    },
    /// The sandbox of an agent is required and not available.
    #[error(
        "this system cannot hold the agent `{agent}` to its sandbox ({mechanisms}){gaps}; \
         `sandbox.required = false` starts it nevertheless"
    )]
    Sandbox {
        /// Id of the agent.
        agent: AgentId,
        /// Sandbox mechanisms of the machine.
        mechanisms: String,
        /// Gaps of the boundary: the actions that remain possible for the agent.
        gaps: String,
    },
    /// The sandbox of a backend program's program is required and not available.
    #[error(
        "this system cannot enforce the sandbox of the {backend} of the agent `{agent}` ({mechanisms}){gaps}; \
         `{} = false` starts the service nevertheless",
        backend.program_key("sandbox.required")
    )]
    BackendSandbox {
        /// Id of the agent.
        agent: AgentId,
        /// Backend program.
        backend: BackendRole,
        /// Sandbox mechanisms of the machine.
        mechanisms: String,
        /// Gaps of the boundary: the actions that remain possible for the program.
        gaps: String,
    },
    /// The user of an agent is not available.
    #[error("the agent `{agent}` cannot run as a user of its own: {cause}")]
    User {
        /// Id of the agent.
        agent: AgentId,
        /// Cause of the failure.
        cause: String,
    },
    /// A control group is required for an agent and not available.
    #[error(
        "the agent `{agent}` requires a control group, and {reason}; \
         `resources.group = \"auto\"` starts it nevertheless"
    )]
    ControlGroup {
        /// Id of the agent.
        agent: AgentId,
        /// Missing capability.
        reason: &'static str,
    },
    /// A control group is required for a backend program and not available.
    #[error(
        "the {backend} of the agent `{agent}` requires a control group, and {reason}; \
         `{} = \"auto\"` starts the service nevertheless",
        backend.program_key("resources.group")
    )]
    BackendControlGroup {
        /// Id of the agent.
        agent: AgentId,
        /// Backend program.
        backend: BackendRole,
        /// Missing capability.
        reason: &'static str,
    },
    /// The home of an agent cannot be created.
    #[error("the home of the agent `{agent}` cannot be made: {source}")]
    Home {
        /// Id of the agent.
        agent: AgentId,
        /// Cause of the failure.
        source: io::Error,
    },
    /// The supervision tree did not start.
    #[error("the supervision tree did not start: {cause}")]
    Tree {
        /// Cause of the failure.
        cause: String,
    },
}
