//! Looking at what is due, and writing down what is decided.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use super::entry::{Entry, Open, Phase};
use super::errands::Errand;
use super::leave::Leave;
use super::{SchedulerData, SchedulerMsg, Slot};
use crate::alarm::alarmed;
use crate::decide::due::{Look, Passed, Rhythm, Way, due_at, look, way};
use crate::model::occurrence::{Cause, Occurrence, Verdict};
use crate::model::schedule::{Overlap, Schedule, ScheduleId, ScheduleSpec};
use crate::ports::ledger::LedgerError;
use crate::ports::timebook::Advance;

/// Schedules whose decisions are written down together, at most.
const BATCH: usize = 256;
/// How long until a schedule is looked at again whose decisions were not written down.
const AGAIN: TimeDelta = TimeDelta::seconds(5);
/// How often what is long over is forgotten.
pub(super) const TIDYING: TimeDelta = TimeDelta::hours(1);
/// Schedules that are looked at before others are heard, at most.
const LOOKS: usize = 1024;
/// Rows that are forgotten at a time.
const ROWS: u32 = 5000;

/// Decisions that were written down, or were to be.
pub struct Advanced {
    /// How far each schedule has come by them.
    cursors: Vec<Slot>,
    /// Who may ask.
    leave: Arc<Leave>,
    /// What of it is new, of each.
    result: Result<Vec<Vec<Occurrence>>, LedgerError>,
}

impl SchedulerData {
    /// Does what is to be done by now.
    pub(super) fn look(&mut self) {
        let now = self.now();
        let (mut batch, mut looks) = (Vec::new(), 0..LOOKS);
        self.behind = true;
        while batch.len() < BATCH && looks.next().is_some() {
            match self.errands.take(now) {
                None => {
                    self.behind = false;
                    break;
                }
                Some(Errand::Look(id)) => batch.extend(self.look_at(&id, now)),
                Some(Errand::Ask(slot)) => self.ready.push_back(*slot),
                Some(Errand::CallOff(slot)) => {
                    self.call_off(&slot, "its schedule's deadline passed");
                }
                Some(Errand::Forget) => self.forget(now),
            }
        }
        match batch.is_empty() {
            false => self.advance(batch),
            // Others are heard before the rest is looked at.
            true if self.behind => _ = self.me.cast(SchedulerMsg::Tick),
            true => {}
        }
    }

    /// Looks at one schedule; gives what there is to write down.
    fn look_at(&mut self, id: &ScheduleId, now: DateTime<Utc>) -> Option<Advance> {
        let entry = self.entries.get_mut(id).filter(|entry| entry.kept.is_active())?;
        let found = look(entry.kept.rhythm(), entry.kept.cursor(), now);
        entry.next = found.next;
        if let Some(next) = found.next {
            self.errands.add(next, Errand::Look(id.clone()));
        }
        if found.fires.is_empty() && found.passed.is_empty() {
            entry.kept.move_to(found.cursor);
            return None;
        }
        let (cursor, occurrences) = (found.cursor, occurrences(entry, found, now));
        Some(Advance { schedule: id.clone(), cursor, occurrences })
    }

    /// Writes decisions down; those that nobody may ask for as refused.
    fn advance(&mut self, mut batch: Vec<Advance>) {
        self.writing = true;
        let cursors = batch.iter().map(|it| (it.schedule.clone(), it.cursor)).collect();
        let (timebook, door) = (self.args.agenda.timebook.clone(), self.args.door.clone());
        let (me, broken) = (self.me.clone(), self.me.clone());
        let writing = async move {
            let leave = Arc::<Leave>::default();
            leave.refuse(&door, &mut batch).await;
            let result = timebook.advance(batch).await;
            let advanced = Advanced { cursors, leave, result };
            _ = me.cast(SchedulerMsg::Advanced(Box::new(advanced)));
        };
        self.tasks.spawn(alarmed(writing, move || _ = broken.cast(SchedulerMsg::Broken)));
    }

    /// Goes on with what was written down; looks again at what was not.
    pub(super) fn advanced(&mut self, Advanced { cursors, leave, result }: Advanced) {
        self.writing = false;
        self.leave = Some(leave);
        let fresh = match result {
            Ok(fresh) => fresh,
            Err(error) => {
                tracing::error!(%error, "decisions of schedules were not written down");
                let at = self.now() + AGAIN;
                cursors.into_iter().for_each(|(id, _)| self.errands.add(at, Errand::Look(id)));
                return;
            }
        };
        for ((id, cursor), fresh) in cursors.into_iter().zip(fresh) {
            let Some(entry) = self.entries.get_mut(&id) else { continue };
            entry.kept.move_to(cursor);
            fresh.iter().for_each(tell);
            self.begin(&id, fresh);
        }
    }

    /// Takes up occurrences that are to be asked for.
    pub(super) fn begin(&mut self, id: &ScheduleId, occurrences: Vec<Occurrence>) {
        for occurrence in occurrences {
            let slot = (id.clone(), occurrence.planned);
            if let Some(deadline) = occurrence.deadline.filter(|_| occurrence.is_open()) {
                self.errands.add(deadline, Errand::CallOff(slot.into()));
            }
            let entry = self.entries.get_mut(id);
            if let Some(entry) = entry.filter(|_| occurrence.verdict == Verdict::Pending) {
                entry.open.insert(occurrence.planned, Open::of(occurrence));
            }
        }
        self.move_on(id);
    }

    /// Lets those of a schedule's occurrences that wait go on that may.
    pub(super) fn move_on(&mut self, id: &ScheduleId) {
        let Some(entry) = self.entries.get(id) else { return };
        let overlap = entry.kept.alike().spec.overlap;
        let waits = |open: &&Open| open.phase == Phase::Waiting;
        let waiting: Vec<Slot> = entry.open.values().filter(waits).map(Open::slot).collect();
        let busy: Vec<Slot> =
            entry.open.values().filter(|open| !waits(open)).map(Open::slot).collect();
        for (index, slot) in waiting.iter().enumerate() {
            let is_last = index + 1 == waiting.len();
            match way(overlap, busy.len(), 0) {
                Way::Fire if overlap == Overlap::Allow => self.ready_up(slot),
                Way::Replace if !is_last => self.replace(slot),
                Way::Replace => {
                    let why = "a later occurrence of its schedule takes its place";
                    busy.iter().for_each(|slot| self.call_off(slot, why));
                }
                Way::Fire if index == 0 => self.ready_up(slot),
                Way::Fire | Way::Wait | Way::Skip(_) => {}
            }
        }
    }

    fn ready_up(&mut self, slot: &Slot) {
        if let Some(open) = self.open_mut(slot) {
            open.phase = Phase::Asking;
            self.ready.push_back(slot.clone());
        }
    }

    fn forget(&mut self, now: DateTime<Utc>) {
        self.errands.add(now + TIDYING, Errand::Forget);
        let history = TimeDelta::from_std(self.args.agenda.history).unwrap_or(TimeDelta::MAX);
        let Some(before) = now.checked_sub_signed(history) else { return };
        let timebook = self.args.agenda.timebook.clone();
        let broken = self.me.clone();
        let forgetting = async move {
            while timebook.forget(before, ROWS).await.is_ok_and(|rows| rows == u64::from(ROWS)) {
                tokio::time::sleep(Duration::from_secs(1)).await; // Others want to write too.
            }
        };
        self.tasks.spawn(alarmed(forgetting, move || _ = broken.cast(SchedulerMsg::Broken)));
    }
}

/// What a look decided, as it is written down.
fn occurrences(entry: &Entry, found: Look, now: DateTime<Utc>) -> Vec<Occurrence> {
    let spec = &entry.kept.alike().spec;
    let Rhythm { id, jitter, .. } = entry.kept.rhythm();
    let passed = found.passed.into_iter().map(|passed| {
        let Passed { first, times, verdict, .. } = passed;
        let reason = Some(reason(&passed));
        let plain = plain(entry, (first, due_at(id, jitter, first)), now);
        Occurrence { verdict, times, reason, cause: Cause::CatchUp, ..plain }
    });
    let mut all: Vec<_> = passed.collect();
    let mut waiting = entry.count(Phase::Waiting);
    let mut busy = entry.open.len() - waiting;
    for (planned, due, cause) in found.fires {
        let (verdict, reason) = match way(spec.overlap, busy, waiting) {
            Way::Fire => {
                busy += 1;
                (Verdict::Pending, None)
            }
            Way::Wait | Way::Replace => {
                waiting += 1;
                (Verdict::Pending, None)
            }
            Way::Skip(reason) => (Verdict::Skipped, Some(reason.to_owned())),
        };
        let plain = plain(entry, (planned, due), now);
        all.push(Occurrence { cause, verdict, reason, ..plain });
    }
    all
}

/// An occurrence of which nothing is known but its time and when it is due.
pub(super) fn plain(
    entry: &Entry,
    (planned, due): (DateTime<Utc>, DateTime<Utc>),
    now: DateTime<Utc>,
) -> Occurrence {
    let Schedule { spec, owner, .. } = entry.kept.alike();
    Occurrence {
        schedule: entry.kept.id.clone(),
        planned,
        due,
        cause: Cause::Due,
        verdict: Verdict::Pending,
        reason: None,
        times: 1,
        decided_at: now,
        agent: spec.agent.clone(),
        owner: *owner,
        fired_at: None,
        execution: None,
        deadline: deadline(spec, due),
        ending: None,
    }
}

fn deadline(spec: &ScheduleSpec, due: DateTime<Utc>) -> Option<DateTime<Utc>> {
    due.checked_add_signed(TimeDelta::from_std(spec.deadline?).ok()?)
}

fn reason(passed: &Passed) -> String {
    let Passed { last, times, reason, .. } = passed;
    match times {
        1 => (*reason).to_owned(),
        _ => format!("{reason}; {times} of them, up to {}", last.format("%Y-%m-%dT%H:%M:%SZ")),
    }
}

/// Logs what will not be asked for.
fn tell(occurrence: &Occurrence) {
    let Occurrence { schedule, planned, verdict, times, reason, .. } = occurrence;
    if *verdict != Verdict::Pending {
        let (verdict, why) = (verdict.as_str(), reason.as_deref().unwrap_or_default());
        tracing::warn!(%schedule, %planned, verdict, times, why, "not asked for");
    }
}
