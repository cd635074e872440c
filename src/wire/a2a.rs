//! The A2A protocol: core shapes and dialects.

pub mod v0_3;
pub mod v1;
