//! A2A: its operations, and the bindings of both versions that translate to them.

pub mod card;
pub mod dispatch;
pub(super) mod envelope;
pub mod exposure;
pub(super) mod extension;
pub mod grpc;
pub mod jsonrpc;
pub mod operations;
pub mod rest;
pub mod sse;
pub mod streaming;
pub mod task;
pub mod transport_metadata;
pub mod version;
