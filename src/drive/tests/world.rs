//! A ledger that only listens, a program that is one line of shell, and eyes on `/proc`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use algonius_actors::decide::redact::Redactor;
use algonius_actors::model::agent::{
    Access, AgentSpec, Allowance, Capacity, Deadlines, RetrySpec, Sizes,
};
use algonius_actors::model::contract::{FailureContract, Signs, SuccessContract};
use algonius_actors::model::event::{Channel, Chunk, Fact};
use algonius_actors::model::execution::{Fence, Stamp};
use algonius_actors::model::failure::Failure;
use algonius_actors::model::id::{AgentId, ContextId, ExecutionId, MessageId, PrincipalId};
use algonius_actors::model::program::{
    InputPattern, OnLoss, OutputPattern, ProgramSpec, PromptContract,
};
use algonius_actors::model::progress::Progress;
use algonius_actors::model::request::{Input, Overrides, Request, Trigger};
use algonius_actors::model::resources::{Holding, Resources};
use algonius_actors::model::sandbox::{Enforcement, Isolation, Sandbox};
use algonius_actors::model::workspace::Workspace;
use algonius_actors::ports::clock::Clock;
use algonius_actors::ports::driver::{Driver, Lease, Work};
use algonius_actors::ports::ledger::{LedgerError, Lines};

use algonius_actors::report::{Desk, Known, Pending, Pulse, Purses, Report, Reporter, Till};
use chrono::{DateTime, Utc};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{OnceCell, watch};
use uuid::Uuid;

pub(super) use super::story::Story;
use super::story::text;
use crate::drive::process::{self, ProcessDriver, Site};
use crate::warden::confine::version;
use crate::warden::group::Place;
use crate::warden::tests::{grouped, wardens};
use crate::warden::wardens::Wardens;

/// No wait of these tests is longer.
const DEADLINE: Duration = Duration::from_secs(20);

/// What was written and told, in its order.
#[derive(Debug)]
pub(super) enum Entry {
    Fact(Fact),
    Chunk(Chunk),
    Report(Report),
}

pub(super) struct Listener {
    entries: UnboundedSender<Entry>,
    is_full: Arc<AtomicBool>,
}

impl Listener {
    pub(super) fn hear(&self, entry: Entry) -> Result<(), LedgerError> {
        if self.is_full.load(Ordering::SeqCst) {
            return Err(unavailable());
        }
        _ = self.entries.send(entry);
        Ok(())
    }
}

/// A report, with what an execution writes because of it: before an end, after a beginning.
fn entries_of(report: Report) -> Vec<Entry> {
    let (spawned, lines) = match &report {
        Report::Started { spawned, .. } => (spawned.clone(), Lines::default()),
        Report::Ended { lines, .. } | Report::Asked { lines, .. } => (None, lines.clone()),
        Report::Used { .. } => (None, Lines::default()),
    };
    let mut entries: Vec<_> = lines.chunks.into_iter().map(Entry::Chunk).collect();
    entries.extend(lines.facts.into_iter().map(|(_, fact)| Entry::Fact(fact)));
    entries.push(Entry::Report(report));
    entries.extend(spawned.map(|(_, fact)| Entry::Fact(fact)));
    entries
}

pub(super) fn unavailable() -> LedgerError {
    LedgerError::Unavailable { cause: "scripted".to_owned() }
}

struct Still;

impl Clock for Still {
    fn now(&self) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH
    }
}

/// What is run, and around it what an agent's specification says.
pub(super) struct Stage {
    pub(super) program: ProgramSpec,
    pub(super) spec: AgentSpec,
    pub(super) input: Input,
    pub(super) secrets: Vec<String>,
    pub(super) context: String,
    pub(super) execution: ExecutionId,
    pub(super) stamp: Stamp,
    pub(super) workspace: Option<Workspace>,
    pub(super) instance: Uuid,
    pub(super) home: tempfile::TempDir,
    /// Where control groups are made, if anywhere.
    pub(super) place: Option<Place>,
    /// Whether its folders are said to be in memory.
    pub(super) in_memory: bool,
    wardens: OnceCell<Arc<Wardens>>,
}

/// A stage for `sh -c script args…`, read-only, with standard input and output.
pub(super) fn shell(script: &str, args: &[&str]) -> Stage {
    let mut words = vec!["-c", script];
    words.extend(args);
    program("/bin/sh", &words)
}

/// A stage for a program with templates of its arguments.
pub(super) fn program(command: &str, args: &[&str]) -> Stage {
    let home = tempfile::tempdir().unwrap();
    Stage {
        program: ProgramSpec {
            command: PathBuf::from(command),
            args: args.iter().map(ToString::to_string).collect(),
            params: BTreeMap::new(),
            env: BTreeMap::new(),
            working_dir: home.path().to_owned(),
            input: InputPattern::Stdin,
            output: OutputPattern::Stdout,
            input_file: "input.txt".to_owned(),
            on_loss: OnLoss::Reattach,
            output_file: "{{ agent_id }}.out".to_owned(),
            success: SuccessContract { exit_codes: vec![0], ..SuccessContract::default() },
            failures: FailureContract {
                transient: Signs { exit_codes: vec![75], ..Signs::default() },
                ..FailureContract::default()
            },
            prompts: PromptContract {
                patterns: [regex::Regex::new(r"\[y/N\] ?$").unwrap()].into(),
                silence: Duration::from_millis(300),
            },
            // Programs tell by files what they do.
            sandbox: Sandbox { writable: Some(vec![home.path().to_owned()]), ..Sandbox::default() },
            resources: Resources::default(),
            outfit: Default::default(),
            session: None,
            dialogue: None,
            keeping: None,
        },
        spec: spec(),
        input: Input::default(),
        secrets: Vec::new(),
        context: "context".to_owned(),
        execution: ExecutionId::fresh(),
        stamp: Stamp::FIRST,
        workspace: None,
        instance: Uuid::new_v4(),
        home,
        place: None,
        in_memory: false,
        wardens: OnceCell::new(),
    }
}

fn spec() -> AgentSpec {
    let (day, grace) = (Duration::from_secs(86_400), Duration::from_millis(200));
    AgentSpec {
        id: AgentId::new("agent").unwrap(),
        name: "Agent".to_owned(),
        description: String::new(),
        version: String::new(),
        skills: Vec::new(),
        enabled: true,
        access: Access::ReadOnly,
        enforcement: Enforcement::Enforced,
        isolation: version().map(|_| Isolation::Landlock),
        holding: Holding::default(),
        expects: None,
        capacity: Capacity { running: None, waiting: 0, patience: day },
        deadlines: Deadlines { start: day, run: day, idle: None, grace, answer: day },
        heartbeat: None,
        retry: RetrySpec::default(),
        quota: Default::default(),
        budget: Default::default(),
        sizes: Sizes { input: 16 << 20, output: 8 << 20 },
        dedup_window: None,
        allowance: Allowance::default(),
        exposure: Arc::default(),
    }
}

impl Stage {
    pub(super) fn says(mut self, input: impl Into<String>) -> Self {
        self.input.parts = vec![algonius_actors::model::content::Part::text(input)];
        self
    }

    pub(super) fn runtime_dir(&self) -> PathBuf {
        self.home.path().join("run")
    }

    /// Where executions have their own folders.
    pub(super) fn files_dir(&self) -> PathBuf {
        self.home.path().join("files")
    }

    pub(super) async fn driver(&self) -> ProcessDriver {
        let (folder, instance) = (self.runtime_dir(), self.instance);
        let wardens = self.wardens.get_or_init(|| async move {
            match self.place.clone() {
                Some(place) => grouped(&folder, instance, place).await,
                None => wardens(&folder, instance).await,
            }
        });
        let wardens = Arc::clone(wardens.await);
        let (runtime_dir, data_dir) = (self.files_dir(), self.home.path().join("data"));
        let site = Site { runtime_dir, data_dir, bubblewrap: None, in_memory: self.in_memory };
        let place = process::Place::new(site, Arc::new(super::thread::Unkept));
        ProcessDriver::new(Arc::new(self.program.clone()), Arc::new(place), wardens)
    }

    pub(super) async fn start(&self) -> Run {
        let (report, entries, is_full) = self.report();
        let driver = self.driver().await;
        let lease = Some(driver.start(self.work(), report));
        Run { lease, entries, is_full, seen: Vec::new() }
    }

    /// What a driver reports with, and what is heard of it.
    pub(super) fn report(&self) -> (Reporter, UnboundedReceiver<Entry>, Arc<AtomicBool>) {
        let (sender, entries) = unbounded_channel();
        let is_full = Arc::new(AtomicBool::new(false));
        let ledger = Arc::new(Listener { entries: sender.clone(), is_full: Arc::clone(&is_full) });
        let desk = Desk {
            id: self.execution,
            stamp: self.stamp,
            fence: Fence(1),
            ledger,
            clock: Arc::new(Still),
            redactor: Arc::new(Redactor::new(self.secrets.clone())),
            limit: self.spec.sizes.output,
            raw: false,
            progress: watch::Sender::new(Progress::accepted()),
            pulse: Pulse::default(),
            known: Known::default(),
            till: Till::of(&self.spec, &Purses::default()),
            pending: Pending::default(),
        };
        let report = Reporter::new(desk, move |report| {
            entries_of(report).into_iter().for_each(|entry| _ = sender.send(entry));
        });
        (report, entries, is_full)
    }

    pub(super) fn work(&self) -> Work {
        let request = Request {
            agent: self.spec.id.clone(),
            owner: PrincipalId(Uuid::nil()),
            message: MessageId("message".to_owned()),
            context: ContextId(self.context.clone()),
            opens: true,
            idempotency: None,
            continues: None,
            standing: Overrides::default(),
            trigger: Trigger::Api,
            trace: None,
            input: self.input.clone(),
        };
        Work {
            execution: self.execution,
            stamp: self.stamp,
            spec: Arc::new(self.spec.clone()),
            request: Arc::new(request),
            workspace: self.workspace.clone(),
        }
    }

    /// Runs it to its end and cleans up.
    pub(super) async fn play(&self) -> Story {
        let mut run = self.start().await;
        let verdict = run.ended().await;
        run.clean().await;
        assert_eq!(self.alive(), Vec::<i32>::new(), "something outlived the clean-up");
        let left = fs::read_dir(self.files_dir()).map_or(0, Iterator::count);
        assert_eq!(left, 0, "files outlived the clean-up");
        Story { verdict, seen: run.seen }
    }

    /// Processes of this execution.
    pub(super) fn alive(&self) -> Vec<i32> {
        let entry = format!("ALGONIUS_EXECUTION_ID={}", self.execution);
        let carries = |pid: &i32| {
            let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environment.split(|byte| *byte == 0).any(|have| have == entry.as_bytes())
        };
        let names = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.file_name());
        names.filter_map(|name| name.to_str()?.parse().ok()).filter(carries).collect()
    }

    /// Waits until so many of its processes run `program`.
    pub(super) async fn until_running(&self, count: usize, program: &str) {
        let runs = |pid: &i32| {
            fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.trim() == program)
        };
        until(|| self.alive().iter().filter(|pid| runs(pid)).count() == count).await;
    }
}

/// Waits until a claim is true.
pub(super) async fn until(claim: impl Fn() -> bool) {
    let mut ticks = tokio::time::interval(Duration::from_millis(10));
    let waiting = async {
        while !claim() {
            ticks.tick().await;
        }
    };
    tokio::time::timeout(DEADLINE, waiting).await.expect("it did not become true in time");
}

/// Whether a file or folder is there.
pub(super) fn exists(path: &Path) -> bool {
    path.try_exists().unwrap()
}

/// A running attempt.
pub(super) struct Run {
    pub(super) lease: Option<Lease>,
    entries: UnboundedReceiver<Entry>,
    is_full: Arc<AtomicBool>,
    pub(super) seen: Vec<Entry>,
}

impl Run {
    /// Waits for what comes next.
    pub(super) async fn next(&mut self) -> &Entry {
        let entry = tokio::time::timeout(DEADLINE, self.entries.recv()).await;
        let entry = entry.expect("nothing came in time").expect("it ended without a word");
        self.seen.push(entry);
        self.seen.last().unwrap()
    }

    /// Waits for the one end. A question is a good one.
    pub(super) async fn ended(&mut self) -> Result<(), Failure> {
        loop {
            match self.next().await {
                Entry::Report(Report::Ended { verdict, .. }) => return verdict.clone(),
                Entry::Report(Report::Asked { .. }) => return Ok(()),
                _ => {}
            }
        }
    }

    /// What was written on a channel so far.
    pub(super) fn text(&self, channel: Channel) -> String {
        text(&self.seen, channel)
    }

    pub(super) fn stop(&self) {
        self.lease.as_ref().unwrap().stop();
    }

    /// Cleans, and sees that nothing was written or told after the end.
    pub(super) async fn clean(&mut self) {
        let cleaning = self.lease.take().unwrap().clean();
        tokio::time::timeout(DEADLINE, cleaning).await.expect("it was not cleaned in time");
        let late = self.entries.try_recv();
        assert!(late.is_err(), "told after the end: {late:?}");
    }

    pub(super) fn fill_the_ledger(&self) {
        self.is_full.store(true, Ordering::SeqCst);
    }
}
