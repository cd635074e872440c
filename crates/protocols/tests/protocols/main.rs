//! Tests of the protocols against recorded agents, invalid agents and arbitrary input.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a helper that cannot help fails the test"
)]

mod acp_faults;
mod acp_openings;
mod acp_script;
mod other_protocols;
mod player;
mod properties;
mod show;
mod transcript;
mod transcripts;
