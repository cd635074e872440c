//! Changes of what is scheduled: written down first, then in force.

use std::collections::BTreeSet;
use std::mem;

use chrono::{DateTime, SubsecRound, Utc};

use super::entry::{Entry, Open, Phase};
use super::errands::Errand;
use super::kept::Kept;
use super::looking::plain;
use super::{ChangeReply, SchedulerData, SchedulerMsg, Slot};
use crate::alarm::alarmed;
use crate::decide::due::due_at;
use crate::model::code::Code;
use crate::model::failure::Failure;
use crate::model::id::PrincipalId;
use crate::model::occurrence::{Cause, Occurrence, Verdict};
use crate::model::schedule::{Origin, Schedule, ScheduleId, ScheduleSpec};
use crate::ports::ledger::LedgerError;
use crate::ports::timebook::{Advance, Timebook};

/// A change of what is scheduled, by somebody who may make it.
#[derive(Debug, Clone)]
pub enum Change {
    /// Makes one, or changes one where `anew` is not set.
    Put {
        /// What it says.
        spec: Box<ScheduleSpec>,
        /// Whose it is, where it is made.
        owner: PrincipalId,
        /// Whether there may be none of that id yet.
        anew: bool,
    },
    /// Removes one.
    Remove(ScheduleId),
    /// Holds one back, or lets it go on.
    Pause(ScheduleId, bool),
    /// Asks for an occurrence now, whatever else there is.
    RunNow(ScheduleId),
    /// Brings those of the configuration to what it says now; each with whose it is.
    Configure(Vec<(ScheduleSpec, PrincipalId)>),
}

/// What was written down, or was to be.
pub struct Changed {
    written: Written,
    result: Result<(), Failure>,
    about: Option<ScheduleId>,
    reply: ChangeReply,
}

/// What is to be written down.
enum Written {
    /// Schedules to be put and to be removed.
    Book { puts: Vec<Schedule>, removes: Vec<ScheduleId> },
    /// An occurrence out of turn.
    Extra(Box<Advance>),
}

impl SchedulerData {
    /// Begins the next change.
    pub(super) fn begin_change(&mut self) {
        while let Some((change, reply)) = self.changes.pop_front() {
            match self.planned(change) {
                Err(failure) => _ = reply.send(Err(failure)),
                Ok((written, about)) => return self.write(written, about, reply),
            }
        }
    }

    fn planned(&self, change: Change) -> Result<(Written, Option<ScheduleId>), Failure> {
        let now = self.now();
        Ok(match change {
            Change::Put { spec, owner, anew } => {
                let id = spec.id.clone();
                self.args.agenda.wording.input(&spec, now).map_err(|why| {
                    Failure::new(Code::InvalidParams, format!("`input` cannot be used: {why}"))
                })?;
                let puts = vec![self.put(*spec, owner, anew)?];
                (Written::Book { puts, removes: Vec::new() }, Some(id))
            }
            Change::Remove(id) => {
                self.of_api(&id)?;
                (Written::Book { puts: Vec::new(), removes: vec![id] }, None)
            }
            Change::Pause(id, paused) => {
                let schedule = self.known(&id)?.kept.whole();
                let cursor = if schedule.paused && !paused { now } else { schedule.cursor };
                let puts = vec![Schedule { paused, cursor, changed_at: now, ..schedule }];
                (Written::Book { puts, removes: Vec::new() }, Some(id))
            }
            Change::RunNow(id) => {
                let planned = now.trunc_subsecs(6);
                let extra = plain(self.known(&id)?, (planned, planned), now);
                let extra = Occurrence { cause: Cause::Manual, ..extra };
                let (schedule, cursor) = (id.clone(), self.known(&id)?.kept.cursor());
                let advance = Advance { schedule, cursor, occurrences: vec![extra] };
                (Written::Extra(Box::new(advance)), Some(id))
            }
            Change::Configure(configured) => {
                let named = configured.iter().map(|(spec, _)| spec.id.clone()).collect();
                let removes = gone(self.entries.values().map(|entry| &entry.kept), &named);
                let known = |id: &ScheduleId| self.entries.get(id).map(|entry| &entry.kept);
                let puts = puts(known, configured, now);
                (Written::Book { puts, removes }, None)
            }
        })
    }

    /// The row of a schedule that somebody makes or changes.
    fn put(&self, spec: ScheduleSpec, owner: PrincipalId, anew: bool) -> Result<Schedule, Failure> {
        let mut others = self.entries.values().filter(|entry| entry.kept.id != spec.id);
        if others.any(|entry| entry.kept.name() == spec.name) {
            let message = format!("another schedule is named `{}`", spec.name);
            return Err(Failure::new(Code::ScheduleExists, message));
        }
        match (self.entries.get(&spec.id), anew) {
            (None, true) => Ok(fresh(spec, owner, Origin::Api, self.now())),
            (Some(_), true) => {
                let message = format!("there is a schedule `{}` already", spec.id);
                Err(Failure::new(Code::ScheduleExists, message))
            }
            (_, false) => {
                let known = self.of_api(&spec.id)?.kept.whole();
                let owner = known.owner;
                Ok(updated(known, spec, owner, self.now()))
            }
        }
    }

    fn known(&self, id: &ScheduleId) -> Result<&Entry, Failure> {
        let none = || Failure::new(Code::ScheduleUnknown, format!("there is no schedule `{id}`"));
        self.entries.get(id).ok_or_else(none)
    }

    /// A schedule that callers may change.
    fn of_api(&self, id: &ScheduleId) -> Result<&Entry, Failure> {
        let entry = self.known(id)?;
        match entry.kept.alike().origin {
            Origin::Api => Ok(entry),
            Origin::Configuration => {
                let message = format!("the configuration says what `{id}` is");
                Err(Failure::new(Code::ScheduleFixed, message))
            }
        }
    }

    fn write(&mut self, written: Written, about: Option<ScheduleId>, reply: ChangeReply) {
        self.writing = true;
        let (timebook, me) = (self.args.agenda.timebook.clone(), self.me.clone());
        let broken = me.clone();
        let writing = async move {
            let result = written.write(&*timebook).await.map_err(|error| unwritten(&error));
            let changed = Changed { written, result, about, reply };
            _ = me.cast(SchedulerMsg::Changed(Box::new(changed)));
        };
        self.tasks.spawn(alarmed(writing, move || _ = broken.cast(SchedulerMsg::Broken)));
    }

    /// Lets what was written down be in force.
    pub(super) fn changed(&mut self, changed: Changed) {
        self.writing = false;
        let Changed { written, result, about, reply } = changed;
        if let Err(failure) = result {
            _ = reply.send(Err(failure));
            return;
        }
        match written {
            Written::Book { puts, removes } => {
                removes.iter().for_each(|id| self.leave(id));
                puts.into_iter().for_each(|schedule| self.enter(schedule));
                self.patterns.tidy();
            }
            Written::Extra(advance) => advance.occurrences.into_iter().for_each(|it| self.add(it)),
        }
        _ = reply.send(Ok(about.and_then(|id| self.show(&id))));
    }

    fn leave(&mut self, id: &ScheduleId) {
        self.close_waiting(id, Verdict::Refused, "its schedule was removed");
        if let Some(next) = self.entries.remove(id).and_then(|entry| entry.next) {
            self.errands.drop(next, Errand::Look(id.clone()));
        }
    }

    /// Puts a schedule in force; what of it is under way goes on.
    fn enter(&mut self, schedule: Schedule) {
        let id = schedule.spec.id.clone();
        if schedule.paused {
            self.close_waiting(&id, Verdict::Skipped, "its schedule was held back");
        }
        let (spec, cursor) = (&schedule.spec, schedule.cursor);
        // It is looked at right away; whoever made it is told now.
        let first = spec.timetable.after(cursor).next().map(|next| due_at(&id, spec.jitter, next));
        let kept = Kept::new(schedule, &mut self.patterns);
        match self.entries.get_mut(&id) {
            None => _ = self.entries.insert(id.clone(), Entry { next: first, ..Entry::new(kept) }),
            Some(entry) => {
                entry.kept = kept;
                if let Some(next) = mem::replace(&mut entry.next, first) {
                    self.errands.drop(next, Errand::Look(id.clone()));
                }
            }
        }
        let now = self.now();
        self.errands.add(now, Errand::Look(id));
    }

    /// Takes up an occurrence out of turn: it waits for none.
    fn add(&mut self, occurrence: Occurrence) {
        if let Some(deadline) = occurrence.deadline {
            let slot = (occurrence.schedule.clone(), occurrence.planned);
            self.errands.add(deadline, Errand::CallOff(slot.into()));
        }
        let open = Open { phase: Phase::Asking, ..Open::of(occurrence) };
        self.ready.push_back(open.slot());
        if let Some(entry) = self.entries.get_mut(&open.occurrence.schedule) {
            entry.open.insert(open.occurrence.planned, open);
        }
    }

    fn close_waiting(&mut self, id: &ScheduleId, verdict: Verdict, why: &str) {
        let Some(entry) = self.entries.get(id) else { return };
        let waiting = entry.open.values().filter(|open| open.phase == Phase::Waiting);
        let waiting: Vec<Slot> = waiting.map(Open::slot).collect();
        for slot in waiting {
            self.close(&slot, verdict, Some(why.to_owned()));
        }
    }
}

impl Written {
    async fn write(&self, timebook: &dyn Timebook) -> Result<(), LedgerError> {
        match self {
            Self::Book { puts, removes } => {
                timebook.put(puts.clone()).await?;
                timebook.remove(removes.clone()).await
            }
            Self::Extra(advance) => timebook.advance(vec![(**advance).clone()]).await.map(drop),
        }
    }
}

fn unwritten(error: &LedgerError) -> Failure {
    tracing::error!(%error, "a change of the schedules was not written down");
    Failure::new(Code::LedgerUnavailable, "the change could not be written down")
}

/// What must be removed where the configuration names these.
pub(super) fn gone<'s>(
    known: impl Iterator<Item = &'s Kept>,
    named: &BTreeSet<ScheduleId>,
) -> Vec<ScheduleId> {
    let is_gone =
        |it: &&Kept| it.alike().origin == Origin::Configuration && !named.contains(&it.id);
    known.filter(is_gone).map(|it| it.id.clone()).collect()
}

/// What must be put so that these schedules of the configuration are what it says.
pub(super) fn puts<'s>(
    known: impl Fn(&ScheduleId) -> Option<&'s Kept>,
    configured: Vec<(ScheduleSpec, PrincipalId)>,
    now: DateTime<Utc>,
) -> Vec<Schedule> {
    let put = |(spec, owner): (ScheduleSpec, PrincipalId)| match known(&spec.id) {
        None => Some(fresh(spec, owner, Origin::Configuration, now)),
        Some(known) => {
            let (known, origin) = (known.whole(), Origin::Configuration);
            let is_same = is_same(&known, &spec, owner);
            (!is_same).then(|| Schedule { origin, ..updated(known, spec, owner, now) })
        }
    };
    configured.into_iter().filter_map(put).collect()
}

fn is_same(known: &Schedule, spec: &ScheduleSpec, owner: PrincipalId) -> bool {
    known.origin == Origin::Configuration && known.spec == *spec && known.owner == owner
}

const fn fresh(
    spec: ScheduleSpec,
    owner: PrincipalId,
    origin: Origin,
    now: DateTime<Utc>,
) -> Schedule {
    Schedule { spec, owner, origin, paused: false, cursor: now, created_at: now, changed_at: now }
}

/// A schedule that says something else. Its new times begin now; those that were not decided yet are
/// none of it.
fn updated(
    known: Schedule,
    spec: ScheduleSpec,
    owner: PrincipalId,
    now: DateTime<Utc>,
) -> Schedule {
    let same = known.spec.timetable == spec.timetable && known.spec.enabled == spec.enabled;
    let cursor = if same { known.cursor } else { now };
    Schedule { spec, owner, cursor, changed_at: now, ..known }
}
