//! Driver of command-line programs: one process for each attempt.

use std::sync::Arc;
use std::time::Duration;

use algonius_actors::driver::report::Reporter;
use algonius_actors::driver::{
    AttemptLease, AttemptWork, Driver, Lease, UsageFuture, WorkTakenOver,
};
use algonius_actors::model::agent::AgentSpec;
use algonius_actors::model::agent::workspace::Workspace;
use algonius_actors::model::code::Code;
use algonius_actors::model::execution::AttemptId;
use algonius_actors::model::execution::event::TextChannel;
use algonius_actors::model::execution::request::Request;
use algonius_actors::model::failure::Failure;
use algonius_actors::model::id::ExecutionId;
use algonius_actors::model::interaction::{AnswerValue, WireId};
use algonius_actors::model::observation::status::PooledProcess;
use algonius_actors::model::program::{OutputMethod, ProgramSpec, ServiceLossAction};
use algonius_warden::{ProgramLauncher, UsageGauge};
use async_trait::async_trait;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tracing::Instrument;

use super::attempt::PendingAttempt;
use super::context::SharedDriverContext;
use super::running_process::{AttemptEnd, ProcessIo, RunningProcess};
use super::session_process;
use super::session_process::pool::ProcessPool;
use super::session_resume::{self, AttemptSession};
use super::workspace;
use crate::drivers::lease_commands::{LeaseCommandReceiver, LeaseCommandSender};

/// Time for which a program whose lease was dropped waits for a takeover.
const TAKEOVER_TIMEOUT: Duration = Duration::from_secs(10);

/// Driver that runs an agent's program. It needs a tokio runtime.
pub struct ProcessDriver {
    program: Arc<ProgramSpec>,
    context: Arc<SharedDriverContext>,
    launcher: Arc<dyn ProgramLauncher>,
    /// Pool of session processes, if the agent has one.
    pool: Option<Arc<ProcessPool>>,
}

impl ProcessDriver {
    /// Returns a driver of one program, which `launcher` starts.
    #[must_use]
    pub fn new(
        program: Arc<ProgramSpec>,
        context: Arc<SharedDriverContext>,
        launcher: Arc<dyn ProgramLauncher>,
    ) -> Self {
        let pool = program.pool.map(ProcessPool::new);
        Self { program, context, launcher, pool }
    }
}

#[async_trait]
impl Driver for ProcessDriver {
    async fn workspace(&self, spec: &AgentSpec, request: &Request) -> Option<Workspace> {
        workspace::resolve_workspace(&self.program, spec, request).await
    }

    fn runs_turns_in_order(&self) -> bool {
        self.program.keeps_conversation()
    }

    fn partial_answer_channel(&self) -> Option<TextChannel> {
        let ProgramSpec { output_method, stdio_protocol, success_criteria, .. } = &*self.program;
        if self.program.interactive_spec().is_some() {
            return Some(TextChannel::Answer);
        }
        match output_method {
            OutputMethod::Native(_) => Some(TextChannel::Answer),
            OutputMethod::Stdout
                if stdio_protocol.is_none() && success_criteria.json_pointer.is_none() =>
            {
                Some(TextChannel::Stdout)
            }
            _ => None,
        }
    }

    fn pooled_processes(&self) -> Vec<PooledProcess> {
        self.pool.as_ref().map(|pool| pool.pooled_processes()).unwrap_or_default()
    }

    fn start(&self, work: AttemptWork, reporter: Reporter) -> Lease {
        self.spawn_attempt(ProgramSource::New, work, reporter)
    }

    fn take_over_held_work(
        &self,
        execution: ExecutionId,
        attempt_id: AttemptId,
    ) -> Option<WorkTakenOver> {
        let may_reattach = self.program.on_service_loss == ServiceLossAction::Reattach;
        let program_taken_over =
            if may_reattach { self.launcher.begin_takeover(execution, attempt_id) } else { None };
        program_taken_over.map(|program| WorkTakenOver { elapsed_run_time: program.running_time })
    }

    fn resume(&self, work: AttemptWork, reporter: Reporter) -> Lease {
        self.spawn_attempt(ProgramSource::Existing, work, reporter)
    }

    async fn terminate(&self, execution: ExecutionId, attempt_id: AttemptId) {
        self.launcher.kill_all_processes(execution, attempt_id).await;
    }
}

impl ProcessDriver {
    fn spawn_attempt(&self, source: ProgramSource, work: AttemptWork, reporter: Reporter) -> Lease {
        let (commands, command_receiver) = LeaseCommandSender::channel();
        let (execution, attempt_id) = (work.execution, work.attempt_id);
        let attempt = PendingAttempt {
            program: Arc::clone(&self.program),
            context: Arc::clone(&self.context),
            launcher: Arc::clone(&self.launcher),
            work,
            session: AttemptSession::default(),
        };
        let (gauge_sender, gauge) = watch::channel(None);
        let reporter_and_gauge = (reporter, gauge_sender);
        let span = tracing::Span::current();
        let task = match &self.pool {
            // Session processes end with the service, so a held program never belongs to a pool.
            Some(pool) if source == ProgramSource::New => {
                let pool = Arc::clone(pool);
                tokio::spawn(
                    session_process::run_turn(attempt, pool, reporter_and_gauge, command_receiver)
                        .instrument(span),
                )
            }
            _ => tokio::spawn(
                run_attempt(attempt, source, reporter_and_gauge, command_receiver).instrument(span),
            ),
        };
        let launcher = Arc::clone(&self.launcher);
        Box::new(ProcessLease { commands, gauge, task, launcher, execution, attempt_id })
    }
}

/// Way in which an attempt gets its program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ProgramSource {
    /// The attempt starts the program.
    New,
    /// An earlier process instance of the service has started the program.
    Existing,
}

/// Lease of a running attempt. Dropping it is an order too: the task detects the closed channel, and keeps the program
/// for the next process instance.
struct ProcessLease {
    commands: LeaseCommandSender,
    /// Gauge of the program, after it has started.
    gauge: watch::Receiver<Option<UsageGauge>>,
    task: JoinHandle<()>,
    launcher: Arc<dyn ProgramLauncher>,
    execution: ExecutionId,
    attempt_id: AttemptId,
}

#[async_trait]
impl AttemptLease for ProcessLease {
    fn stop(&self) {
        self.commands.stop();
    }

    fn send_answer(&self, wire_id: WireId, answer: Option<AnswerValue>) {
        self.commands.answer(wire_id, answer);
    }

    fn measure_usage(&self) -> UsageFuture {
        let gauge = self.gauge.borrow().clone();
        Box::pin(async move { gauge?.read().await })
    }

    async fn clean_up(self: Box<Self>) {
        let Self { commands, task, launcher, execution, attempt_id, .. } = *self;
        commands.release();
        if let Err(error) = task.await {
            tracing::error!(%execution, %error, "task of an attempt failed");
            // After a panic of the task nobody else ends the processes of the attempt.
            launcher.kill_all_processes(execution, attempt_id).await;
        }
    }
}

/// Runs an attempt from the start order until nothing of it remains.
async fn run_attempt(
    mut attempt: PendingAttempt,
    mut source: ProgramSource,
    (reporter, gauge_sender): (Reporter, watch::Sender<Option<UsageGauge>>),
    commands: LeaseCommandReceiver,
) {
    loop {
        let (running, process_io) =
            match attempt.start_or_resume(source, &reporter, &commands).await {
                Ok(started) => started,
                Err(failure) => return reporter.report_end(Err(failure), None),
            };
        gauge_sender.send_replace(Some(running.gauge()));
        // If the lease was dropped before the program started, recovery may have settled the attempt without the
        // program, so no takeover will come.
        let takeover_timeout =
            if commands.is_lease_dropped() { Duration::ZERO } else { TAKEOVER_TIMEOUT };
        let mut release_commands = commands.clone();
        let attempt_end = tokio::select! {
            attempt_end = running.run(process_io, &reporter, commands.clone()) => Some(attempt_end),
            _ = release_commands.wait_for_release_or_drop() => None,
            () = running.wait_until_taken_over() => None,
        };
        match attempt_end {
            Some(attempt_end) if attempt_end.is_session_lost() && !commands.should_stop() => {
                // The program lost its session before any work, so a new attempt can repeat it.
                running.clean_up().await;
                let SharedDriverContext { sessions, .. } = &*attempt.context;
                if let Err(failure) =
                    session_resume::delete_unknown_session(&attempt.work, &**sessions, &reporter)
                        .await
                {
                    return reporter.report_end(Err(failure), None);
                }
                source = ProgramSource::New;
            }
            Some(mut attempt_end) => {
                // Before the report: after it the next message of the conversation may start and look for its session.
                attempt.store_session(&mut attempt_end, &reporter).await;
                // Before `clean_up_or_detach`: the holder of the lease orders the clean-up only after the report.
                attempt_end.report(reporter);
                clean_up_or_detach(running, commands, takeover_timeout).await;
                return;
            }
            None if clean_up_or_detach(running, commands, takeover_timeout).await => {
                let failure = Failure::new(Code::Interrupted, "it was released before its end");
                return reporter.report_end(Err(failure), None);
            }
            None => return reporter.close_without_report(),
        }
    }
}

impl PendingAttempt {
    /// Starts the program, or takes over the one of an earlier process instance.
    async fn start_or_resume(
        &mut self,
        source: ProgramSource,
        reporter: &Reporter,
        commands: &LeaseCommandReceiver,
    ) -> Result<(RunningProcess, ProcessIo), Failure> {
        let SharedDriverContext { sessions, .. } = &*self.context;
        self.session =
            AttemptSession::find(&self.program, &self.work, &**sessions, reporter).await?;
        // A start is never interrupted, so that no process can appear after the clean-up.
        match source {
            ProgramSource::New => self.clone().start(commands).await,
            ProgramSource::Existing => self.clone().resume(reporter, commands).await,
        }
    }

    /// Stores the session of a successful run. The answer does not depend on it.
    async fn store_session(&self, attempt_end: &mut AttemptEnd, reporter: &Reporter) {
        let Some(reported_id) = attempt_end.take_session_id_of_success() else { return };
        let SharedDriverContext { sessions, .. } = &*self.context;
        if let Err(error) = self
            .session
            .store(&self.program, &self.work, (&**sessions, reporter), reported_id)
            .await
        {
            tracing::error!(execution = %self.work.execution, %error, "failed to store session");
        }
    }
}

/// Waits until the holder of the lease releases the program, and removes its remains; returns true if it did. After a
/// crash another process may take over the program within `takeover_timeout`: then the program is left as it is.
async fn clean_up_or_detach(
    running: RunningProcess,
    mut commands: LeaseCommandReceiver,
    takeover_timeout: Duration,
) -> bool {
    let is_taken_over = tokio::select! {
        () = running.wait_until_taken_over() => true,
        is_released = commands.wait_for_release_or_drop() => {
            !is_released && timeout(takeover_timeout, running.wait_until_taken_over()).await.is_ok()
        }
    };
    if is_taken_over {
        running.detach();
    } else {
        running.clean_up().await;
    }
    !is_taken_over
}
