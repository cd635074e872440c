//! HTTP: the listener, its connections and their limits, request bodies, and responses.

pub mod body;
pub mod body_drain;
pub mod body_limits;
mod caller_budget;
pub mod connections;
pub mod counted_connection;
mod lingering_close;
pub mod listen;
pub mod path_param;
pub mod protocol_detect;
pub mod response;
pub mod response_transfer;
pub mod streaming_json;
