//! Process tree of a running program, for its driver.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use algonius_actors::model::execution::usage::ResourceUsage;
use algonius_actors::model::host::resources::{CgroupLimitEvents, Controllers};
use async_trait::async_trait;
use tokio::runtime::Handle;
use tokio::time::timeout;

use super::holder_link::HolderLink;
use super::program::{ProgramHandle, ProgramState};
use crate::confinement::cgroup::{ControlGroup, end_group};
use crate::process::kill_leftovers;
use crate::process::process_scan::ProcessScanner;
use crate::protocol::frame::HolderOrder;
use crate::{ProcessTree, SpawnedProgram, UsageGauge};

/// Takes over a program after its launch was ordered, or after it was found, under this takeover number.
///
/// # Errors
/// Fails if the program could not be started, with the system's error number if there is one.
pub(crate) async fn attach_to_program(
    link: Arc<HolderLink>,
    (program, takeover_number): (Arc<ProgramHandle>, u32),
    scanner: Arc<ProcessScanner>,
    group: Option<Arc<ControlGroup>>,
) -> io::Result<SpawnedProgram> {
    let tree = HeldTree {
        link,
        program: Arc::clone(&program),
        takeover_number,
        scanner,
        group,
        is_released: false,
    };
    let state = program
        .wait_until_or_lost(|state| state.pid.is_some() || state.launch_errno.is_some())
        .await;
    if let Some(errno) = state.launch_errno {
        return Err(tree.release_after_failed_launch(io::Error::from_raw_os_error(errno)).await);
    }
    let Some(pid) = state.pid else { return Err(io::ErrorKind::ConnectionAborted.into()) };
    let [stdout, stderr] = program.open_streams().await?;
    let (holder_link, program_number) = (Arc::clone(&tree.link), program.program_number());
    let close =
        move || holder_link.send_order(HolderOrder::CloseStdin { program_number }, Vec::new());
    let stdin_journal = program.attach_stdin_journal(Box::new(close)).await?;
    Ok(SpawnedProgram {
        pid,
        scratch_slot: program.scratch_slot(),
        stdin: None,
        stdin_journal,
        stdout: Box::pin(stdout),
        stderr: Box::pin(stderr),
        recordings: program.recordings(),
        memory_account: program.memory_account().clone(),
        exit: Box::pin(program.wait_for_exit()),
        tree: Box::new(tree),
    })
}

/// Time within which a process holder must kill all processes of a program.
const KILL_TIMEOUT: Duration = Duration::from_secs(20);

struct HeldTree {
    link: Arc<HolderLink>,
    program: Arc<ProgramHandle>,
    /// Number of the takeover that drives the program; a later one replaces it.
    takeover_number: u32,
    scanner: Arc<ProcessScanner>,
    /// Control group of the program and its descendants.
    group: Option<Arc<ControlGroup>>,
    /// True if the process holder was ordered to forget the program.
    is_released: bool,
}

impl HeldTree {
    /// Releases a program that did not start.
    async fn release_after_failed_launch(mut self, error: io::Error) -> io::Error {
        self.is_released = true;
        self.link.release_program(self.program.program_number());
        end_group(self.group.as_ref()).await;
        error
    }
}

#[async_trait]
impl ProcessTree for HeldTree {
    fn terminate(&self) {
        self.link.send_order(
            HolderOrder::Terminate { program_number: self.program.program_number() },
            Vec::new(),
        );
    }

    fn kill(&self) {
        if self.program.state().may_have_live_processes() {
            self.link.send_order(
                HolderOrder::Kill { program_number: self.program.program_number() },
                Vec::new(),
            );
            if let Some(group) = self.group.as_ref().filter(|_| !self.link.is_detached()) {
                group.kill();
            }
        }
    }

    fn may_have_live_processes(&self) -> bool {
        self.program.state().may_have_live_processes()
    }

    fn gauge(&self) -> UsageGauge {
        let pid = self.program.state().pid.unwrap_or_default();
        UsageGauge::new(pid, self.program.label(), Arc::clone(&self.scanner))
    }

    fn final_usage(&self) -> Option<ResourceUsage> {
        let end = self.program.state().end.filter(|end| end.peak_memory_kib > 0)?;
        Some(ResourceUsage {
            cpu_ms: end.cpu_micros / 1000,
            peak_memory_bytes: end.peak_memory_kib * 1024,
        })
    }

    async fn wait_until_taken_over(&self) {
        self.program.wait_for_next_takeover(self.takeover_number).await;
    }

    fn enforced_controllers(&self) -> Controllers {
        self.group.as_ref().map(|group| group.enforced_controllers()).unwrap_or_default()
    }

    fn limit_events(&self) -> CgroupLimitEvents {
        self.group.as_ref().map(|group| group.limit_events()).unwrap_or_default()
    }

    async fn kill_all_processes(&self) -> u64 {
        kill_program_and_remove_group(&self.link, &self.program, self.group.as_ref()).await
    }
}

/// Kills all processes of a program, and removes its group; returns the number of killed processes.
async fn kill_program_and_remove_group(
    link: &HolderLink,
    program: &ProgramHandle,
    group: Option<&Arc<ControlGroup>>,
) -> u64 {
    // A program that is left to the next process instance of the service keeps its group.
    let group = group.filter(|group| !group.is_removed() && !link.is_detached());
    if let Some(group) = group {
        group.kill();
    }
    let killed = kill_processes(link, program).await;
    end_group(group.filter(|_| !link.is_detached())).await;
    killed
}

async fn kill_processes(link: &HolderLink, program: &ProgramHandle) -> u64 {
    if !program.state().may_have_live_processes() {
        return program.state().killed_process_count.unwrap_or_default();
    }
    link.send_order(HolderOrder::Kill { program_number: program.program_number() }, Vec::new());
    match timeout(
        KILL_TIMEOUT,
        program.wait_until_or_lost(|state| state.killed_process_count.is_some()),
    )
    .await
    {
        Ok(ProgramState {
            killed_process_count: Some(killed), survivor_count: survivors, ..
        }) => {
            if survivors > 0 {
                tracing::error!(survivors, "failed to kill process of agent");
            }
            killed
        }
        Ok(_lost) => kill_leftovers::kill_labelled(program.label()).await as u64,
        Err(_elapsed) => {
            tracing::error!(pid = program.state().pid, "process holder did not end a program");
            0
        }
    }
}

impl Drop for HeldTree {
    fn drop(&mut self) {
        if self.is_released || self.takeover_number != self.program.latest_takeover_number() {
            return;
        }
        let (link, program) = (Arc::clone(&self.link), Arc::clone(&self.program));
        let group = self.group.take().filter(|group| !group.is_removed());
        if !program.state().may_have_live_processes() && group.is_none() {
            return link.release_program(program.program_number());
        }
        // If the whole service stops, the next process instance takes over the held programs.
        let Ok(runtime) = Handle::try_current() else { return };
        runtime.spawn(async move {
            kill_program_and_remove_group(&link, &program, group.as_ref()).await;
            link.release_program(program.program_number());
        });
    }
}
