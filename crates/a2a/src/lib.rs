//! The A2A protocol: shapes, versions and bindings, for servers and clients. Conversion between bytes and types only,
//! without sockets and actors.
//!
//! The core shapes are those of A2A 1.0 ([`v1`]); A2A 0.3 is a dialect that is translated ([`v0_3`]). The module
//! [`problem`] selects the number of every error.

pub mod base64;
mod card;
pub mod client;
mod dialect;
pub mod grpc;
pub mod interaction;
pub mod json_object;
pub mod jsonrpc;
mod method;
pub mod problem;
#[cfg(test)]
mod tests;
pub mod v0_3;
pub mod v1;
pub mod v1_json;

pub use card::{CardFormat, card_json};
pub use json_object::add_path_params;
pub use method::A2aMethod;

/// Key in the metadata of a message that holds the values of `{{ param.x }}`.
pub const PARAMETERS_EXTENSION: &str = "https://algonius.dev/a2a/ext/parameters/v1";

/// Card extension that states the isolation level of the agent.
pub const ISOLATION_EXTENSION: &str = "https://algonius.dev/a2a/ext/isolation/v1";

/// Card extension that states the kind of an agent that is no program.
pub const AGENT_KIND_EXTENSION: &str = "https://algonius.dev/a2a/ext/kind/v1";

/// Message metadata extension for the working directory and the environment variables of an execution.
pub const OVERRIDES_EXTENSION: &str = "https://algonius.dev/a2a/ext/overrides/v1";

/// Message metadata extension with the number of services that passed the message on: `{"count": 1}`.
pub const HOPS_EXTENSION: &str = "https://algonius.dev/a2a/ext/hops/v1";

/// Member of an artifact's metadata for the number of redacted places.
pub const REDACTED_MEMBER: &str = "redacted";

/// Member of an artifact's metadata about the bytes beyond its limit that are missing: `{"droppedBytes": 1}`.
pub const TRUNCATED_MEMBER: &str = "truncated";

/// Member of [`TRUNCATED_MEMBER`] with the number of missing bytes.
pub const DROPPED_BYTES_MEMBER: &str = "droppedBytes";

/// Extension that adds the standard error of a program to streams, for callers that request it by name.
pub const STDERR_EXTENSION: &str = "https://algonius.dev/a2a/ext/stderr/v1";

/// Event metadata extension that holds the position from which a client can resume a stream.
pub const CURSOR_EXTENSION: &str = "https://algonius.dev/a2a/ext/event-cursor/v1";
