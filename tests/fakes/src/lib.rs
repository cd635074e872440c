//! Scripted fake agents for tests: where their program stands.

use std::path::{Path, PathBuf};

/// The fake agent's program, which cargo builds into the folder of the executable `beside` (such
/// as the running test) or into the folder above it.
///
/// # Panics
/// When it was not built; the message says how to build it.
#[must_use]
#[expect(clippy::panic, reason = "a test that lacks its fake must say so and stop")]
pub fn fake_agent_path(beside: &Path) -> PathBuf {
    let places = beside.ancestors().skip(1).take(2).map(|folder| folder.join("fake-agent"));
    let found = places.into_iter().find(|place| place.is_file());
    found.unwrap_or_else(|| {
        panic!("the fake agent is not built; run `cargo build -p algonius-fakes` and try again")
    })
}
