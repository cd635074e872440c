//! Run of a team: performs the actions of [`decide::runs::team`](crate::decide::runs::team), and records the facts
//! between them.

use std::mem;
use std::sync::Arc;

use tokio::sync::watch;
use tokio::time::sleep;

use super::RUN_END_REASON;
use super::hop_sending::{HopRequest, HopSendResult, HopSender};
use super::hop_wait::{HopWaitResult, HopWaiter, hop_end};
use super::hop_warnings::hop_warnings;
use super::run_failure::{hop_failure, lost_input_failure};
use super::run_output::RunOutput;
use crate::decide::recovery::interruption_failure;
use crate::decide::runs::team::{HopEnd, TeamAction, TeamRun};
use crate::driver::AttemptWork;
use crate::driver::report::{Reporter, StoredOutputReader, report_ledger_wait};
use crate::gateway::requests::{HopState, RunRequestHandle};
use crate::model::agent::team::TeamStep;
use crate::model::code::Code;
use crate::model::execution::event::EventKind;
use crate::model::execution::hop::HopStage;
use crate::model::execution::progress::Progress;
use crate::model::execution::request::Request;
use crate::model::execution::{ExecutionState, Outcome};
use crate::model::failure::Failure;
use crate::model::id::ExecutionId;
use crate::ports::ledger::LedgerError;
use crate::runs::attempt::{LEDGER_RETRY_PAUSE, RunExit, RunStart, RunStopReceiver};

/// Attempt at a run.
pub(super) struct TeamAttempt {
    hop_sender: HopSender,
    start: RunStart,
}

/// State of a run between two actions.
#[derive(Default)]
struct RunState {
    /// Facts of the run, once they are known.
    run: Option<TeamRun>,
    /// Request of the hop that this process planned last, until it is sent.
    planned_request: Option<Request>,
    /// Progress of the hop that this process sent last.
    hop_progress: Option<watch::Receiver<Progress>>,
    /// True if an earlier process, or an action that the ledger interrupted, may have written a part of the output.
    may_have_output: bool,
    /// True if the last action failed because of the ledger.
    awaits_ledger: bool,
    /// True if the start of the run is reported.
    is_start_reported: bool,
}

impl RunState {
    /// Reports once that the run runs. Its plan is recorded by now.
    fn report_start(&mut self, reporter: &Reporter) {
        if !mem::replace(&mut self.is_start_reported, true) {
            reporter.report_start(None);
        }
    }
}

impl TeamAttempt {
    pub(super) const fn new(
        request_handle: RunRequestHandle,
        work: AttemptWork,
        start: RunStart,
    ) -> Self {
        Self { hop_sender: HopSender { request_handle, work }, start }
    }

    const fn request_handle(&self) -> &RunRequestHandle {
        &self.hop_sender.request_handle
    }

    const fn execution(&self) -> ExecutionId {
        self.hop_sender.work.execution
    }

    /// Returns the output of the run.
    fn output<'r>(&'r self, state: &RunState, reporter: &'r Reporter) -> RunOutput<'r> {
        let (execution, ledger) = (self.execution(), &self.request_handle().services().ledger);
        RunOutput { execution, ledger, reporter, may_have_output: state.may_have_output }
    }

    /// Runs the attempt, and reports its end.
    pub(super) async fn run(self, reporter: Reporter, mut stop: RunStopReceiver) {
        let mut state = RunState { may_have_output: self.is_resumed(), ..RunState::default() };
        let exit = self.run_until_exit(&mut state, &reporter, &mut stop).await;
        if !matches!(exit, RunExit::Suspended | RunExit::Superseded) {
            // Before the report: a hop does not outlive its run.
            self.request_handle().cancel_hops(self.execution(), RUN_END_REASON).await;
            if let Err(error) = self.record_last_hop_end(&state, &reporter).await {
                tracing::error!(execution = %self.execution(), %error, "end of hop not recorded");
            }
        }
        exit.report(reporter);
    }

    /// Performs one action after the other until the run has ended. An action that fails because of the ledger is
    /// repeated, because the hops do not depend on it.
    async fn run_until_exit(
        &self,
        state: &mut RunState,
        reporter: &Reporter,
        stop: &mut RunStopReceiver,
    ) -> RunExit {
        loop {
            if stop.is_stop_requested() {
                return RunExit::Stopped;
            }
            let result = self.perform_next_action(state, reporter, stop).await;
            if result.is_ok() && mem::take(&mut state.awaits_ledger) {
                report_ledger_wait(reporter, false);
            }
            let error = match result {
                Ok(None) => continue,
                Ok(Some(end)) => return end,
                Err(error) => error,
            };
            tracing::error!(execution = %self.execution(), %error, "run not recorded, retrying");
            (state.may_have_output, state.awaits_ledger) = (true, true);
            report_ledger_wait(reporter, true);
            tokio::select! {
                () = sleep(LEDGER_RETRY_PAUSE) => {}
                () = stop.wait() => return RunExit::Stopped,
                () = self.request_handle().wait_for_drain_start() => return RunExit::Suspended,
            }
        }
    }

    /// Plans a hop. Records a warning if its request does not have all of the answer before.
    async fn plan_hop(
        &self,
        run: &TeamRun,
        (number, step): (u32, &TeamStep),
        (state, reporter): (&mut RunState, &Reporter),
    ) -> Result<HopStage, LedgerError> {
        let HopRequest { request, omitted_files } =
            self.hop_sender.build_request(run, (number, &step.agent)).await?;
        if omitted_files > 0 {
            let message = omission_warning(omitted_files, &step.id);
            reporter.record_later(EventKind::Warning { message });
        }
        let stage = self.hop_sender.planned_stage(step, &request);
        state.planned_request = Some(request);
        Ok(stage)
    }

    /// Performs the next action. Returns the end of the run, if the run has ended.
    async fn perform_next_action(
        &self,
        state: &mut RunState,
        reporter: &Reporter,
        stop: &mut RunStopReceiver,
    ) -> Result<Option<RunExit>, LedgerError> {
        // A copy, because an action that fails must leave the run as it was.
        let Some(mut run) = state.run.clone() else {
            return self.restore_or_plan(state, reporter).await;
        };
        let (number, stage) = match run.next_action() {
            TeamAction::PlanHop(..) if self.request_handle().is_draining() => {
                return Ok(Some(RunExit::Suspended));
            }
            TeamAction::PlanHop(number, step) => {
                (number, self.plan_hop(&run, (number, step), (state, reporter)).await?)
            }
            TeamAction::Send(hop) => {
                // One commit with the end of the hop before. The request follows the commit.
                if !reporter.flush_unless_superseded().await? {
                    return Ok(Some(RunExit::Superseded));
                }
                state.report_start(reporter);
                let request = &mut state.planned_request;
                match self.hop_sender.send(&run, hop, request, (reporter, stop)).await? {
                    HopSendResult::Accepted(execution, progress) => {
                        state.hop_progress = progress;
                        (hop.number, HopStage::Taken { execution })
                    }
                    HopSendResult::Refused(code) => {
                        (hop.number, HopStage::Ended { outcome: Outcome::Failed, code: Some(code) })
                    }
                    HopSendResult::RunExited(end) => return Ok(Some(end)),
                }
            }
            TeamAction::Wait(hop, execution) => {
                state.report_start(reporter);
                let waiter = HopWaiter::new(self.request_handle(), reporter);
                match waiter
                    .wait_for_hop((&hop.agent, execution), state.hop_progress.take(), stop)
                    .await?
                {
                    HopWaitResult::Ended(HopEnd { outcome, code }) => {
                        self.repeat_warnings(&hop.step, execution, reporter).await?;
                        (hop.number, HopStage::Ended { outcome, code })
                    }
                    HopWaitResult::RunExited(end) => return Ok(Some(end)),
                }
            }
            TeamAction::Complete(hop) => {
                self.output(state, reporter).copy_final_answer(hop).await?;
                return Ok(Some(RunExit::Completed));
            }
            TeamAction::Fail(hop, end) => {
                self.output(state, reporter).copy_answers_as_artifacts(run.hops()).await?;
                return Ok(Some(RunExit::Failed(hop_failure(hop, end))));
            }
            TeamAction::FailEmptyPlan => {
                let message = "the plan of the team has no step";
                return Ok(Some(RunExit::Failed(Failure::new(Code::Internal, message))));
            }
        };
        run.apply(number, &stage);
        state.run = Some(run);
        reporter.record_later(EventKind::Hop { hop: number, stage });
        Ok(None)
    }

    /// Records the warnings of a hop that has ended. One commit contains them and the end of the hop.
    async fn repeat_warnings(
        &self,
        step: &str,
        hop_execution: ExecutionId,
        reporter: &Reporter,
    ) -> Result<(), LedgerError> {
        let ledger = &self.request_handle().services().ledger;
        let source = StoredOutputReader::new(hop_execution, Arc::clone(ledger));
        for message in hop_warnings(&source, step).await? {
            reporter.record_later(EventKind::Warning { message });
        }
        Ok(())
    }

    /// Restores the run from its recorded facts. Without facts, the plan is the first one.
    async fn restore_or_plan(
        &self,
        state: &mut RunState,
        reporter: &Reporter,
    ) -> Result<Option<RunExit>, LedgerError> {
        if self.is_resumed() {
            let ledger = &self.request_handle().services().ledger;
            let events = ledger.events(self.execution(), 0).await?;
            state.run = TeamRun::restore(events.iter().map(|event| &event.data));
            if state.run.is_some() {
                return Ok(None);
            }
            let record = ledger.execution(self.execution()).await?;
            if record.is_none_or(|record| record.state == ExecutionState::Running) {
                // A run records its plan before it runs. Its agent was of another kind when it started.
                return Ok(Some(RunExit::Failed(interruption_failure())));
            }
            if !self.request_handle().has_original_input(self.execution()).await? {
                return Ok(Some(RunExit::Failed(lost_input_failure())));
            }
        }
        let plan =
            self.hop_sender.work.spec.team().map(|plan| (**plan).clone()).unwrap_or_default();
        reporter.record_later(EventKind::Planned { plan: plan.clone() });
        state.run = Some(TeamRun::new(plan));
        Ok(None)
    }

    /// Returns true if an earlier process or actor may have worked on the run.
    fn is_resumed(&self) -> bool {
        self.start == RunStart::Resumed
    }

    /// Records the end of a hop that was cancelled because the run ends.
    async fn record_last_hop_end(
        &self,
        state: &RunState,
        reporter: &Reporter,
    ) -> Result<(), LedgerError> {
        let hops = state.run.as_ref().map(TeamRun::hops).unwrap_or_default();
        let Some(hop) = hops.last().filter(|hop| hop.end.is_none()) else { return Ok(()) };
        let execution = match hop.execution {
            Some(execution) => Some(execution),
            None => self.hop_sender.find_hop_execution(hop).await?,
        };
        let Some(execution) = execution else { return Ok(()) };
        if let HopState::Ended(record) = self.request_handle().hop_state(execution).await? {
            let HopEnd { outcome, code } = hop_end(&record);
            let stage = HopStage::Ended { outcome, code };
            reporter.record_later(EventKind::Hop { hop: hop.number, stage });
        }
        Ok(())
    }
}

/// Returns the warning that a step does not get the files of the answer before it.
fn omission_warning(count: usize, step: &str) -> String {
    let files = if count == 1 { "a file or an address" } else { "files or addresses" };
    format!(
        "the answer before the step `{step}` has {files}, which the step does not get ({count} in all)"
    )
}
