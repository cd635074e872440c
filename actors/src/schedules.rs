//! The schedules at the door: who may see, make and change them.

use chrono::{DateTime, TimeDelta, Utc};
use ractor::RpcReplyPort;
use ractor::rpc::CallResult;

use crate::decide::statistics::statistics;
use crate::door::{ANSWER, Gateway, unreadable};
use crate::model::code::Code;
use crate::model::failure::Failure;
use crate::model::occurrence::{Occurrence, OccurrenceQuery};
use crate::model::principal::{Caller, Right};
use crate::model::schedule::Configured;
use crate::model::schedule::{ScheduleId, ScheduleSpec, ScheduleView};
use crate::model::statistics::Statistics;
use crate::ports::timebook::Timebook;
use crate::scheduler::book::owned;
use crate::scheduler::{Change, SchedulerMsg};

/// Over how many days success is counted.
pub const COUNTED_DAYS: i64 = 30;

impl Gateway {
    /// A schedule, if it is there for the caller: its own, or any for an administrator.
    ///
    /// # Errors
    /// `schedule-unknown` both when it is not there and when it is somebody else's.
    pub async fn schedule(
        &self,
        caller: &Caller,
        id: &ScheduleId,
    ) -> Result<ScheduleView, Failure> {
        let shown = self.ask_scheduler(|reply| SchedulerMsg::Show(id.clone(), reply)).await?;
        shown.filter(|view| may_see(caller, view)).ok_or_else(|| unknown(id))
    }

    /// Schedules that the caller may see after an id, in the order of their ids; at most so many.
    ///
    /// # Errors
    /// When the scheduler does not answer.
    pub async fn schedules(
        &self,
        caller: &Caller,
        after: Option<ScheduleId>,
        limit: usize,
    ) -> Result<Vec<ScheduleView>, Failure> {
        let (mut seen, mut after) = (Vec::new(), after);
        loop {
            let from = after.clone();
            let page = self.ask_scheduler(|reply| SchedulerMsg::List(from, limit, reply)).await?;
            let is_last = page.len() < limit;
            after = page.last().map(|view| view.schedule.spec.id.clone());
            seen.extend(page.into_iter().filter(|view| may_see(caller, view)));
            if is_last || seen.len() >= limit {
                seen.truncate(limit);
                return Ok(seen);
            }
        }
    }

    /// Makes a schedule of the caller's (`anew`), or changes one.
    ///
    /// # Errors
    /// When the caller may not ask that agent, when it holds a secret, or as [`Change::Put`] says.
    pub async fn put_schedule(
        &self,
        caller: &Caller,
        spec: ScheduleSpec,
        anew: bool,
    ) -> Result<ScheduleView, Failure> {
        if !caller.scope.allows(Right::Run, Some(&spec.agent)) {
            return Err(Failure::new(
                Code::Forbidden,
                "the token does not allow to ask this agent",
            ));
        }
        self.holds_no_secret(&spec)?;
        let id = spec.id.clone();
        if !anew {
            self.schedule(caller, &id).await?;
        }
        let put = Change::Put { spec: Box::new(spec), owner: caller.principal, anew };
        self.change(put).await?.ok_or_else(|| unknown(&id))
    }

    /// Removes a schedule. What it asked for goes on.
    ///
    /// # Errors
    /// `schedule-unknown`, or `schedule-fixed` for one of the configuration.
    pub async fn remove_schedule(&self, caller: &Caller, id: &ScheduleId) -> Result<(), Failure> {
        self.schedule(caller, id).await?;
        self.change(Change::Remove(id.clone())).await.map(drop)
    }

    /// Holds a schedule back, or lets it go on from now. What it asked for goes on.
    ///
    /// # Errors
    /// `schedule-unknown`.
    pub async fn pause_schedule(
        &self,
        caller: &Caller,
        id: &ScheduleId,
        paused: bool,
    ) -> Result<ScheduleView, Failure> {
        self.schedule(caller, id).await?;
        self.change(Change::Pause(id.clone(), paused)).await?.ok_or_else(|| unknown(id))
    }

    /// Has a schedule ask out of turn, beside all else.
    ///
    /// # Errors
    /// `schedule-unknown`, or `forbidden` where the caller may not ask that agent.
    pub async fn run_schedule(
        &self,
        caller: &Caller,
        id: &ScheduleId,
    ) -> Result<ScheduleView, Failure> {
        let view = self.schedule(caller, id).await?;
        if !caller.scope.allows(Right::Run, Some(&view.schedule.spec.agent)) {
            return Err(Failure::new(
                Code::Forbidden,
                "the token does not allow to ask this agent",
            ));
        }
        self.change(Change::RunNow(id.clone())).await?.ok_or_else(|| unknown(id))
    }

    /// Brings the schedules of the configuration to what it says now.
    ///
    /// # Errors
    /// When that could not be written down; then nothing has changed.
    pub async fn configure_schedules(&self, configured: Vec<Configured>) -> Result<(), Failure> {
        let owned = owned(&*self.kit.ledger, configured).await;
        let owned = owned.map_err(|error| unreadable(&error))?;
        self.change(Change::Configure(owned)).await.map(drop)
    }

    /// What became of the times of schedules that the caller may see.
    ///
    /// # Errors
    /// `schedule-unknown`, or when it could not be read.
    pub async fn occurrences(
        &self,
        caller: &Caller,
        mut query: OccurrenceQuery,
    ) -> Result<Vec<Occurrence>, Failure> {
        if !caller.scope.allows(Right::Admin, None) {
            query.owner = Some(caller.principal);
        }
        query.agents = caller.scope.agents.clone();
        let read = self.timebook()?.occurrences(query).await;
        read.map_err(|error| unreadable(&error))
    }

    /// How a schedule did in the last thirty days.
    ///
    /// # Errors
    /// `schedule-unknown`, or when it could not be read.
    pub async fn statistics(
        &self,
        caller: &Caller,
        id: &ScheduleId,
    ) -> Result<Statistics, Failure> {
        self.schedule(caller, id).await?;
        let since: DateTime<Utc> = self.now() - TimeDelta::days(COUNTED_DAYS);
        let tallied = self.timebook()?.tally(id, since).await;
        Ok(statistics(&tallied.map_err(|error| unreadable(&error))?))
    }

    /// A schedule is stored as it is, so it may hold nothing that must be masked.
    fn holds_no_secret(&self, spec: &ScheduleSpec) -> Result<(), Failure> {
        let texts = [&spec.input, &spec.name].into_iter().chain(spec.params.values());
        let redactor = self.kit.redactor.now();
        for text in texts {
            if redactor.redact(text) != *text {
                let message = "a schedule is stored as it is, so it must not hold a secret";
                return Err(Failure::new(Code::InvalidParams, message));
            }
        }
        Ok(())
    }

    fn timebook(&self) -> Result<&dyn Timebook, Failure> {
        self.timebook.as_deref().ok_or_else(silent)
    }

    async fn change(&self, change: Change) -> Result<Option<ScheduleView>, Failure> {
        self.ask_scheduler(|reply| SchedulerMsg::Change(change, reply)).await?
    }

    async fn ask_scheduler<T: Send + 'static>(
        &self,
        msg: impl FnOnce(RpcReplyPort<T>) -> SchedulerMsg + Send,
    ) -> Result<T, Failure> {
        let scheduler = self.scheduler.borrow().clone().ok_or_else(silent)?;
        match scheduler.call(msg, Some(ANSWER)).await {
            Ok(CallResult::Success(answer)) => Ok(answer),
            Ok(CallResult::Timeout | CallResult::SenderError) | Err(_) => Err(silent()),
        }
    }
}

fn may_see(caller: &Caller, view: &ScheduleView) -> bool {
    let agent = Some(&view.schedule.spec.agent);
    let own = view.schedule.owner == caller.principal && caller.scope.allows(Right::Read, agent);
    own || caller.scope.allows(Right::Admin, agent)
}

fn unknown(id: &ScheduleId) -> Failure {
    Failure::new(Code::ScheduleUnknown, format!("there is no schedule `{id}`"))
}

fn silent() -> Failure {
    Failure::new(Code::Draining, "the scheduler does not answer; it is being started or stopped")
}
