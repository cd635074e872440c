//! Program in a process holder, without the rest of the service.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use algonius_actors::model::execution::AttemptId;
use algonius_actors::model::host::resources::ResourceLimits;
use algonius_actors::model::id::ExecutionId;
use algonius_actors::model::program::ProcessExit;
use algonius_gauge::report::{BenchReport, Goal, ResultRow};
use algonius_gauge::round::Rounds;
use algonius_gauge::run::{OperationTimes, nanoseconds};
use algonius_gauge::spawn::plain_text;
use algonius_gauge::spawn_limit::{SpawnRateBaseline, core_count, find_program};
use algonius_warden::process_holders::{HolderCommand, ProcessHolderOptions, ProcessHolders};
use algonius_warden::{
    LaunchRequest, OutputMemory, ProgramLauncher as _, RootCapabilities, StdinSource,
};
use tempfile::TempDir;
use tokio::io::AsyncReadExt as _;
use tokio::task::JoinSet;
use tokio::time::Instant;
use uuid::Uuid;

use super::{MESSAGE_BYTES, PROGRAM};

/// Number of concurrent programs.
const PARALLEL_PROGRAMS: usize = 10;

/// Measures the throughput of a process holder alone, relative to L.
pub(crate) async fn measure(report: &mut BenchReport) {
    let fixture =
        Arc::new(HolderFixture::start(find_program("cat"), plain_text(MESSAGE_BYTES)).await);
    let (baseline, mut rounds) = (SpawnRateBaseline::for_cat(MESSAGE_BYTES), Rounds::default());
    for _ in 0..Rounds::count() {
        rounds.add("L", baseline.run(core_count(), Rounds::run_duration()));
        rounds.add("held", run_parallel(&fixture).await);
    }
    fixture.process_holders.shut_down().await;
    let [rate, limit_rate] = ["held", "L"].map(|kind| rounds.median_of(kind, OperationTimes::rate));
    report.add_row(ResultRow {
        number: 1,
        description: format!(
            "a warden without the rest of the service, {PARALLEL_PROGRAMS} in flight"
        ),
        value: rounds.median_ratio("held", "L", OperationTimes::rate),
        unit: "× L".to_owned(),
        goal: Goal::Unrated,
        details: format!(
            "{rate:.0}/s; L {limit_rate:.0}/s; {}",
            rounds.merged_run("held").summary()
        ),
    });
}

async fn run_parallel(fixture: &Arc<HolderFixture>) -> OperationTimes {
    let (run_started_at, mut tasks) = (Instant::now(), JoinSet::new());
    for _ in 0..PARALLEL_PROGRAMS {
        let fixture = Arc::clone(fixture);
        tasks.spawn(async move {
            let mut times = Vec::new();
            while run_started_at.elapsed() < Rounds::run_duration() {
                let program_started_at = Instant::now();
                fixture.run_program().await;
                times.push(nanoseconds(program_started_at.elapsed()));
            }
            times
        });
    }
    let times = tasks.join_all().await.concat();
    OperationTimes::new(times, run_started_at.elapsed())
}

/// Process holder without a service.
struct HolderFixture {
    _home: TempDir,
    process_holders: Arc<ProcessHolders>,
    program: PathBuf,
    text: String,
}

impl HolderFixture {
    async fn start(program: PathBuf, text: String) -> Self {
        let home = tempfile::tempdir().expect("a home");
        let options = ProcessHolderOptions {
            command: HolderCommand::new(PROGRAM),
            runtime_dir: home.path().to_owned(),
            data_dir_id: Uuid::new_v4(),
            reattach_grace: Duration::from_secs(1),
            control_groups: None,
            output_memory: OutputMemory::with_limit(256 << 20),
        };
        let process_holders = ProcessHolders::start(options).await.expect("a process holder");
        Self { _home: home, process_holders, program, text }
    }

    /// Starts the program, reads its whole output, waits for its exit and sweeps its processes.
    async fn run_program(&self) {
        let launch = LaunchRequest {
            execution: ExecutionId::generate(),
            attempt_id: AttemptId::FIRST,
            program: self.program.clone(),
            args: Vec::new(),
            env: BTreeMap::new(),
            working_dir: "/".into(),
            stdin: StdinSource::Bytes(self.text.clone().into_bytes()),
            max_recorded_bytes: 1 << 20,
            ends_with_supervisor: false,
            rlimits: Vec::new(),
            ruleset: None,
            scratch_slot: None,
            root_capabilities: RootCapabilities::All,
            user: None,
            wrapper: None,
            resource_limits: ResourceLimits::default(),
        };
        let mut spawned = self.process_holders.launch(launch).await.expect("the program");
        let mut output = String::new();
        spawned.stdout.read_to_string(&mut output).await.expect("text");
        let exit = spawned.exit.await.expect("an end");
        spawned.tree.kill_all_processes().await;
        assert!(exit == ProcessExit::Code(0) && output == self.text);
    }
}
