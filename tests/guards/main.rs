//! What must not become slow unseen: how programs are started, how sockets are set, and how many
//! instructions the work on bytes takes. Where strace or valgrind is missing, a test records its skip.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a helper that cannot help fails the test")]

mod counts;
mod routines;
mod system_calls;

use std::process::{Command, Stdio};

use algonius_skips::skip_without;

/// Returns whether a tool can watch a program here; records the skip otherwise.
fn is_available_or_skip(tool: &str) -> bool {
    let mut probe = Command::new(tool);
    let probe = probe.arg("true").stdout(Stdio::null()).stderr(Stdio::null()).status();
    let is_installed = probe.is_ok_and(|status| status.success());
    if !is_installed {
        skip_without(tool);
    }
    is_installed
}
