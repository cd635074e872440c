//! What the timebook holds at the start, and what of it is taken up.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};

use super::SchedulerData;
use super::asking::is_in_time;
use super::changing::{gone, puts};
use super::entry::{Entry, How, Open, Phase};
use super::errands::Errand;
use super::kept::{Kept, Patterns};
use crate::decide::due::ON_TIME;
use crate::model::id::PrincipalId;
use crate::model::occurrence::{Occurrence, Verdict};
use crate::model::schedule::{Configured, Overlap, Schedule, ScheduleId, ScheduleSpec};
use crate::ports::ledger::{Ledger, LedgerError};

/// Schedules of the configuration that are taken up at a time.
const SOME: usize = 1024;

impl SchedulerData {
    /// Reads the schedules, and brings them to what the configuration says.
    pub(super) async fn load(&mut self) -> Result<(), LedgerError> {
        let timebook = self.args.agenda.timebook.clone();
        let known = timebook.schedules().await?.into_iter();
        let known = known.map(|it| entry(it, &mut self.patterns)).collect();
        self.keep_all(known);
        if let Some(configured) = self.args.agenda.configured.take() {
            self.reconcile(configured).await?;
        }
        let now = self.now();
        for id in self.entries.keys() {
            self.errands.add(now, Errand::Look(id.clone()));
        }
        self.errands.add(now, Errand::Forget);
        Ok(())
    }

    /// Brings what is kept to what the configuration says, some at a time, so that no more of it is
    /// spelled out than has to be. Who dies on the way begins again with the next start.
    async fn reconcile(&mut self, configured: Vec<Configured>) -> Result<(), LedgerError> {
        let timebook = self.args.agenda.timebook.clone();
        let named = configured.iter().map(|it| it.spec.id.clone()).collect();
        let removes = gone(self.entries.values().map(|entry| &entry.kept), &named);
        drop(named);
        let (mut configured, mut kept) = (configured.into_iter(), Vec::new());
        while configured.len() > 0 {
            let some = configured.by_ref().take(SOME).collect();
            let some = owned(&*self.args.kit.ledger, some).await?;
            let known = |id: &ScheduleId| self.entries.get(id).map(|entry| &entry.kept);
            let puts = puts(known, some, self.now());
            kept.extend(puts.iter().cloned().map(|it| entry(it, &mut self.patterns)));
            if !puts.is_empty() {
                timebook.put(puts).await?;
            }
        }
        drop(configured);
        removes.iter().for_each(|id| _ = self.entries.remove(id));
        self.keep_all(kept);
        self.patterns.tidy();
        if !removes.is_empty() {
            timebook.remove(removes).await?;
        }
        Ok(())
    }

    fn keep_all(&mut self, kept: Vec<(ScheduleId, Entry)>) {
        let mut entries: BTreeMap<_, _> = kept.into_iter().collect(); // Filled to the brim.
        self.entries.append(&mut entries);
    }

    /// Goes on with what an earlier life had decided and not finished.
    pub(super) async fn take_up(&mut self) -> Result<(), LedgerError> {
        let now = self.now();
        for occurrence in self.args.agenda.timebook.open().await? {
            let slot = (occurrence.schedule.clone(), occurrence.planned);
            match (self.entries.get_mut(&slot.0), occurrence.verdict, occurrence.execution) {
                (None, Verdict::Pending, _) => {
                    let reason = Some("its schedule was removed".to_owned());
                    self.close(&slot, Verdict::Refused, reason);
                }
                (None, _, Some(execution)) => self.follow(slot, execution, None),
                (None, _, None) => {}
                (Some(_), Verdict::Pending, _) => self.take_up_pending(occurrence, now),
                (Some(entry), _, execution) => {
                    entry.open.insert(slot.1, Open::of(occurrence.clone()));
                    self.call_off_later(&occurrence);
                    if let Some(execution) = execution {
                        self.follow(slot, execution, None);
                    }
                }
            }
        }
        let ids: Vec<ScheduleId> = self.entries.keys().cloned().collect();
        ids.iter().for_each(|id| self.move_on(id));
        Ok(())
    }

    /// Asks again for what may have been asked for: the door knows whether it was.
    fn take_up_pending(&mut self, occurrence: Occurrence, now: DateTime<Utc>) {
        let slot = (occurrence.schedule.clone(), occurrence.planned);
        self.call_off_later(&occurrence);
        let Some(entry) = self.entries.get_mut(&slot.0) else { return };
        let spec = &entry.kept.alike().spec;
        // Those that wait in a line have their place, however long it takes.
        let is_lasting = spec.overlap == Overlap::Queue
            || is_in_time(&occurrence, spec.missed.window().max(ON_TIME), now);
        let mut open = Open::of(occurrence);
        open.how = if is_lasting { How::Again } else { How::Find };
        open.phase = if is_lasting { Phase::Waiting } else { Phase::Asking };
        entry.open.insert(slot.1, open);
        if !is_lasting {
            self.ready.push_back(slot);
        }
    }

    fn call_off_later(&mut self, occurrence: &Occurrence) {
        if let Some(deadline) = occurrence.deadline {
            let slot = (occurrence.schedule.clone(), occurrence.planned);
            self.errands.add(deadline, Errand::CallOff(slot.into()));
        }
    }
}

fn entry(schedule: Schedule, patterns: &mut Patterns) -> (ScheduleId, Entry) {
    let kept = Kept::new(schedule, patterns);
    (kept.id.clone(), Entry::new(kept))
}

/// The schedules of the configuration, each with whose it is. One that belongs to nobody is left to
/// nobody: it is asked for in vain, and its occurrences say so.
pub(crate) async fn owned(
    ledger: &dyn Ledger,
    configured: Vec<Configured>,
) -> Result<Vec<(ScheduleSpec, PrincipalId)>, LedgerError> {
    let tokens = ledger.tokens().await?;
    let principal = |name: &str| tokens.iter().find(|token| token.name == name);
    let nobody = PrincipalId(uuid::Uuid::nil());
    let owned = configured.into_iter().map(|Configured { spec, owner }| {
        (spec, principal(&owner).map_or(nobody, |token| token.principal))
    });
    Ok(owned.collect())
}
