//! Ledger that only records, program of one shell line, and inspection of `/proc`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use algonius_actors::driver::report::{
    AttemptContext, BudgetMeter, BudgetUsageCache, Liveness, OutputSettings, ReplayFilter, Report,
    Reporter, WriteBuffer,
};
use algonius_actors::driver::{AttemptWork, Driver};
use algonius_actors::model::agent::success_criteria::{
    FailureMatchers, FailureRules, SuccessCriteria, UsagePattern,
};
use algonius_actors::model::agent::workspace::Workspace;
use algonius_actors::model::agent::{
    Access, AgentProfile, AgentSpec, Capacity, OverridePolicy, PhaseTimeouts, ProgramWorkerSpec,
    RetrySpec, SizeLimits, WorkLimits, WorkerSpec,
};
use algonius_actors::model::execution::event::{EventKind, TextChunk};
use algonius_actors::model::execution::progress::Progress;
use algonius_actors::model::execution::request::{
    Input, Overrides, Request, RequestOrigin, Trigger,
};
use algonius_actors::model::execution::{AttemptId, Fence};
use algonius_actors::model::host::resources::ResourceLimits;
use algonius_actors::model::host::sandbox::{Confinement, Enforcement, Isolation, Sandbox};
use algonius_actors::model::id::{AgentId, ContextId, ExecutionId, MessageId, PrincipalId};
use algonius_actors::model::program::{
    InputMethod, OutputMethod, ProgramSpec, ProgramUser, PromptPatterns, ServiceLossAction,
};
use algonius_actors::ports::clock::Clock;
use algonius_actors::ports::ledger::{LedgerError, WriteBatch};
use algonius_actors::ports::session_store::NoopSessionStore;
use algonius_redact::Redactor;
use algonius_warden::confinement::cgroup::{CgroupRoot, ControlGroups};
use algonius_warden::confinement::landlock::abi_version;
use algonius_warden::confinement::service_folders::ProtectedServiceFiles;
use algonius_warden::confinement::socket_search::EscapeSocketSearch;
use algonius_warden::confinement::sockets::EscapeSocketLocations;
use algonius_warden::process_holders::{ProcessHolderOptions, ProcessHolders};
use algonius_warden::testing;
use chrono::{DateTime, Utc};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{OnceCell, watch};
use uuid::Uuid;

mod attempt_record;
mod test_attempt;

pub(super) use self::attempt_record::AttemptRecord;
pub(super) use self::test_attempt::TestAttempt;
use crate::drivers::program::context::{self, DriverSettings};
use crate::drivers::program::process_driver::ProcessDriver;
use crate::drivers::program::service_paths::ServicePaths;

const STEP_TIMEOUT: Duration = Duration::from_secs(20);

/// Item that was written or reported, in order.
#[derive(Debug)]
pub(super) enum RecordedEntry {
    Event(EventKind),
    Chunk(TextChunk),
    Report(Report),
}

pub(super) struct RecordingLedger {
    entries: UnboundedSender<RecordedEntry>,
    is_full: Arc<AtomicBool>,
}

impl RecordingLedger {
    pub(super) fn record(&self, entry: RecordedEntry) -> Result<(), LedgerError> {
        if self.is_full.load(Ordering::SeqCst) {
            return Err(unavailable_error());
        }
        _ = self.entries.send(entry);
        Ok(())
    }
}

/// Returns a report with the entries that an execution writes for it: before an end, after a start.
fn entries_of(report: Report) -> Vec<RecordedEntry> {
    let (start_event, batch) = match &report {
        Report::Started { start_event, .. } => (start_event.clone(), WriteBatch::default()),
        Report::Ended { batch, .. }
        | Report::InputRequired { batch, .. }
        | Report::Suspended { batch, .. } => (None, batch.clone()),
        Report::UsageReported { .. } | Report::Questions { .. } | Report::LedgerWait { .. } => {
            (None, WriteBatch::default())
        }
    };
    let mut entries: Vec<_> = batch.chunks.into_iter().map(RecordedEntry::Chunk).collect();
    entries.extend(batch.events.into_iter().map(|(_, event)| RecordedEntry::Event(event)));
    entries.push(RecordedEntry::Report(report));
    entries.extend(start_event.map(|(_, event)| RecordedEntry::Event(event)));
    entries
}

pub(super) fn unavailable_error() -> LedgerError {
    LedgerError::Unavailable { cause: "scripted".to_owned() }
}

struct FixedClock;

impl Clock for FixedClock {
    fn now(&self) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH
    }
}

/// Program under test, with the specification of its agent.
pub(super) struct ProgramFixture {
    pub(super) program: ProgramSpec,
    pub(super) spec: AgentSpec,
    pub(super) input: Input,
    pub(super) secrets: Vec<String>,
    pub(super) context_id: String,
    pub(super) execution: ExecutionId,
    pub(super) attempt_id: AttemptId,
    pub(super) workspace: Option<Workspace>,
    pub(super) instance: Uuid,
    pub(super) home: tempfile::TempDir,
    /// Directory of the control groups, if there are any.
    pub(super) cgroup_root: Option<CgroupRoot>,
    /// True if the runtime folder is declared to be in memory.
    pub(super) is_runtime_dir_in_memory: bool,
    holders: OnceCell<Arc<ProcessHolders>>,
}

/// Returns a fixture for `sh -c script args…`, read-only, with standard input and output.
pub(super) fn shell_fixture(script: &str, args: &[&str]) -> ProgramFixture {
    let mut words = vec!["-c", script];
    words.extend(args);
    program_fixture("/bin/sh", &words)
}

/// Returns a fixture for a program with templates of its arguments.
pub(super) fn program_fixture(command: &str, args: &[&str]) -> ProgramFixture {
    let home = tempfile::tempdir().unwrap();
    ProgramFixture {
        program: ProgramSpec {
            command: PathBuf::from(command),
            args: args.iter().map(ToString::to_string).collect(),
            params: BTreeMap::new(),
            env: BTreeMap::new(),
            user: ProgramUser::default(),
            working_dir: home.path().to_owned(),
            input_method: InputMethod::Stdin,
            output_method: OutputMethod::Stdout,
            input_file_template: "input.txt".to_owned(),
            on_service_loss: ServiceLossAction::Reattach,
            output_file_template: "{{ agent_id }}.out".to_owned(),
            success_criteria: SuccessCriteria { exit_codes: vec![0], ..SuccessCriteria::default() },
            failure_rules: FailureRules {
                transient: FailureMatchers { exit_codes: vec![75], ..FailureMatchers::default() },
                ..FailureRules::default()
            },
            prompt_patterns: PromptPatterns {
                patterns: [regex::Regex::new(r"\[y/N\] ?$").unwrap()].into(),
                silence: Duration::from_millis(300),
            },
            // Programs leave files as evidence.
            sandbox: Sandbox { writable: Some(vec![home.path().to_owned()]), ..Sandbox::default() },
            resource_limits: ResourceLimits::default(),
            runtime_settings: Default::default(),
            session_resume: None,
            stdio_protocol: None,
            usage_pattern: UsagePattern::default(),
            pool: None,
        },
        spec: agent_spec(),
        input: Input::default(),
        secrets: Vec::new(),
        context_id: "context".to_owned(),
        execution: ExecutionId::generate(),
        attempt_id: AttemptId::FIRST,
        workspace: None,
        instance: Uuid::new_v4(),
        home,
        cgroup_root: None,
        is_runtime_dir_in_memory: false,
        holders: OnceCell::new(),
    }
}

fn agent_spec() -> AgentSpec {
    let (day, grace) = (Duration::from_secs(86_400), Duration::from_millis(200));
    let (enforcement, isolation) =
        (Enforcement::Enforced, abi_version().map(|_| Isolation::Landlock));
    let confinement = Confinement { enforcement, isolation, ..Confinement::default() };
    AgentSpec {
        id: AgentId::new("agent").unwrap(),
        profile: AgentProfile {
            name: "Agent".to_owned(),
            description: String::new(),
            version: String::new(),
            skills: Vec::new(),
        },
        enabled: true,
        access: Access::ReadOnly,
        worker: WorkerSpec::Program(ProgramWorkerSpec {
            confinement,
            ..ProgramWorkerSpec::default()
        }),
        limits: WorkLimits {
            capacity: Capacity { max_running: None, max_waiting: 0, queue_timeout: day },
            timeouts: PhaseTimeouts { start: day, run: day, idle: None, grace, question: day },
            sizes: SizeLimits { max_input_bytes: 16 << 20, max_output_bytes: 8 << 20 },
        },
        retry: RetrySpec::default(),
        quota: Default::default(),
        budget: Default::default(),
        dedup_window: None,
        override_policy: OverridePolicy::default(),
        endpoint_config: Arc::default(),
    }
}

impl ProgramFixture {
    pub(super) fn with_input(mut self, input: impl Into<String>) -> Self {
        self.input.parts = vec![algonius_actors::model::execution::content::Part::text(input)];
        self
    }

    pub(super) fn holder_dir(&self) -> PathBuf {
        self.home.path().join("run")
    }

    /// Returns the directory of the executions' own folders.
    pub(super) fn runtime_dir(&self) -> PathBuf {
        self.home.path().join("files")
    }

    pub(super) async fn driver(&self) -> ProcessDriver {
        let (holder_dir, instance) = (self.holder_dir(), self.instance);
        let holders = self.holders.get_or_init(|| async move {
            let groups =
                ControlGroups::open(self.cgroup_root.clone(), instance, true).map(Arc::new);
            let options = testing::process_holder_options(
                "drivers::program::tests::process_holder",
                &holder_dir,
                instance,
            );
            ProcessHolders::start(ProcessHolderOptions { control_groups: groups, ..options })
                .await
                .unwrap()
        });
        let holders = Arc::clone(holders.await);
        let (runtime_dir, is_runtime_dir_in_memory) =
            (self.runtime_dir(), self.is_runtime_dir_in_memory);
        fs::create_dir_all(&runtime_dir).unwrap();
        let driver_settings = DriverSettings {
            runtime_dir,
            escape_sockets: Arc::new(EscapeSocketSearch::new(
                EscapeSocketLocations::default(),
                Vec::new(),
            )),
            bubblewrap: None,
            is_runtime_dir_in_memory,
        };
        let hidden_paths = vec![self.home.path().join("data"), self.runtime_dir()];
        let service_paths = Arc::new(ServicePaths::new(ProtectedServiceFiles {
            hidden_paths,
            ..ProtectedServiceFiles::default()
        }));
        let shared = context::SharedDriverContext::new(
            driver_settings,
            service_paths,
            Arc::new(NoopSessionStore),
        );
        ProcessDriver::new(Arc::new(self.program.clone()), Arc::new(shared), holders)
    }

    pub(super) async fn start(&self) -> TestAttempt {
        let (reporter, entries, is_full) = self.reporter_and_entries();
        let driver = self.driver().await;
        let lease = Some(driver.start(self.attempt_work(), reporter));
        TestAttempt { lease, entry_receiver: entries, is_ledger_full: is_full, entries: Vec::new() }
    }

    /// Returns a reporter for a driver, and the receiver of its entries.
    pub(super) fn reporter_and_entries(
        &self,
    ) -> (Reporter, UnboundedReceiver<RecordedEntry>, Arc<AtomicBool>) {
        let (sender, entries) = unbounded_channel();
        let is_full = Arc::new(AtomicBool::new(false));
        let ledger =
            Arc::new(RecordingLedger { entries: sender.clone(), is_full: Arc::clone(&is_full) });
        let attempt_context = AttemptContext {
            execution_id: self.execution,
            attempt_id: self.attempt_id,
            fence: Fence(1),
            ledger,
            clock: Arc::new(FixedClock),
            redactor: Arc::new(Redactor::new(self.secrets.clone())),
            output_settings: OutputSettings {
                max_channel_bytes: self.spec.limits.sizes.max_output_bytes,
                publishes_raw_answer: false,
            },
            progress: watch::Sender::new(Progress::for_new_execution()),
            liveness: Liveness::default(),
            replay_filter: ReplayFilter::default(),
            budget_meter: BudgetMeter::new(&self.spec, &BudgetUsageCache::default()),
            write_buffer: WriteBuffer::default(),
        };
        let reporter = Reporter::new(attempt_context, move |report| {
            entries_of(report).into_iter().for_each(|entry| _ = sender.send(entry));
        });
        (reporter, entries, is_full)
    }

    pub(super) fn attempt_work(&self) -> AttemptWork {
        let request = Request {
            agent: self.spec.id.clone(),
            origin: RequestOrigin::for_direct_request(PrincipalId(Uuid::nil()), Trigger::Api),
            message_id: MessageId("message".to_owned()),
            context: ContextId(self.context_id.clone()),
            starts_context: true,
            idempotency_key: None,
            continued_execution: None,
            inherited_overrides: Overrides::default(),
            input: self.input.clone(),
        };
        AttemptWork {
            execution: self.execution,
            attempt_id: self.attempt_id,
            spec: Arc::new(self.spec.clone()),
            request: Arc::new(request),
            workspace: self.workspace.clone(),
        }
    }

    /// Runs the program to its end and cleans up.
    pub(super) async fn run_to_end(&self) -> AttemptRecord {
        let mut attempt = self.start().await;
        let result = attempt.wait_for_end().await;
        attempt.clean_up().await;
        assert_eq!(self.living_pids(), Vec::<i32>::new(), "something outlived the clean-up");
        assert_eq!(self.leftover_folder_count(), 0, "files outlived the clean-up");
        AttemptRecord { result, entries: attempt.entries }
    }

    /// Returns the number of folders of attempts that were not removed. Slots without one are kept for later attempts.
    pub(super) fn leftover_folder_count(&self) -> usize {
        let count = |folder: &Path| fs::read_dir(folder).map_or(0, Iterator::count);
        let slots =
            fs::read_dir(self.runtime_dir().join("scratch")).into_iter().flatten().flatten();
        let in_slots: usize = slots.map(|slot| count(&slot.path().join("own"))).sum();
        let slots_dir_count = usize::from(self.runtime_dir().join("scratch").exists());
        count(&self.runtime_dir()) - slots_dir_count + in_slots
    }

    /// Returns the processes of this execution.
    pub(super) fn living_pids(&self) -> Vec<i32> {
        let entry = format!("ALGONIUS_EXECUTION_ID={}", self.execution);
        let belongs_to_execution = |pid: &i32| {
            let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environment.split(|byte| *byte == 0).any(|variable| variable == entry.as_bytes())
        };
        let names = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.file_name());
        names.filter_map(|name| name.to_str()?.parse().ok()).filter(belongs_to_execution).collect()
    }

    /// Waits until this number of its processes run `program`.
    pub(super) async fn wait_until_running(&self, count: usize, program: &str) {
        let runs = |pid: &i32| {
            fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.trim() == program)
        };
        wait_until(|| self.living_pids().iter().filter(|pid| runs(pid)).count() == count).await;
    }
}

/// Waits until a condition is true.
pub(super) async fn wait_until(condition: impl Fn() -> bool) {
    let mut ticks = tokio::time::interval(Duration::from_millis(10));
    let waiting = async {
        while !condition() {
            ticks.tick().await;
        }
    };
    tokio::time::timeout(STEP_TIMEOUT, waiting).await.expect("it did not become true in time");
}

/// Returns true if a file or folder exists.
pub(super) fn exists(path: &Path) -> bool {
    path.try_exists().unwrap()
}
