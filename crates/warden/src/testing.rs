//! Process holders for tests of this crate and of its embedders: the test program itself is the holder.

use std::io;
use std::path::Path;
use std::time::Duration;

use nix::sys::socket::{SockType, getsockopt, sockopt};
use nix::sys::wait::waitpid;
use nix::unistd::{ForkResult, fork};
use uuid::Uuid;

use crate::confinement::cgroup::CgroupRoot;
use crate::output::memory_account::OutputMemory;
use crate::process_holders::{HolderCommand, ProcessHolderOptions};

/// Upper bound of each wait of a holder in tests.
pub const WAIT_TIMEOUT: Duration = Duration::from_secs(20);

/// Serves as a process holder and does not return, if [`process_holder_options`] started this process. Returns at once
/// otherwise. A test program that starts holders has one test that only calls this function.
///
/// The harness has a thread of its own, and a process holder has only one, so the holder is a child of this process.
#[expect(unsafe_code, reason = "a fork of a process with threads")]
#[expect(clippy::exit, clippy::disallowed_methods, reason = "the harness must print nothing")]
pub fn serve_if_started_as_holder() {
    if !matches!(getsockopt(&io::stdin(), sockopt::SockType), Ok(SockType::SeqPacket)) {
        return;
    }
    // SAFETY: the one other thread waits for this test, and holds nothing that the child needs.
    let code = match unsafe { fork() } {
        Ok(ForkResult::Parent { child }) => i32::from(waitpid(child, None).is_err()),
        Ok(ForkResult::Child) => {
            let served = crate::startup::forbid_inspection_and_adopt_orphans()
                .and_then(|()| crate::startup::serve_as_holder(std::iter::empty()));
            i32::from(served.is_err())
        }
        Err(_) => 1,
    };
    std::process::exit(code);
}

/// Returns the options of a process holder that is this test program; `test_name` is the full name of the test that
/// calls [`serve_if_started_as_holder`].
#[must_use]
pub fn process_holder_options(
    test_name: &str,
    runtime_dir: &Path,
    data_dir_id: Uuid,
) -> ProcessHolderOptions {
    let args = [test_name, "--exact", "--nocapture"].into_iter().map(Into::into).collect();
    let command = HolderCommand { program: "/proc/self/exe".into(), args };
    let (runtime_dir, memory) = (runtime_dir.to_owned(), OutputMemory::with_limit(256 << 20));
    ProcessHolderOptions {
        command,
        runtime_dir,
        data_dir_id,
        reattach_grace: WAIT_TIMEOUT,
        control_groups: None,
        output_memory: memory,
    }
}

/// Prepares a folder that simulates a delegated control group, with every controller, in which these processes are. Its
/// files are plain: they have no effect as in a kernel.
///
/// # Errors
/// Fails if a file cannot be written.
pub fn create_simulated_cgroup(folder: &Path, processes: &[u32]) -> io::Result<CgroupRoot> {
    let processes: String = processes.iter().map(|pid| format!("{pid}\n")).collect();
    for (name, text) in [
        ("cgroup.type", "domain\n"),
        ("cgroup.controllers", "cpuset cpu io memory pids\n"),
        ("cgroup.subtree_control", "cpu\n"),
        ("cgroup.procs", &processes),
    ] {
        std::fs::write(folder.join(name), text)?;
    }
    Ok(CgroupRoot::new(folder))
}
