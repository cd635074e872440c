//! Schedules in a world, and what became of their times.

use std::time::Duration;

use super::parts::{caller, spec};
use super::{WORKER, World};
use crate::model::code::Code;
use crate::model::occurrence::Occurrence;
use crate::model::principal::TokenSeed;
use crate::model::schedule::Configured;
use crate::model::schedule::{Missed, Overlap, ScheduleId, ScheduleSpec, ScheduleView};
use crate::model::timetable::Timetable;
use crate::ports::ledger::Ledger;

/// A schedule that asks the worker: its id, what it says, and when.
#[must_use]
#[expect(clippy::missing_panics_doc, clippy::expect_used, reason = "a test fails by panicking")]
pub fn every(id: &str, cron: &str) -> ScheduleSpec {
    ScheduleSpec {
        id: ScheduleId::new(id).expect("the id of a schedule"),
        name: id.to_owned(),
        agent: spec(WORKER).id,
        timetable: Timetable::new(cron, "UTC", true).expect("a timetable"),
        input: id.to_owned(),
        params: std::collections::BTreeMap::new(),
        missed: Missed::default(),
        overlap: Overlap::Skip,
        jitter: Duration::ZERO,
        deadline: None,
        alert_after: 3,
        enabled: true,
    }
}

impl World {
    /// Lets the configuration have these schedules from the next start on, and them belong to
    /// whoever asks in a world.
    pub async fn configure(&mut self, specs: impl IntoIterator<Item = ScheduleSpec>) {
        self.admit().await;
        let owner = caller().name;
        let configured = |spec| Configured { spec, owner: owner.clone() };
        self.configured = specs.into_iter().map(configured).collect();
    }

    /// Gives whoever asks in a world a token.
    #[expect(clippy::missing_panics_doc, clippy::expect_used, reason = "a test fails by panicking")]
    pub async fn admit(&self) {
        let (name, scope) = (caller().name, caller().scope);
        let seed = TokenSeed { name, hash: [9; 32], scope, expires: None };
        self.ledger.admit(caller().principal, seed).await;
        self.ledger.tokens().await.expect("tokens are read");
    }

    /// Makes a schedule, as a caller does.
    ///
    /// # Errors
    /// The code of the refusal.
    pub async fn schedule(&self, spec: ScheduleSpec) -> Result<ScheduleView, Code> {
        let put = self.door.put_schedule(&caller(), spec, true).await;
        put.map_err(|failure| failure.code)
    }

    /// The door, for what has no shorter way.
    #[must_use]
    pub const fn door(&self) -> &crate::door::Gateway {
        &self.door
    }

    /// Whoever asks.
    #[must_use]
    pub fn caller(&self) -> crate::model::principal::Caller {
        caller()
    }

    /// What became of a schedule's times, in order, such as `08:01 fired`, each with how it ended,
    /// and how many times it stands for where that is more than one.
    pub async fn times(&self, id: &str) -> Vec<String> {
        let all = self.timebook.all().await;
        all.iter().filter(|it| it.schedule.as_str() == id).map(told).collect()
    }
}

fn told(occurrence: &Occurrence) -> String {
    let Occurrence { planned, verdict, times, ending, .. } = occurrence;
    let mut told = format!("{} {}", planned.format("%H:%M"), verdict.as_str());
    if *times > 1 {
        told += &format!(" x{times}");
    }
    if let Some(ending) = ending {
        told += &format!(" {}", ending.outcome);
    }
    told
}
