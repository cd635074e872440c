//! `SchedulerActor`: sleeps until the next due time, decides, and submits requests through the client handle.
//!
//! A decision is stored before its request is submitted, and a request is identified by its schedule and planned time:
//! after a crash the successor submits the same request again, and the agent joins both. One write of changes and
//! decisions is in progress at a time, and one of results; the actor itself never waits.

mod authorization;
mod changes;
mod dispatch;
mod effects;
mod evaluate;
mod interned_schedule;
mod loaded_schedule;
mod occurrences;
pub(crate) mod recovery;
mod result_writer;
mod schedule_writer;
mod table;
mod tasks;
mod timer;
mod timer_queue;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use ractor::{Actor, ActorProcessingErr, ActorRef, RpcReplyPort, SupervisionEvent};

use crate::gateway::requests::RequestHandle;
use crate::model::failure::Failure;
use crate::model::id::ScheduleId;
use crate::model::observation::status::NextDue;
use crate::model::schedule::occurrence::{Occurrence, OccurrenceEnd};
use crate::model::schedule::{ConfiguredSchedule, ScheduleView};
use crate::ports::schedule_store::{ScheduleEvaluation, ScheduleStore};
use crate::ports::schedule_template::ScheduleTemplateRenderer;
use crate::services::Services;

use self::changes::PendingChange;
pub use self::changes::{ChangeWriteResult, ScheduleChange};
pub use self::dispatch::DispatchResult;
use self::dispatch::Dispatcher;
use self::evaluate::log_if_unsubmitted;
use self::occurrences::{OccurrenceEffect, OccurrenceMachine};
use self::result_writer::ResultWriter;
use self::schedule_writer::{DecisionWriteResult, ScheduleWriter};
use self::table::ScheduleTable;
use self::tasks::SchedulerBackgroundTasks;
pub use self::timer::DEFAULT_MAX_SLEEP;
use self::timer::WakeTimer;
use self::timer_queue::{TimerEntry, TimerQueue};

/// Maximum number of schedules whose decisions are stored together.
const MAX_BATCH_SCHEDULES: usize = 256;
/// Maximum number of actions that are performed before other messages are handled.
const MAX_ACTIONS_PER_ROUND: usize = 1024;
/// Pause before a schedule is evaluated again whose decisions could not be stored.
const EVALUATION_RETRY_PAUSE: TimeDelta = TimeDelta::seconds(5);
/// Interval between two deletions of old occurrences.
const DELETION_INTERVAL: TimeDelta = TimeDelta::hours(1);
/// Reason of a run that is cancelled at its deadline.
const DEADLINE_REASON: &str = "its schedule's deadline passed";

/// Actor that decides about the due times of all schedules.
pub struct SchedulerActor;

/// Configuration of the scheduler.
#[derive(Clone)]
pub struct SchedulerConfig {
    /// Store of the schedules.
    pub schedule_store: Arc<dyn ScheduleStore>,
    /// Renderer of the input templates.
    pub renderer: Arc<dyn ScheduleTemplateRenderer>,
    /// Schedules of the configuration; `None` if they were applied already and the store has them.
    pub configured_schedules: Option<Vec<ConfiguredSchedule>>,
    /// Time for which occurrences are kept.
    pub occurrence_retention: Duration,
    /// Longest sleep, after which a changed clock is noticed. The default is [`DEFAULT_MAX_SLEEP`].
    pub max_sleep: Duration,
}

/// Arguments of the scheduler.
pub struct SchedulerArgs {
    /// Shared services.
    pub services: Services,
    /// Configuration of the scheduler.
    pub config: SchedulerConfig,
    /// Handle that submits the requests.
    pub request_handle: RequestHandle,
}

/// Reply port for a change: the new state of the schedule, if it still exists.
pub type ChangeReplyPort = RpcReplyPort<Result<Option<ScheduleView>, Failure>>;

/// Key of an occurrence.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct OccurrenceKey {
    /// Id of the schedule.
    pub schedule: ScheduleId,
    /// Planned time; unique within a schedule.
    pub planned_at: DateTime<Utc>,
}

/// Message to the scheduler.
pub enum SchedulerMsg {
    /// A schedule may be due.
    Tick,
    /// The clock was set back.
    ClockSetBack,
    /// Decisions were stored, or the write failed.
    DecisionWriteFinished(Box<DecisionWriteResult>),
    /// Results of occurrences were stored.
    ResultsStored,
    /// Result of a request.
    DispatchFinished(OccurrenceKey, DispatchResult),
    /// Result of the check whether the agent would permanently refuse the request of a replacing occurrence.
    AcceptanceChecked(OccurrenceKey, Option<Failure>),
    /// The execution of an occurrence ended; with the number of consecutive failures of the schedule.
    ExecutionEnded(OccurrenceKey, OccurrenceEnd, u32),
    /// Changes the schedules. The reply follows once the change is stored.
    Change(ScheduleChange, ChangeReplyPort),
    /// A change was stored, or the write failed.
    ChangeWriteFinished(Box<ChangeWriteResult>),
    /// Requests one schedule.
    Get(ScheduleId, RpcReplyPort<Option<ScheduleView>>),
    /// Requests at most this many schedules after an id.
    List(Option<ScheduleId>, usize, RpcReplyPort<Vec<ScheduleView>>),
    /// Requests a snapshot.
    Inspect(RpcReplyPort<SchedulerSnapshot>),
    /// Stops submitting requests.
    Drain,
    /// A task panicked.
    BackgroundFuturePanicked,
}

/// Snapshot of the scheduler.
pub struct SchedulerSnapshot {
    /// Start time.
    pub started_at: DateTime<Utc>,
    /// Number of active schedules.
    pub active_count: usize,
    /// Number of schedules.
    pub schedule_count: usize,
    /// Number of schedules whose input no key opens.
    pub unreadable_input_count: usize,
    /// Next due schedule of each agent.
    pub next_due: Vec<NextDue>,
}

/// State of the actor: its parts decide and keep the state, and the actor connects them.
pub struct SchedulerActorState {
    args: SchedulerArgs,
    /// Start of the actor.
    started_at: DateTime<Utc>,
    table: ScheduleTable,
    occurrences: OccurrenceMachine,
    timers: TimerQueue,
    wake_timer: WakeTimer,
    dispatcher: Dispatcher,
    pending_changes: VecDeque<PendingChange>,
    schedule_writer: ScheduleWriter,
    result_writer: ResultWriter,
    is_draining: bool,
    tasks: SchedulerBackgroundTasks,
}

impl Actor for SchedulerActor {
    type Msg = SchedulerMsg;
    type State = SchedulerActorState;
    type Arguments = SchedulerArgs;

    /// Loads the schedules, applies the configuration, and resumes open occurrences.
    async fn pre_start(
        &self,
        myself: ActorRef<SchedulerMsg>,
        mut args: SchedulerArgs,
    ) -> Result<SchedulerActorState, ActorProcessingErr> {
        let started_at = args.now();
        // Moved out of the arguments: the list may be long, and nothing needs it after the load.
        let configured_schedules = args.config.configured_schedules.take();
        let table = recovery::load_schedules(&args, configured_schedules).await?;
        let mut state =
            SchedulerActorState { started_at, ..SchedulerActorState::new(myself, args, table) };
        // Before the first evaluation, which counts the open occurrences of a schedule.
        state.resume_open_occurrences().await?;
        state.wake_timer.start(&state.args.services.clock, &mut state.tasks);
        state.continue_work();
        Ok(state)
    }

    async fn handle(
        &self,
        _: ActorRef<SchedulerMsg>,
        msg: SchedulerMsg,
        state: &mut SchedulerActorState,
    ) -> Result<(), ActorProcessingErr> {
        match msg {
            SchedulerMsg::Tick => state.wake_timer.mark_fired(),
            SchedulerMsg::ClockSetBack => state.handle_clock_set_back(),
            SchedulerMsg::DecisionWriteFinished(write_result) => {
                state.handle_decision_write(*write_result);
            }
            SchedulerMsg::ResultsStored => state.result_writer.finish_write(),
            SchedulerMsg::DispatchFinished(key, result) => state.finish_dispatch(key, result),
            SchedulerMsg::AcceptanceChecked(key, refusal) => {
                state.handle_acceptance_check(&key, refusal);
            }
            SchedulerMsg::ExecutionEnded(key, ending, streak) => {
                state.handle_execution_end(&key, ending, streak);
            }
            SchedulerMsg::Change(change, reply) => {
                state.pending_changes.push_back(PendingChange { change, reply });
            }
            SchedulerMsg::ChangeWriteFinished(change_result) => state.finish_change(*change_result),
            SchedulerMsg::Get(id, reply) => _ = reply.send(state.view(&id)),
            SchedulerMsg::List(after, limit, reply) => _ = reply.send(state.list(after, limit)),
            SchedulerMsg::Inspect(reply) => _ = reply.send(state.table.snapshot(state.started_at)),
            SchedulerMsg::Drain => state.is_draining = true,
            SchedulerMsg::BackgroundFuturePanicked => {
                return Err("a task of the scheduler panicked".into());
            }
        }
        state.continue_work();
        Ok(())
    }

    /// Overridden because the default stops the supervisor when any child ends, even normally.
    async fn handle_supervisor_evt(
        &self,
        _: ActorRef<SchedulerMsg>,
        _: SupervisionEvent,
        _: &mut SchedulerActorState,
    ) -> Result<(), ActorProcessingErr> {
        Ok(()) // This actor has no children.
    }
}

impl OccurrenceKey {
    /// Returns the key of an occurrence.
    fn for_occurrence(occurrence: &Occurrence) -> Self {
        Self { schedule: occurrence.schedule.clone(), planned_at: occurrence.planned_at }
    }
}

impl SchedulerArgs {
    fn now(&self) -> DateTime<Utc> {
        self.services.clock.now()
    }
}

impl SchedulerActorState {
    fn new(myself: ActorRef<SchedulerMsg>, args: SchedulerArgs, table: ScheduleTable) -> Self {
        let now = args.now();
        let mut timers = TimerQueue::default();
        table.add_evaluation_timers(now, &mut timers);
        // At the start too, because a service may be restarted more often than once an hour.
        timers.add(now, TimerEntry::DeleteOldOccurrences);
        Self {
            started_at: now,
            table,
            occurrences: OccurrenceMachine::default(),
            timers,
            wake_timer: WakeTimer::new(),
            dispatcher: Dispatcher::default(),
            pending_changes: VecDeque::new(),
            schedule_writer: ScheduleWriter::new(Arc::clone(&args.config.schedule_store)),
            result_writer: ResultWriter::default(),
            is_draining: false,
            tasks: SchedulerBackgroundTasks::new(myself),
            args,
        }
    }

    /// Performs all steps that are possible now, after any message.
    fn continue_work(&mut self) {
        self.tasks.drop_finished();
        // Results are stored while the service stops too: they tell what has been submitted.
        self.result_writer.flush(self.schedule_writer.store(), &mut self.tasks);
        if self.is_draining {
            return;
        }
        // Changes come before evaluations, so that no decision is made for a schedule that its owner has just changed.
        if !self.schedule_writer.is_writing() {
            self.start_next_change();
        }
        if !self.schedule_writer.is_writing()
            && (self.wake_timer.has_fired() || self.timers.may_have_due_entries())
        {
            self.perform_due_actions();
        }
        let Self { dispatcher, occurrences, table, args, tasks, .. } = self;
        dispatcher.dispatch(occurrences, table, args, tasks);
        self.set_wake_timer();
    }

    /// Sets the timer to the first action.
    fn set_wake_timer(&mut self) {
        // While a write to the store is in progress no schedule can be evaluated; its reply wakes the scheduler.
        let is_idle = !self.schedule_writer.is_writing();
        let first_due = self.timers.first_due().filter(|_| is_idle);
        // Without schedules nothing depends on the clock, and an idle service should not wake.
        let max_sleep = (!self.table.is_empty()).then_some(self.args.config.max_sleep);
        self.wake_timer.set_target(first_due, max_sleep);
    }

    /// Performs the actions that are due.
    fn perform_due_actions(&mut self) {
        let now = self.args.now();
        let (mut batch, mut count) = (Vec::new(), 0);
        // A start after a long absence may make every schedule due at once; replies and changes must not wait for all
        // of them.
        while batch.len() < MAX_BATCH_SCHEDULES && count < MAX_ACTIONS_PER_ROUND {
            count += 1;
            match self.timers.take_due(now) {
                None => break,
                Some(TimerEntry::Evaluate(id)) => batch.extend(self.evaluate(&id, now)),
                Some(TimerEntry::Resubmit(key)) => self.dispatcher.push(*key),
                Some(TimerEntry::RepeatCheck(key)) => {
                    self.perform_effects(vec![OccurrenceEffect::CheckAcceptance(*key)]);
                }
                Some(TimerEntry::Cancel(key)) => {
                    let effects = self.occurrences.cancel(&key, DEADLINE_REASON, now, &self.table);
                    self.perform_effects(effects);
                }
                Some(TimerEntry::DeleteOldOccurrences) => self.delete_old_occurrences(now),
            }
        }
        if !batch.is_empty() {
            self.schedule_writer.store_decisions(batch, &self.args.request_handle, &mut self.tasks);
        } else if self.timers.may_have_due_entries() {
            // Other messages are handled before the rest is evaluated.
            _ = self.tasks.scheduler().cast(SchedulerMsg::Tick);
        }
    }

    /// Evaluates one schedule; returns the decisions to store.
    fn evaluate(&mut self, id: &ScheduleId, now: DateTime<Utc>) -> Option<ScheduleEvaluation> {
        let open_counts = self.occurrences.open_occurrences().counts(id);
        let entry = self.table.schedule_mut(id).filter(|entry| entry.schedule.is_active())?;
        let evaluation = entry.evaluate(open_counts, now);
        // The entry moves on at once, also if the write fails: then the schedule is evaluated once more.
        if let Some(next) = entry.next_evaluation {
            self.timers.add(next, TimerEntry::Evaluate(id.clone()));
        }
        evaluation
    }

    /// Handles stored decisions; evaluates the schedules again if the write failed.
    fn handle_decision_write(&mut self, write_result: DecisionWriteResult) {
        let DecisionWriteResult { cursors, tokens, result } = write_result;
        self.schedule_writer.finish_write();
        self.dispatcher.set_tokens(tokens);
        let new_occurrences = match result {
            Ok(new_occurrences) => new_occurrences,
            Err(error) => {
                tracing::error!(%error, "failed to store decisions of schedules");
                let at = self.args.now() + EVALUATION_RETRY_PAUSE;
                let schedules = cursors.into_iter().map(|cursor| cursor.schedule);
                schedules.for_each(|id| self.timers.add(at, TimerEntry::Evaluate(id)));
                return;
            }
        };
        for (schedule_cursor, new_occurrences) in cursors.into_iter().zip(new_occurrences) {
            let id = &schedule_cursor.schedule;
            // The schedule may have been removed by the change before; its decisions are void then.
            let Some(entry) = self.table.schedule_mut(id) else { continue };
            // After the commit: a decision that was not stored is made again.
            entry.schedule.set_decided_until(schedule_cursor.decided_until);
            new_occurrences.iter().for_each(log_if_unsubmitted);
            let effects = self.occurrences.add_occurrences(id, new_occurrences, &self.table);
            self.perform_effects(effects);
        }
    }

    /// Evaluates every schedule again.
    fn handle_clock_set_back(&mut self) {
        tracing::warn!("clock set back: recomputing all schedules");
        self.timers.reschedule_after_clock_change(self.args.now());
    }

    fn delete_old_occurrences(&mut self, now: DateTime<Utc>) {
        self.timers.add(now + DELETION_INTERVAL, TimerEntry::DeleteOldOccurrences);
        let retention =
            TimeDelta::from_std(self.args.config.occurrence_retention).unwrap_or(TimeDelta::MAX);
        if let Some(before) = now.checked_sub_signed(retention) {
            self.schedule_writer.delete_occurrences_before(before, &mut self.tasks);
        }
    }

    fn view(&self, id: &ScheduleId) -> Option<ScheduleView> {
        self.table.get(id).map(|entry| self.occurrences.open_occurrences().view(entry))
    }

    fn list(&self, after: Option<ScheduleId>, limit: usize) -> Vec<ScheduleView> {
        let view = |entry| self.occurrences.open_occurrences().view(entry);
        self.table.iter_after(after).take(limit).map(view).collect()
    }
}
