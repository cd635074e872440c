//! Bytes to types and back: serde only, no sockets, no actors.
//!
//! The core shapes are those of A2A 1.0 ([`a2a::v1`]); 0.3 is a dialect at the edge
//! ([`a2a::v0_3`]). Every number of an error is chosen in [`problem`].

pub mod a2a;
pub mod admin;
pub mod api;
pub mod base64;
pub mod envelope;
mod fields;
pub mod jsonrpc;
pub mod problem;
mod whole;

pub use fields::placed;
