//! Configured remote agent: an A2A agent of another service.

use crate::model::access::endpoint_config::ProtocolVersion;
use crate::model::push::Secret;

/// Binding over which a remote agent is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum RemoteBinding {
    /// JSON-RPC 2.0 over HTTP.
    #[default]
    JsonRpc,
    /// REST resources over HTTP.
    HttpJson,
}

impl RemoteBinding {
    /// Every binding, the preferred one first.
    pub const ALL: &[Self] = &[Self::JsonRpc, Self::HttpJson];

    /// Returns the name in the configuration.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::JsonRpc => "jsonrpc",
            Self::HttpJson => "http+json",
        }
    }
}

/// Validated remote agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteSpec {
    /// URL of the agent's interface, as its card states it, without a slash at its end.
    pub url: String,
    /// Token for `Authorization: Bearer`; `None` sends no credentials.
    pub token: Option<Secret>,
    /// Version of the protocol.
    pub version: ProtocolVersion,
    /// Binding of the calls.
    pub binding: RemoteBinding,
}
