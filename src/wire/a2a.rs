//! The A2A protocol: core shapes and dialects.

mod card;
mod dialect;
mod method;
#[cfg(test)]
mod tests;
pub mod v0_3;
pub mod v1;

pub use card::{CardForm, card};
pub use method::Method;

/// Values of `{{ param.x }}` travel in a message's metadata under this name.
pub const PARAMETERS: &str = "https://algonius.dev/a2a/ext/parameters/v1";

/// A folder to start in and variables travel in a message's metadata under this name.
pub const OVERRIDES: &str = "https://algonius.dev/a2a/ext/overrides/v1";

/// The number after which a stream can be taken up stands in an event's metadata under this name.
pub const CURSOR: &str = "https://algonius.dev/a2a/ext/event-cursor/v1";
