//! Schedules: reads and changes by callers, with their authorization.

use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use ractor::rpc::CallResult;
use ractor::{ActorRef, RpcReplyPort};
use tokio::sync::watch;

use crate::decide::schedule::statistics::compute_statistics;
use crate::gateway::handle::REPLY_TIMEOUT;
use crate::gateway::reader::ledger_read_failure;
use crate::model::access::principal::{Caller, Right};
use crate::model::code::Code;
use crate::model::failure::Failure;
use crate::model::id::ScheduleId;
use crate::model::schedule::ConfiguredSchedule;
use crate::model::schedule::occurrence::{Occurrence, OccurrenceQuery};
use crate::model::schedule::statistics::ScheduleStatistics;
use crate::model::schedule::{ScheduleSpec, ScheduleView};
use crate::ports::schedule_store::ScheduleStore;
use crate::scheduler::recovery::resolve_owners;
use crate::scheduler::{ScheduleChange, SchedulerMsg};
use crate::services::Services;
use crate::services::input_sealer::redact_schedule;

/// Number of days over which successes are counted.
pub const STATISTICS_DAYS: i64 = 30;

/// Handle that reads and changes schedules. Clones are cheap.
#[derive(Clone)]
pub struct ScheduleAdmin {
    pub(crate) scheduler: watch::Receiver<Option<ActorRef<SchedulerMsg>>>,
    pub(crate) schedule_store: Option<Arc<dyn ScheduleStore>>,
    pub(crate) services: Services,
}

impl ScheduleAdmin {
    /// Returns a schedule, if the caller may see it: its own, or any for an administrator.
    ///
    /// # Errors
    /// Returns `schedule-unknown` both if the schedule does not exist and if it belongs to another caller.
    pub async fn schedule(
        &self,
        caller: &Caller,
        id: &ScheduleId,
    ) -> Result<ScheduleView, Failure> {
        self.raw_schedule(caller, id).await.map(|view| self.redact_view(view))
    }

    /// Returns the schedule with its raw texts.
    async fn raw_schedule(
        &self,
        caller: &Caller,
        id: &ScheduleId,
    ) -> Result<ScheduleView, Failure> {
        let view = self.call_scheduler(|reply| SchedulerMsg::Get(id.clone(), reply)).await?;
        view.filter(|view| can_see_schedule(caller, view))
            .ok_or_else(|| schedule_unknown_failure(id))
    }

    /// Returns the view with redacted texts.
    fn redact_view(&self, mut view: ScheduleView) -> ScheduleView {
        let (spec, redacted) =
            redact_schedule(&self.services.redactor.current(), &view.schedule.spec);
        view.is_redacted = redacted || view.schedule.has_sealed_texts();
        view.schedule.spec = spec;
        view
    }

    /// Returns at most `limit` schedules that the caller may see, after an id, in the order of their ids.
    ///
    /// # Errors
    /// Returns an error if the scheduler does not reply.
    pub async fn schedules(
        &self,
        caller: &Caller,
        after: Option<ScheduleId>,
        limit: usize,
    ) -> Result<Vec<ScheduleView>, Failure> {
        let (mut visible, mut after) = (Vec::new(), after);
        loop {
            let from = after.clone();
            let page = self.call_scheduler(|reply| SchedulerMsg::List(from, limit, reply)).await?;
            let is_last = page.len() < limit;
            after = page.last().map(|view| view.schedule.spec.id.clone());
            visible.extend(page.into_iter().filter(|view| can_see_schedule(caller, view)));
            if is_last || visible.len() >= limit {
                visible.truncate(limit);
                return Ok(visible.into_iter().map(|view| self.redact_view(view)).collect());
            }
        }
    }

    /// Creates a schedule of the caller (`is_new`), or changes one.
    ///
    /// # Errors
    /// Returns an error if the caller may not use the agent, and for the reasons given at [`ScheduleChange::Put`].
    pub async fn put_schedule(
        &self,
        caller: &Caller,
        mut spec: ScheduleSpec,
        is_new: bool,
    ) -> Result<ScheduleView, Failure> {
        if !caller.scope.allows(Right::Run, Some(&spec.agent)) {
            return Err(Failure::new(
                Code::Forbidden,
                "the token does not permit requests to this agent",
            ));
        }
        let id = spec.id.clone();
        if !is_new {
            let known_view = self.raw_schedule(caller, &id).await?;
            self.restore_raw_texts(&mut spec, &known_view.schedule.spec);
        }
        let change = ScheduleChange::Put { spec: Box::new(spec), owner: caller.principal, is_new };
        let view = self.apply_change(change).await?.ok_or_else(|| schedule_unknown_failure(&id))?;
        Ok(self.redact_view(view))
    }

    /// Removes a schedule. Its executions continue.
    ///
    /// # Errors
    /// Returns `schedule-unknown`, or `schedule-fixed` for a schedule of the configuration.
    pub async fn remove_schedule(&self, caller: &Caller, id: &ScheduleId) -> Result<(), Failure> {
        self.schedule(caller, id).await?;
        self.apply_change(ScheduleChange::Remove(id.clone())).await.map(drop)
    }

    /// Pauses a schedule, or resumes it from now on. Its executions continue.
    ///
    /// # Errors
    /// Returns `schedule-unknown`.
    pub async fn set_schedule_paused(
        &self,
        caller: &Caller,
        id: &ScheduleId,
        paused: bool,
    ) -> Result<ScheduleView, Failure> {
        self.schedule(caller, id).await?;
        let view = self.apply_change(ScheduleChange::SetPaused(id.clone(), paused)).await?;
        view.map(|view| self.redact_view(view)).ok_or_else(|| schedule_unknown_failure(id))
    }

    /// Triggers a schedule now, in parallel with other runs.
    ///
    /// # Errors
    /// Returns `schedule-unknown`, or `forbidden` if the caller may not use the agent.
    pub async fn trigger_schedule(
        &self,
        caller: &Caller,
        id: &ScheduleId,
    ) -> Result<ScheduleView, Failure> {
        let view = self.schedule(caller, id).await?;
        if !caller.scope.allows(Right::Run, Some(&view.schedule.spec.agent)) {
            return Err(Failure::new(
                Code::Forbidden,
                "the token does not permit requests to this agent",
            ));
        }
        let view = self.apply_change(ScheduleChange::RunNow(id.clone())).await?;
        view.map(|view| self.redact_view(view)).ok_or_else(|| schedule_unknown_failure(id))
    }

    /// Applies the schedules of the configuration.
    ///
    /// # Errors
    /// Returns an error if the change could not be stored; then nothing has changed.
    pub async fn configure_schedules(
        &self,
        configured: Vec<ConfiguredSchedule>,
    ) -> Result<(), Failure> {
        let owned_schedules = resolve_owners(&*self.services.ledger, configured).await;
        let owned_schedules = owned_schedules.map_err(|error| ledger_read_failure(&error))?;
        self.apply_change(ScheduleChange::Configure(owned_schedules)).await.map(drop)
    }

    /// Returns the occurrences of schedules that the caller may see.
    ///
    /// # Errors
    /// Returns `schedule-unknown`, or an error if they could not be read.
    pub async fn occurrences(
        &self,
        caller: &Caller,
        mut query: OccurrenceQuery,
    ) -> Result<Vec<Occurrence>, Failure> {
        if !caller.scope.allows(Right::Admin, None) {
            query.owner = Some(caller.principal);
        }
        query.agents = caller.scope.agents.clone();
        let occurrences = self.require_store()?.occurrences(query).await;
        occurrences.map_err(|error| ledger_read_failure(&error))
    }

    /// Returns the statistics of a schedule over the last thirty days.
    ///
    /// # Errors
    /// Returns `schedule-unknown`, or an error if they could not be read.
    pub async fn statistics(
        &self,
        caller: &Caller,
        id: &ScheduleId,
    ) -> Result<ScheduleStatistics, Failure> {
        self.schedule(caller, id).await?;
        let since: DateTime<Utc> = self.services.clock.now() - TimeDelta::days(STATISTICS_DAYS);
        let occurrences = self.require_store()?.occurrences_since(id, since).await;
        Ok(compute_statistics(&occurrences.map_err(|error| ledger_read_failure(&error))?))
    }

    /// Restores the raw texts of a schedule if a caller sends the redacted texts back unchanged.
    fn restore_raw_texts(&self, spec: &mut ScheduleSpec, known: &ScheduleSpec) {
        let redactor = self.services.redactor.current();
        let restore = |text: &mut String, known: &String| {
            if redactor.redact(known) == text.as_str() {
                text.clone_from(known);
            }
        };
        restore(&mut spec.name, &known.name);
        restore(&mut spec.input, &known.input);
        for (name, value) in &mut spec.params {
            known.params.get(name).into_iter().for_each(|known| restore(value, known));
        }
    }

    fn require_store(&self) -> Result<&dyn ScheduleStore, Failure> {
        self.schedule_store.as_deref().ok_or_else(scheduler_unavailable_failure)
    }

    async fn apply_change(&self, change: ScheduleChange) -> Result<Option<ScheduleView>, Failure> {
        self.call_scheduler(|reply| SchedulerMsg::Change(change, reply)).await?
    }

    async fn call_scheduler<T: Send + 'static>(
        &self,
        msg: impl FnOnce(RpcReplyPort<T>) -> SchedulerMsg + Send,
    ) -> Result<T, Failure> {
        let scheduler =
            self.scheduler.borrow().clone().ok_or_else(scheduler_unavailable_failure)?;
        match scheduler.call(msg, Some(REPLY_TIMEOUT)).await {
            Ok(CallResult::Success(answer)) => Ok(answer),
            Ok(CallResult::Timeout | CallResult::SenderError) | Err(_) => {
                Err(scheduler_unavailable_failure())
            }
        }
    }
}

fn can_see_schedule(caller: &Caller, view: &ScheduleView) -> bool {
    let agent = Some(&view.schedule.spec.agent);
    let is_own = view.schedule.owner == caller.principal && caller.scope.allows(Right::Read, agent);
    is_own || caller.scope.allows(Right::Admin, agent)
}

fn schedule_unknown_failure(id: &ScheduleId) -> Failure {
    Failure::new(Code::ScheduleUnknown, format!("there is no schedule `{id}`"))
}

fn scheduler_unavailable_failure() -> Failure {
    Failure::new(Code::Draining, "the scheduler does not answer; it is being started or stopped")
}
