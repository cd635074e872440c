//! Why a service does not start.

use std::io;
use std::net::SocketAddr;

use algonius_actors::model::id::AgentId;
use algonius_actors::ports::ledger::LedgerError;

use crate::store::StoreError;
use crate::tls::TlsError;

/// Why the service did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The address is taken or not ours.
    #[error("cannot listen on {address}; is a service running there? (--listen takes another)")]
    Listen {
        /// Where it was to listen.
        address: SocketAddr,
        /// Why not.
        source: io::Error,
    },
    /// The files of `[server.tls]` do not do.
    #[error("the service cannot speak TLS: {0}")]
    Tls(#[from] TlsError),
    /// An agent lets everybody in, and others can reach it.
    #[error("the agent `{agent}` lets everybody in, which needs an address on loopback")]
    Open {
        /// Which.
        agent: AgentId,
    },
    /// The store did not open.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The ledger did not do what a start needs.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The switches of agents are not what was written.
    #[error(
        "the switches of agents cannot be read; `{file}` in `data_dir` can be removed, then agents are \
         on and off as the configuration says"
    )]
    Switches {
        /// The name of the file.
        file: &'static str,
        /// Why not.
        source: io::Error,
    },
    /// The token file can be neither read nor made.
    #[error("the token file can be neither read nor made")]
    Token {
        /// Why not.
        source: io::Error,
    },
    /// The token in the file is no token.
    #[error("the token in the token file has fewer than 32 characters; remove the file to get one")]
    ShortToken,
    /// Push notifications cannot be sent.
    #[error("push notifications cannot be sent: {cause}")]
    Push {
        /// Why not.
        cause: String,
    },
    /// Nobody can be told of alerts as configured.
    #[error("`alerts.webhook` cannot be told: {cause}")]
    Alerts {
        /// Why not.
        cause: String,
    },
    /// The collector cannot be told as configured.
    #[error("`telemetry.otlp_endpoint` cannot be told: {cause}")]
    Telemetry {
        /// Why not.
        cause: String,
    },
    /// No program could be started here.
    #[error("no warden can be started, which holds the agents' programs: {source}")]
    Warden {
        /// Why not.
        source: io::Error,
    },
    /// The sandbox of an agent is required and cannot be had.
    #[error(
        "this system cannot hold the agent `{agent}` to its sandbox ({means}); \
         `sandbox.required = false` starts it nevertheless"
    )]
    Sandbox {
        /// Which.
        agent: AgentId,
        /// What the machine has to hold it with.
        means: String,
    },
    /// A control group is required for an agent and cannot be had.
    #[error(
        "the agent `{agent}` requires a control group, and {lack}; \
         `resources.group = \"auto\"` starts it nevertheless"
    )]
    Group {
        /// Which.
        agent: AgentId,
        /// What is missing.
        lack: &'static str,
    },
    /// The home of an agent cannot be made.
    #[error("the home of the agent `{agent}` cannot be made: {source}")]
    Home {
        /// Which.
        agent: AgentId,
        /// Why not.
        source: io::Error,
    },
    /// The tree did not start.
    #[error("the supervision tree did not start: {cause}")]
    Tree {
        /// Why not.
        cause: String,
    },
}
