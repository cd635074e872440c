//! What must not become slow unseen: how programs are started, how sockets are set, and how many
//! instructions the work on bytes takes. What watches it, strace and valgrind, may be absent; then it
//! is said loudly.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a helper that cannot help fails the test")]
#![expect(clippy::print_stdout, reason = "what is not watched is said")]

mod counts;
mod routines;
mod spawning;

use std::process::{Command, Stdio};

/// Whether a tool can watch a program here, for which it must be there and let; where it cannot, that
/// is said.
fn is_there(tool: &str) -> bool {
    let mut asked = Command::new(tool);
    let asked = asked.arg("true").stdout(Stdio::null()).stderr(Stdio::null()).status();
    let is_there = asked.is_ok_and(|status| status.success());
    if !is_there {
        println!("SKIPPED: {tool} cannot be used here, so what it would see is not guarded");
    }
    is_there
}
