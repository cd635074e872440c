//! The A2A protocol: core shapes and dialects.

pub mod v0_3;
pub mod v1;

/// Values of `{{ param.x }}` travel in a message's metadata under this name.
pub const PARAMETERS: &str = "https://algonius.dev/a2a/ext/parameters/v1";
