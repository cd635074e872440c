//! The A2A protocol: core shapes and dialects.

mod card;
mod dialect;
mod operation;
#[cfg(test)]
mod tests;
pub mod v0_3;
pub mod v1;

pub use card::{CardForm, card};
pub use operation::Operation;

/// Values of `{{ param.x }}` travel in a message's metadata under this name.
pub const PARAMETERS: &str = "https://algonius.dev/a2a/ext/parameters/v1";
