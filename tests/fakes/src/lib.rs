//! Scripted fakes for tests: the paths of their programs.

use std::path::{Path, PathBuf};

/// Returns the path of the fake agent, which cargo builds into the folder of `executable` (such as the running test) or
/// into the parent folder.
///
/// # Panics
/// Panics if it was not built; the message gives the command.
#[must_use]
pub fn fake_agent_path(executable: &Path) -> PathBuf {
    program_path(executable, "fake-agent")
}

/// Returns the path of the fake model, found as [`fake_agent_path`] finds the agent's.
///
/// # Panics
/// Panics if it was not built; the message gives the command.
#[must_use]
pub fn mock_model_path(executable: &Path) -> PathBuf {
    program_path(executable, "mock-model")
}

#[expect(clippy::panic, reason = "a test that lacks its fake must say so and stop")]
fn program_path(executable: &Path, program: &str) -> PathBuf {
    let candidates = executable.ancestors().skip(1).take(2).map(|folder| folder.join(program));
    let program_file = candidates.into_iter().find(|candidate| candidate.is_file());
    program_file.unwrap_or_else(|| {
        panic!("`{program}` is not built; run `cargo build -p algonius-fakes` and try again")
    })
}
