//! Process holders of a service: its own for new programs, and those of earlier process instances until their programs
//! have ended.

pub(crate) mod held_tree;
pub(crate) mod holder_command;
pub(crate) mod holder_link;
pub(crate) mod holder_options;
mod holder_start;
pub(crate) mod launch_order;
pub(crate) mod program;
pub(crate) mod reattach;
mod runtime_folder;

use std::collections::HashSet;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use algonius_actors::model::execution::AttemptId;
use algonius_actors::model::host::resources::CgroupMode;
use algonius_actors::model::id::ExecutionId;
use async_trait::async_trait;
use tokio::net::unix::pipe::Sender;
use tokio::sync::{Semaphore, watch};
use tokio::time::timeout;

use self::held_tree::attach_to_program;
pub use self::holder_command::HolderCommand;
use self::holder_link::HolderLink;
pub use self::holder_options::ProcessHolderOptions;
use self::holder_start::holder_start_error;
use self::launch_order::{PreparedLaunch, prepare_launch};
use self::program::{LAUNCHER_TAKEOVER_NUMBER, ProgramHandle};
use self::runtime_folder::RuntimeFolder;
use super::confinement::cgroup::{ControlGroup, ControlGroups, end_group};
use super::confinement::network_access::NetworkAccess;
use super::output::memory_account::OutputMemoryUsage;
use super::process::kill_leftovers;
use super::process::process_label::ProcessLabel;
use super::process::process_scan::ProcessScanner;
use super::protocol::frame::{HolderOrder, SecretValue};
use super::startup::can_label_processes;
use super::{
    LaunchRequest, ProgramLauncher, ProgramTakenOver, SpawnedProgram, StdinPipe, StdinSource,
};

/// Time within which a process holder must start or exit, and within which pending launches must end.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(10);

/// Greatest number of concurrent launches: each has up to twelve descriptors in flight.
const MAX_LAUNCHES: u32 = 64;

/// Programs that a service has left to the next process instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DetachedPrograms {
    /// Number of programs that continue.
    pub running: usize,
    /// Number of programs that end, as their agents are configured.
    pub ending: usize,
    /// Time for which the continuing ones wait for the next process instance.
    pub reattach_grace: Duration,
}

/// Process holders of a service.
pub struct ProcessHolders {
    options: ProcessHolderOptions,
    runtime_folder: RuntimeFolder,
    current_link: tokio::sync::Mutex<Option<Arc<HolderLink>>>,
    /// Same link, for callers that cannot wait.
    current_link_snapshot: watch::Sender<Option<Arc<HolderLink>>>,
    earlier_links: Vec<Arc<HolderLink>>,
    /// Secret that each process holder stores in memory for the next process instance of the service.
    successor_secret: OnceLock<Vec<u8>>,
    launch_permits: Semaphore,
    /// True if the latest start of a process holder failed.
    has_failed_start: AtomicBool,
    scanner: Arc<ProcessScanner>,
}

impl ProcessHolders {
    /// Reattaches the process holders of an earlier process instance, kills processes that no process holder holds, and
    /// starts a process holder.
    ///
    /// # Errors
    /// Fails if no process holder can be started, or if programs cannot be labelled here.
    pub async fn start(options: ProcessHolderOptions) -> io::Result<Arc<Self>> {
        // Without labels a process that leaves its session could no longer be found and ended.
        if !can_label_processes() {
            return Err(io::Error::other("the hard limit of file locks (ulimit -x) must be open"));
        }
        let runtime_folder = RuntimeFolder::open(&options)?;
        let (folder, key) = (runtime_folder.descriptor(), runtime_folder.key());
        // Before the search for leftovers, which would otherwise kill the programs that are held.
        let earlier_links = reattach::reattach_holders(&folder, &options, key).await;
        let held_labels =
            earlier_links.iter().flat_map(|link| link.programs()).map(|it| it.label()).collect();
        let killed = kill_leftovers::kill_unheld(options.data_dir_id, held_labels).await;
        if killed > 0 {
            tracing::warn!(
                processes = killed,
                "terminated processes of an earlier process instance"
            );
        }
        let holders = Self {
            runtime_folder,
            current_link: tokio::sync::Mutex::default(),
            current_link_snapshot: watch::Sender::default(),
            earlier_links,
            successor_secret: OnceLock::new(),
            launch_permits: Semaphore::new(MAX_LAUNCHES as usize),
            has_failed_start: AtomicBool::new(false),
            scanner: Arc::default(),
            options,
        };
        holders.end_earlier_groups().await;
        holders.reuse_or_start_holder().await?;
        Ok(Arc::new(holders))
    }

    /// Ends the groups of an earlier process instance, except those of held programs.
    async fn end_earlier_groups(&self) {
        let Some(groups) = &self.options.control_groups else { return };
        let held_attempts = self.live_earlier_links().flat_map(|link| link.programs());
        let held_attempts = held_attempts.filter_map(|program| program.attempt()).collect();
        let ended_groups = groups.end_all_except(&held_attempts).await;
        if ended_groups > 0 {
            tracing::warn!(
                groups = ended_groups,
                "removed control groups of an earlier process instance"
            );
        }
    }

    /// Ends held programs whose executions nothing has taken over.
    pub async fn end_programs_not_taken_over(&self) {
        self.end_earlier_programs_unless(|program| program.is_taken_over()).await;
    }

    /// Ends all held programs except those of these attempts.
    pub async fn end_earlier_programs_except(
        &self,
        spared_attempts: &HashSet<(ExecutionId, AttemptId)>,
    ) {
        self.end_earlier_programs_unless(|program| {
            program.attempt().is_some_and(|it| spared_attempts.contains(&it))
        })
        .await;
    }

    async fn end_earlier_programs_unless(&self, is_spared: impl Fn(&ProgramHandle) -> bool) {
        for link in self.live_earlier_links() {
            for program in link.programs().into_iter().filter(|program| !is_spared(program)) {
                let execution = program.attempt().map(|(id, _)| id.to_string());
                tracing::warn!(execution, "terminating orphaned program");
                if let Ok(spawned) = self.attach_to_held_program(Arc::clone(&link), program).await {
                    spawned.tree.kill_all_processes().await;
                }
            }
        }
    }

    /// Kills every held program, with its descendants. Returns at once.
    pub fn kill_all(&self) {
        let current = self.current_link_snapshot.borrow().clone();
        for link in self.live_earlier_links().chain(current) {
            for program in
                link.programs().into_iter().filter(|it| it.state().may_have_live_processes())
            {
                let program_number = program.program_number();
                link.send_order(HolderOrder::Kill { program_number }, Vec::new());
                let groups = self.options.control_groups.as_ref().zip(program.attempt());
                if let Some(group) = groups.and_then(|(groups, attempt)| groups.find(attempt)) {
                    group.kill();
                }
            }
        }
    }

    /// Returns the bytes that process holders of an earlier process instance stored for this one.
    pub fn secrets_from_earlier_holders(&self) -> impl Iterator<Item = Vec<u8>> {
        self.earlier_links.iter().filter_map(|link| link.stored_secret().map(<[u8]>::to_vec))
    }

    /// Stores these bytes in every process holder, present or later, for the next process instance of the service. Only
    /// the first call has an effect.
    pub async fn store_secret(&self, secret: Vec<u8>) {
        let current = self.current_link.lock().await; // The lock prevents the start of a process holder meanwhile.
        if self.successor_secret.set(secret).is_ok() {
            self.live_earlier_links()
                .chain(current.clone())
                .for_each(|link| self.send_secret(&link));
        }
    }

    /// Sends the secret to a process holder. One of an earlier release ignores the unknown order.
    fn send_secret(&self, link: &HolderLink) {
        if let Some(secret) = self.successor_secret.get() {
            let order = HolderOrder::StoreSecret { secret: SecretValue(secret.clone()) };
            link.send_order(order, Vec::new());
        }
    }

    /// Returns the attempts whose programs are held.
    pub fn held_attempts(&self) -> Vec<(ExecutionId, AttemptId)> {
        let current = self.current_link_snapshot.borrow().clone();
        let programs = self.live_earlier_links().chain(current).flat_map(|link| link.programs());
        programs.filter_map(|program| program.attempt()).collect()
    }

    /// Returns the numbers of the scratch slots that held programs use.
    pub fn held_scratch_slots(&self) -> HashSet<u64> {
        let current = self.current_link_snapshot.borrow().clone();
        let programs = self.live_earlier_links().chain(current).flat_map(|link| link.programs());
        programs.filter_map(|program| program.scratch_slot()).collect()
    }

    /// Returns the process ids of the present process holders.
    pub fn pids(&self) -> Vec<u32> {
        let current = self.current_link_snapshot.borrow().clone();
        let link_states = self.live_earlier_links().chain(current).map(|link| link.state());
        link_states.filter(|state| !state.is_lost).filter_map(|state| state.pid).collect()
    }

    /// Returns the usage of the memory for the output of programs.
    pub fn output_memory_usage(&self) -> OutputMemoryUsage {
        self.options.output_memory.usage()
    }

    /// Ends all process holders with everything that they hold.
    pub async fn shut_down(&self) {
        let current = self.current_link.lock().await.take();
        for link in self.live_earlier_links().chain(current) {
            link.send_order(HolderOrder::Shutdown, Vec::new());
            if timeout(RESPONSE_TIMEOUT, link.wait_until_or_lost(|_| false)).await.is_err() {
                tracing::error!(pid = link.state().pid, "process holder did not exit");
            }
        }
        if let Some(groups) = &self.options.control_groups {
            groups.close().await;
        }
    }

    /// Leaves everything that is held to the next process instance of the service: from then on nothing is started,
    /// ended or forgotten.
    pub async fn detach(&self) -> DetachedPrograms {
        // Pending launches finish or fail before the count.
        let acquired =
            timeout(RESPONSE_TIMEOUT, self.launch_permits.acquire_many(MAX_LAUNCHES)).await;
        if let Ok(Ok(permits)) = acquired {
            permits.forget();
        }
        let current = self.current_link.lock().await.clone();
        let links: Vec<_> = self.live_earlier_links().chain(current).collect();
        // From here on drivers that are dropped must not release or kill what the next process instance takes over.
        links.iter().for_each(|link| link.detach());
        let (running, ending) = self.runtime_folder.count_continuing_and_ending(&links);
        DetachedPrograms { running, ending, reattach_grace: self.options.reattach_grace }
    }

    /// Returns the process holders of earlier process instances that are still there.
    fn live_earlier_links(&self) -> impl Iterator<Item = Arc<HolderLink>> {
        self.earlier_links.iter().filter(|link| !link.state().is_lost).map(Arc::clone)
    }

    /// Returns the process tree of a held program, with its group.
    async fn attach_to_held_program(
        &self,
        link: Arc<HolderLink>,
        program: Arc<ProgramHandle>,
    ) -> io::Result<SpawnedProgram> {
        let groups = self.options.control_groups.as_ref();
        let group = groups.zip(program.attempt()).and_then(|(groups, it)| groups.find(it));
        let (takeover_number, scanner) =
            (program.latest_takeover_number(), Arc::clone(&self.scanner));
        attach_to_program(link, (program, takeover_number), scanner, group.map(Arc::new)).await
    }

    fn find_program(&self, label: ProcessLabel) -> Option<(Arc<HolderLink>, Arc<ProgramHandle>)> {
        let find_in = |link: Arc<HolderLink>| link.find_program(label).map(|it| (link, it));
        let current = self.current_link_snapshot.borrow().clone();
        self.live_earlier_links().chain(current).find_map(find_in)
    }
}

#[async_trait]
impl ProgramLauncher for ProcessHolders {
    async fn launch(&self, launch: LaunchRequest) -> io::Result<SpawnedProgram> {
        // Descriptors in flight count against the limit of this user, and beyond it the socket refuses every order.
        let _permit = self.launch_permits.acquire().await.map_err(io::Error::other)?;
        let link = self.reuse_or_start_holder().await.map_err(holder_start_error)?;
        if matches!(launch.stdin, StdinSource::Journaled) {
            link.require_stdin_journal_support()?;
        }
        if launch.ruleset.as_ref().is_some_and(|it| it.network != NetworkAccess::Full) {
            link.require_network_filter_support()?;
        }
        let groups = self.options.control_groups.as_deref();
        let (group, procs_file) = create_group(&launch, groups)?.unzip();
        let procs_file_and_account = (procs_file, self.options.output_memory.new_account());
        let prepared = prepare_launch(
            launch,
            procs_file_and_account,
            self.options.data_dir_id,
            link.allocate_program_number(),
        );
        let PreparedLaunch { program, order, fds, stdin_pipe } = match prepared {
            Ok(start) => start,
            Err(error) => {
                end_group(group.as_ref()).await;
                return Err(error);
            }
        };
        // Before the order, because the answer may arrive before this function continues.
        link.add_program(Arc::clone(&program));
        if link.state().is_lost {
            // The process holder may have been lost before it could receive the order for this program.
            program.handle_holder_loss();
        }
        link.send_order(order, fds);
        // From here on the program is ended if no task waits for it any more. A takeover during the start takes
        // precedence over the task that ordered the launch.
        let launched = attach_to_program(
            link,
            (program, LAUNCHER_TAKEOVER_NUMBER),
            Arc::clone(&self.scanner),
            group,
        )
        .await?;
        let stdin = stdin_pipe.map(Sender::from_owned_fd).transpose()?;
        let stdin = stdin.map(|pipe| Box::pin(pipe) as StdinPipe);
        Ok(SpawnedProgram { stdin, ..launched })
    }

    fn begin_takeover(
        &self,
        execution: ExecutionId,
        attempt_id: AttemptId,
    ) -> Option<ProgramTakenOver> {
        let (_, program) = self.find_program(ProcessLabel::for_attempt(
            self.options.data_dir_id,
            execution,
            attempt_id,
        ))?;
        // The takeover is recorded before it is completed, so that the present driver stops reading the same pipes.
        program.record_takeover();
        Some(ProgramTakenOver { running_time: program.age() })
    }

    async fn complete_takeover(
        &self,
        execution: ExecutionId,
        attempt_id: AttemptId,
    ) -> io::Result<SpawnedProgram> {
        let label = ProcessLabel::for_attempt(self.options.data_dir_id, execution, attempt_id);
        let (link, program) = self.find_program(label).ok_or(io::ErrorKind::NotFound)?;
        self.attach_to_held_program(link, program).await
    }

    async fn kill_all_processes(&self, execution: ExecutionId, attempt_id: AttemptId) {
        let label = ProcessLabel::for_attempt(self.options.data_dir_id, execution, attempt_id);
        if self.begin_takeover(execution, attempt_id).is_some()
            && let Ok(spawned) = self.complete_takeover(execution, attempt_id).await
        {
            spawned.tree.kill_all_processes().await;
        }
        // After the held program: what is still found by its label has left the sight of the process holder.
        kill_leftovers::kill_labelled(label).await;
        let groups = self.options.control_groups.as_ref();
        let group = groups.and_then(|groups| groups.find((execution, attempt_id)));
        end_group(group.map(Arc::new).as_ref()).await;
    }
}

/// Creates the group of a program that is about to start, if it needs one and the machine permits it.
fn create_group(
    launch: &LaunchRequest,
    groups: Option<&ControlGroups>,
) -> io::Result<Option<(Arc<ControlGroup>, OwnedFd)>> {
    let resources = &launch.resource_limits;
    let Some(groups) = groups.filter(|_| resources.needs_cgroup()) else { return Ok(None) };
    let created = groups.create((launch.execution, launch.attempt_id), resources);
    let opened = created.and_then(|group| Ok((group.open_procs_file()?, Arc::new(group))));
    match opened {
        Ok((procs_file, group)) => Ok(Some((group, procs_file))),
        Err(error) if resources.cgroup_mode == CgroupMode::Required => Err(io::Error::other(error)),
        Err(error) => {
            tracing::warn!(%error, "no control group for execution; limits are polled");
            Ok(None)
        }
    }
}
