//! Schedules in an environment, and the results of their occurrences.

use std::time::Duration;

use super::fixtures::{agent_spec, caller};
use super::{DEFAULT_AGENT, TestTree};
use crate::model::access::principal::NewToken;
use crate::model::code::Code;
use crate::model::id::ScheduleId;
use crate::model::schedule::ConfiguredSchedule;
use crate::model::schedule::occurrence::Occurrence;
use crate::model::schedule::recurrence::RecurrenceRule;
use crate::model::schedule::{MissedPolicy, OverlapPolicy, ScheduleSpec, ScheduleView};
use crate::ports::ledger::Ledger;

/// Returns a schedule for the worker, with its id, its input and its recurrence.
#[must_use]
#[expect(clippy::missing_panics_doc, clippy::expect_used, reason = "a test fails by panicking")]
pub fn cron_schedule(id: &str, cron: &str) -> ScheduleSpec {
    ScheduleSpec {
        id: ScheduleId::new(id).expect("the id of a schedule"),
        name: id.to_owned(),
        agent: agent_spec(DEFAULT_AGENT).id,
        recurrence: RecurrenceRule::new(cron, "UTC", true).expect("a timetable"),
        input: id.to_owned(),
        params: std::collections::BTreeMap::new(),
        missed: MissedPolicy::default(),
        overlap: OverlapPolicy::Skip,
        jitter: Duration::ZERO,
        deadline: None,
        alert_after: 3,
        enabled: true,
    }
}

impl TestTree {
    /// Sets the configured schedules from the next start on, owned by the caller of the environment.
    pub async fn configure_schedules(&mut self, specs: impl IntoIterator<Item = ScheduleSpec>) {
        self.add_caller_token().await;
        let owner = caller().name;
        let to_configured = |spec| ConfiguredSchedule { spec, owner: owner.clone() };
        self.configured_schedules = specs.into_iter().map(to_configured).collect();
    }

    /// Gives the caller of the environment a token.
    #[expect(clippy::missing_panics_doc, clippy::expect_used, reason = "a test fails by panicking")]
    pub async fn add_caller_token(&self) {
        let (name, scope) = (caller().name, caller().scope);
        let new_token = NewToken { name, hash: [9; 32], scope, expires_at: None };
        self.ledger.add_token(caller().principal, new_token).await;
        self.ledger.tokens().await.expect("tokens are read");
    }

    /// Creates a schedule, as a caller does.
    ///
    /// # Errors
    /// Returns the code of the rejection.
    pub async fn create_schedule(&self, spec: ScheduleSpec) -> Result<ScheduleView, Code> {
        let result = self.api.schedules.put_schedule(&caller(), spec, true).await;
        result.map_err(|failure| failure.code)
    }

    /// Returns the client handle, for operations without a helper.
    #[must_use]
    pub const fn api(&self) -> &crate::api::Api {
        &self.api
    }

    /// Returns the caller of the environment.
    #[must_use]
    pub fn caller(&self) -> crate::model::access::principal::Caller {
        caller()
    }

    /// Returns the occurrences of a schedule in order, such as `08:01 fired`, each with its outcome, and the number of
    /// planned times it represents if that is more than one.
    pub async fn occurrence_lines(&self, id: &str) -> Vec<String> {
        let all = self.schedule_store.all_occurrences().await;
        all.iter().filter(|it| it.schedule.as_str() == id).map(describe_occurrence).collect()
    }
}

fn describe_occurrence(occurrence: &Occurrence) -> String {
    let Occurrence {
        planned_at: planned, status, planned_time_count: time_count, end: ending, ..
    } = occurrence;
    let mut line = format!("{} {}", planned.format("%H:%M"), status.as_str());
    if *time_count > 1 {
        line += &format!(" x{time_count}");
    }
    if let Some(ending) = ending {
        line += &format!(" {}", ending.outcome);
    }
    line
}
