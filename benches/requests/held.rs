//! Program in a process holder, without the rest of the service.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use algonius_actors::model::execution::AttemptId;
use algonius_actors::model::host::resources::Resources;
use algonius_actors::model::id::ExecutionId;
use algonius_actors::model::program::Exit;
use algonius_gauge::limit::{Limit, cores, found};
use algonius_gauge::report::{Goal, Report, Row};
use algonius_gauge::round::Rounds;
use algonius_gauge::run::{Run, nanoseconds};
use algonius_gauge::spawn::text;
use algonius_warden::wardens::{HolderCommand, LaunchOptions, ProcessHolders};
use algonius_warden::{Launch, OutputMemory, RootCapabilities, Stdin, Warden as _};
use tempfile::TempDir;
use tokio::io::AsyncReadExt as _;
use tokio::task::JoinSet;
use tokio::time::Instant;
use uuid::Uuid;

use super::{BYTES, PROGRAM};

/// Number of concurrent programs.
const WIDE: usize = 10;

/// Measures the throughput of a process holder alone, relative to L.
pub(crate) async fn measure(report: &mut Report) {
    let hold = Arc::new(Hold::start(found("cat"), text(BYTES)).await);
    let (limit, mut rounds) = (Limit::of_cat(BYTES), Rounds::default());
    for _ in 0..Rounds::count() {
        rounds.take("L", limit.run(cores(), Rounds::lasting()));
        rounds.take("held", wide(&hold).await);
    }
    hold.wardens.end().await;
    let [rate, most] = ["held", "L"].map(|kind| rounds.of(kind, Run::rate));
    report.row(Row {
        number: 1,
        what: format!("a warden without the rest of the service, {WIDE} in flight"),
        value: rounds.ratio("held", "L", Run::rate),
        unit: "× L".to_owned(),
        goal: Goal::Told,
        behind: format!("{rate:.0}/s; L {most:.0}/s; {}", rounds.whole("held").told()),
    });
}

async fn wide(hold: &Arc<Hold>) -> Run {
    let (begin, mut all) = (Instant::now(), JoinSet::new());
    for _ in 0..WIDE {
        let hold = Arc::clone(hold);
        all.spawn(async move {
            let mut times = Vec::new();
            while begin.elapsed() < Rounds::lasting() {
                let started = Instant::now();
                hold.run().await;
                times.push(nanoseconds(started.elapsed()));
            }
            times
        });
    }
    let times = all.join_all().await.concat();
    Run::of(times, begin.elapsed())
}

/// Process holder without a service.
struct Hold {
    _home: TempDir,
    wardens: Arc<ProcessHolders>,
    program: PathBuf,
    text: String,
}

impl Hold {
    async fn start(program: PathBuf, text: String) -> Self {
        let home = tempfile::tempdir().expect("a home");
        let terms = LaunchOptions {
            origin: HolderCommand::of(PROGRAM),
            runtime_dir: home.path().to_owned(),
            instance: Uuid::new_v4(),
            patience: Duration::from_secs(1),
            groups: None,
            memory: OutputMemory::of(256 << 20),
        };
        let wardens = ProcessHolders::start(terms).await.expect("a warden");
        Self { _home: home, wardens, program, text }
    }

    /// Starts the program, reads its whole output, waits for its exit and sweeps its processes.
    async fn run(&self) {
        let launch = Launch {
            execution: ExecutionId::fresh(),
            stamp: AttemptId::FIRST,
            program: self.program.clone(),
            args: Vec::new(),
            env: BTreeMap::new(),
            working_dir: "/".into(),
            stdin: Stdin::Whole(self.text.clone().into_bytes()),
            cap: 1 << 20,
            dies_alone: false,
            limits: Vec::new(),
            ruleset: None,
            scratch: None,
            rights: RootCapabilities::All,
            user: None,
            wrapper: None,
            resources: Resources::default(),
        };
        let mut spawned = self.wardens.launch(launch).await.expect("the program");
        let mut said = String::new();
        spawned.stdout.read_to_string(&mut said).await.expect("text");
        let exit = spawned.ending.await.expect("an end");
        spawned.tree.sweep().await;
        assert!(exit == Exit::Code(0) && said == self.text);
    }
}
