//! Asking at the door for what is due, and following what it becomes.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use tokio::sync::watch;

use super::entry::{How, Phase};
use super::errands::Errand;
use super::leave::{Leave, not_given};
use super::{SchedulerData, SchedulerMsg, Slot};
use crate::agent::Ticket;
use crate::alarm::alarmed;
use crate::decide::alert::Sighting;
use crate::decide::due::ON_TIME;
use crate::door::Gateway;
use crate::model::code::{Category, Code};
use crate::model::execution::Outcome;
use crate::model::failure::Failure;
use crate::model::id::{ContextId, ExecutionId, MessageId, PrincipalId};
use crate::model::occurrence::{Cause, Ending, Occurrence, OccurrenceQuery, Verdict};
use crate::model::principal::{Caller, Right, Scope};
use crate::model::progress::Progress;
use crate::model::record::Record;
use crate::model::request::{Input, Overrides, Request, Trigger};
use crate::model::schedule::ScheduleSpec;
use crate::ports::timebook::Timebook;

/// Requests of schedules that are under way at a time.
const AT_ONCE: usize = 64;
/// The longest pause before something is asked for again.
const LONGEST: u32 = 30;
/// Failures in a row that are counted.
const COUNTED: u32 = 100;

/// What became of a request.
pub enum Asked {
    /// It is an execution.
    Taken(ExecutionId, Option<watch::Receiver<Progress>>),
    /// It was not taken, and will not be.
    Refused(Failure),
    /// It was not taken now.
    Later(Failure),
    /// It was never taken, and its time is over.
    Lapsed,
}

impl SchedulerData {
    /// Asks for as many of those that may be asked for as may be under way.
    pub(super) fn ask_the_ready(&mut self) {
        let leave = self.leave.take();
        if self.ready.is_empty() {
            return;
        }
        let leave = leave.unwrap_or_default();
        while self.asking < AT_ONCE {
            let Some(slot) = self.ready.pop_front() else { return };
            let Some(entry) = self.entries.get_mut(&slot.0) else { continue };
            let Some(open) = entry.open.get_mut(&slot.1) else { continue };
            open.tries += 1;
            let (occurrence, spec) = (open.occurrence.clone(), entry.kept.spec());
            let (how, leave) = (open.how, Arc::clone(&leave));
            let errand = Asking { occurrence, spec, how, leave };
            self.asking += 1;
            self.spawn_asking(slot, errand);
        }
    }

    fn spawn_asking(&mut self, slot: Slot, errand: Asking) {
        let (me, broken, door) = (self.me.clone(), self.me.clone(), self.args.door.clone());
        let wording = self.args.agenda.wording.clone();
        let asking = async move {
            let input = wording.input(&errand.spec, errand.occurrence.planned);
            let asked = errand.ask(&door, input).await;
            _ = me.cast(SchedulerMsg::Asked(slot, asked));
        };
        self.tasks.spawn(alarmed(asking, move || _ = broken.cast(SchedulerMsg::Broken)));
    }

    /// Goes on with what became of a request.
    pub(super) fn asked(&mut self, slot: &Slot, asked: Asked) {
        self.asking = self.asking.saturating_sub(1);
        let now = self.now();
        match asked {
            Asked::Taken(execution, progress) => self.taken(slot, execution, progress),
            Asked::Later(failure) => match self.pause(slot, now) {
                None => self.refused(slot, &failure),
                Some(pause) => {
                    let (at, code) = (now + TimeDelta::seconds(pause.into()), failure.code);
                    tracing::info!(schedule = %slot.0, %code, pause, "asked again later");
                    self.errands.add(at, Errand::Ask(slot.clone().into()));
                }
            },
            Asked::Refused(failure) => self.refused(slot, &failure),
            Asked::Lapsed => {
                let reason = Some("its time passed while the service was down".to_owned());
                self.close(slot, Verdict::Missed, reason);
            }
        }
    }

    /// The seconds until something is asked for again; nothing when its time is over.
    fn pause(&mut self, slot: &Slot, now: DateTime<Utc>) -> Option<u32> {
        let entry = self.entries.get_mut(&slot.0)?;
        let window = entry.kept.alike().spec.missed.window().max(ON_TIME);
        let open = entry.open.get_mut(&slot.1)?;
        if open.how == How::Fresh {
            open.how = How::Again;
        }
        let pause = (1 << open.tries.saturating_sub(1).min(6)).min(LONGEST);
        let is_over = open.occurrence.deadline.is_some_and(|deadline| deadline <= now);
        (!is_over && is_in_time(&open.occurrence, window, now)).then_some(pause)
    }

    /// It is an execution now, also where its schedule was removed meanwhile.
    fn taken(
        &mut self,
        slot: &Slot,
        execution: ExecutionId,
        progress: Option<watch::Receiver<Progress>>,
    ) {
        let now = self.now();
        if let Some(open) = self.open_mut(slot) {
            open.phase = Phase::Working;
            open.occurrence.verdict = Verdict::Fired;
            open.occurrence.fired_at = Some(now);
            open.occurrence.execution = Some(execution);
        }
        self.settle(slot, (Verdict::Fired, None), Some(execution));
        self.follow(slot.clone(), execution, progress);
    }

    fn refused(&mut self, slot: &Slot, failure: &Failure) {
        let reason = reason(failure);
        tracing::warn!(schedule = %slot.0, planned = %slot.1, reason, "the request was refused");
        self.close(slot, Verdict::Refused, Some(reason));
    }

    /// A later occurrence takes the place of one that waits.
    pub(super) fn replace(&mut self, slot: &Slot) {
        let reason = Some("a later one stands for it".to_owned());
        self.close(slot, Verdict::Coalesced, reason);
    }

    /// Ends an occurrence that is no execution.
    pub(super) fn close(&mut self, slot: &Slot, verdict: Verdict, reason: Option<String>) {
        if let Some(entry) = self.entries.get_mut(&slot.0) {
            entry.open.remove(&slot.1);
        }
        self.settle(slot, (verdict, reason), None);
        self.move_on(&slot.0);
    }

    /// Waits for the end of an execution, and tells it.
    pub(super) fn follow(
        &mut self,
        slot: Slot,
        execution: ExecutionId,
        progress: Option<watch::Receiver<Progress>>,
    ) {
        let (me, broken, door) = (self.me.clone(), self.me.clone(), self.args.door.clone());
        let timebook = self.args.agenda.timebook.clone();
        let following = async move {
            let ending = ending(&door, execution, progress).await;
            while let Err(error) = timebook.end(&slot.0, slot.1, ending).await {
                tracing::error!(%error, "the end of a schedule's work was not written down");
                tokio::time::sleep(Duration::from_secs(5)).await; // The disk may have room then.
            }
            let streak = streak(&latest(&*timebook, &slot, ending).await);
            _ = me.cast(SchedulerMsg::Ended(slot, ending, streak));
        };
        self.tasks.spawn(alarmed(following, move || _ = broken.cast(SchedulerMsg::Broken)));
    }

    /// Goes on after the end of an execution; tells a row of failures that has become long.
    pub(super) fn ended(&mut self, slot: &Slot, ending: Ending, streak: u32) {
        let (outcome, code) = (ending.outcome, ending.code.map(Code::as_str));
        tracing::info!(schedule = %slot.0, planned = %slot.1, %outcome, code, "schedule's work ended");
        let Some(entry) = self.entries.get_mut(&slot.0) else { return };
        entry.open.remove(&slot.1);
        entry.streak = streak;
        let limit = entry.kept.alike().spec.alert_after;
        self.args.kit.lookout.see(Sighting::Scheduled(slot.0.clone(), streak, limit));
        self.move_on(&slot.0);
    }

    /// Calls off what an occurrence became, or is about to become.
    pub(super) fn call_off(&mut self, slot: &Slot, why: &'static str) {
        let Some(open) = self.open_mut(slot) else { return };
        let Some(execution) = open.occurrence.execution else {
            return match open.phase {
                Phase::Waiting => self.close(slot, Verdict::Skipped, Some(why.to_owned())),
                // What it becomes is called off when that is known.
                Phase::Asking | Phase::Working => {
                    let soon = self.now() + TimeDelta::seconds(1);
                    self.errands.add(soon, Errand::CallOff(slot.clone().into()));
                }
            };
        };
        let owner = open.occurrence.owner;
        let (door, broken) = (self.args.door.clone(), self.me.clone());
        tracing::warn!(schedule = %slot.0, %execution, why, "schedule's work is called off");
        let calling = async move {
            _ = door.cancel(&caller(owner, "the schedule"), execution).await; // Its end is followed.
        };
        self.tasks.spawn(alarmed(calling, move || _ = broken.cast(SchedulerMsg::Broken)));
    }
}

/// One request to be made.
struct Asking {
    occurrence: Occurrence,
    spec: ScheduleSpec,
    how: How,
    leave: Arc<Leave>,
}

impl Asking {
    async fn ask(self, door: &Gateway, input: Result<String, String>) -> Asked {
        let input = match input {
            Ok(input) => input,
            Err(why) => {
                let message = format!("its input cannot be put into words: {why}");
                return Asked::Refused(Failure::new(Code::InvalidParams, message));
            }
        };
        let request = self.request(input);
        if let Some(known) = self.known(door, &request).await {
            return known;
        }
        match door.submit(&caller(request.owner, "schedule"), request).await {
            Ok(Ticket { execution, progress, .. }) => Asked::Taken(execution, progress),
            Err(failure) if is_passing(&failure) => Asked::Later(failure),
            Err(failure) => Asked::Refused(failure),
        }
    }

    /// The answer that needs no request: it was taken before, or its owner may not ask.
    async fn known(&self, door: &Gateway, request: &Request) -> Option<Asked> {
        let kit = &door.kit;
        let unread = |error| Asked::Later(crate::door::unreadable(&error));
        if self.how != How::Fresh {
            let key = kit.keyring.keys(request).message;
            match kit.ledger.taken(request.owner, &request.agent, key).await {
                Ok(None) if self.how == How::Find => return Some(Asked::Lapsed),
                Ok(None) => {}
                Ok(Some((execution, _))) => return Some(Asked::Taken(execution, None)),
                Err(error) => return Some(unread(error)),
            }
        }
        match self.leave.is_given(door, request.owner, &request.agent).await {
            Ok(true) => None,
            Ok(false) => Some(Asked::Refused(not_given())),
            Err(error) => Some(unread(error)),
        }
    }

    fn request(&self, input: String) -> Request {
        let Self { occurrence, spec, .. } = self;
        let message = occurrence.message();
        Request {
            agent: occurrence.agent.clone(),
            owner: occurrence.owner,
            message: MessageId(message.clone()),
            idempotency: None,
            trace: None,
            context: ContextId(message),
            opens: true,
            continues: None,
            standing: Overrides::default(),
            trigger: Trigger::Schedule {
                id: occurrence.schedule.clone(),
                planned: occurrence.planned,
            },
            input: Input { params: spec.params.clone(), ..Input::text_of(input) },
        }
    }
}

/// Why something was refused, as it is written down.
pub(super) fn reason(failure: &Failure) -> String {
    format!("{}: {}", failure.code, failure.message)
}

/// Whether another try may do better.
fn is_passing(failure: &Failure) -> bool {
    failure.category() != Category::Permanent
}

/// Whether an occurrence may still be asked for.
pub(super) fn is_in_time(occurrence: &Occurrence, window: Duration, now: DateTime<Utc>) -> bool {
    let window = if occurrence.cause == Cause::Manual { ON_TIME } else { window };
    let last = occurrence.due.checked_add_signed(TimeDelta::from_std(window).unwrap_or_default());
    last.is_none_or(|last| now <= last)
}

/// Who the door takes the scheduler for: the owner, whose right to ask was looked at before.
fn caller(principal: PrincipalId, name: &str) -> Caller {
    let scope = Scope { rights: vec![Right::Read, Right::Run], agents: None };
    Caller { principal, name: name.to_owned(), scope }
}

/// Waits until an execution has ended, whatever happens to those who work on it.
async fn ending(
    door: &Gateway,
    execution: ExecutionId,
    mut progress: Option<watch::Receiver<Progress>>,
) -> Ending {
    loop {
        match door.kit.ledger.execution(execution).await {
            Ok(Some(record)) if record.outcome.is_some() => return of(&record),
            Ok(Some(record)) => {
                if progress.is_none() {
                    progress = door.watch(&record.agent, record.id).await;
                }
                door.ended(&record, progress.take()).await;
            }
            Ok(None) => return gone(door.now()),
            Err(error) => tracing::error!(%execution, %error, "read failed"),
        }
        tokio::time::sleep(Duration::from_millis(250)).await; // Only where it did not end.
    }
}

fn of(record: &Record) -> Ending {
    Ending {
        outcome: record.outcome.unwrap_or(Outcome::Failed),
        code: record.failure.as_ref().map(|failure| failure.code),
        recovered: record.outcome == Some(Outcome::Completed) && record.stamp.attempt > 1,
        at: record.ended_at.unwrap_or(record.changed_at),
    }
}

/// The end of an execution of which nothing is left to read.
const fn gone(at: DateTime<Utc>) -> Ending {
    Ending { outcome: Outcome::Failed, code: Some(Code::ExecutionUnknown), recovered: false, at }
}

/// The latest occurrences of a schedule, as far as their failures are counted when one has ended: a success
/// ends every row of failures before it.
async fn latest(timebook: &dyn Timebook, (id, planned): &Slot, ending: Ending) -> Vec<Occurrence> {
    let since = (ending.outcome == Outcome::Completed).then_some(*planned);
    let schedule = Some(id.clone());
    let query = OccurrenceQuery { schedule, since, limit: COUNTED, ..Default::default() };
    timebook.occurrences(query).await.unwrap_or_default()
}

/// Failures in a row, of the latest first.
fn streak(latest: &[Occurrence]) -> u32 {
    let endings = latest.iter().filter_map(|occurrence| occurrence.ending);
    let failed = endings.take_while(|ending| ending.outcome != Outcome::Completed).count();
    u32::try_from(failed).unwrap_or(u32::MAX)
}
