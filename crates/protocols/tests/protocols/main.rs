//! Tests of the protocols against recorded agents, invalid agents and arbitrary input.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a helper that cannot help fails the test"
)]

mod acp_contents;
mod acp_faults;
mod acp_openings;
mod claude_and_codex;
mod properties;
mod scripted_connection;
mod step_text;
mod timeline;
mod transcript;
mod transcript_tests;
