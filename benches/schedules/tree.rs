//! Supervision tree with schedules, on a ledger of its own.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use algonius_actors::api::Api;
use algonius_actors::api::supervision_tree::{SupervisionTree, TreeOptions};
use algonius_actors::decide::admission::keyed_hasher::KeyedHasher;
use algonius_actors::model::access::principal::{NewToken, Right, Scope};
use algonius_actors::model::schedule::recurrence::RecurrenceRule;
use algonius_actors::model::schedule::{ConfiguredSchedule, OverlapPolicy, ScheduleSpec};
use algonius_actors::ports::clock::Clock as _;
use algonius_actors::ports::ledger::Ledger as _;
use algonius_actors::ports::observer::NoopObserver;
use algonius_actors::ports::schedule_template::ScheduleTemplateRenderer;
use algonius_actors::root::AgentDefinition;
use algonius_actors::scheduler::SchedulerConfig;
use algonius_actors::services::monitor_handle::MonitorHandle;
use algonius_actors::services::{
    ActiveWriters, AttemptResources, BudgetUsageCache, CredentialBreakers, InputSealer,
    RecordStores, RedactorHandle, Services,
};
use algonius_actors::testing::{DEFAULT_AGENT, ScriptedDriver, agent_spec, cron_schedule};
use algonius_redact::Redactor;
use algonius_store::{Durability, Store};
use algonius_supervisor::platform::clock::WallClock;
use chrono::{DateTime, Utc};
use tempfile::TempDir;
use tokio::time::Instant;

/// Owner of the schedules that may create executions.
pub(crate) const OWNER: &str = "operator";

struct PlainTemplateRenderer;

impl ScheduleTemplateRenderer for PlainTemplateRenderer {
    fn render(&self, spec: &ScheduleSpec, _: DateTime<Utc>) -> Result<String, String> {
        Ok(spec.input.clone())
    }
}

/// Tree with its ledger, and the duration of its start.
pub(crate) struct ScheduleTree {
    tree: SupervisionTree,
    pub(crate) store: Arc<Store>,
    pub(crate) start_duration: Duration,
    _folder: TempDir,
}

impl ScheduleTree {
    /// Starts a tree with these schedules, which sleeps no longer than `max_sleep`.
    pub(crate) async fn start(schedules: Vec<ConfiguredSchedule>, max_sleep: Duration) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let store = Store::open(&folder.path().join("data"), Durability::ProcessCrash).await;
        let store = Arc::new(store.expect("a store"));
        let scope = Scope { rights: vec![Right::Read, Right::Run], agents: None };
        let owner_token =
            NewToken { name: OWNER.to_owned(), hash: [9; 32], scope, expires_at: None };
        store
            .replace_configured_tokens(vec![owner_token], WallClock.now())
            .await
            .expect("an owner");
        let scheduler_config = SchedulerConfig {
            schedule_store: Arc::clone(&store) as _,
            renderer: Arc::new(PlainTemplateRenderer),
            configured_schedules: Some(schedules),
            occurrence_retention: Duration::from_secs(90 * 86_400),
            max_sleep,
        };
        let started_at = Instant::now();
        let tree = SupervisionTree::start(
            services(&store),
            agent_definitions(),
            TreeOptions { scheduler_config: Some(scheduler_config), ..TreeOptions::default() },
        );
        let tree = tree.await.expect("a tree");
        Self { tree, store, start_duration: started_at.elapsed(), _folder: folder }
    }

    pub(crate) fn api(&self) -> &Api {
        self.tree.api()
    }

    pub(crate) async fn end(self) {
        self.tree.stop(Duration::ZERO).await;
        self.store.close().await;
    }
}

fn agent_definitions() -> Vec<AgentDefinition> {
    let mut agent_spec = agent_spec(DEFAULT_AGENT);
    agent_spec.limits.capacity.max_running = None;
    agent_spec.limits.capacity.max_waiting = 10_000;
    let driver = Arc::new(ScriptedDriver::default());
    vec![AgentDefinition { spec: Arc::new(agent_spec), driver }]
}

fn services(store: &Arc<Store>) -> Services {
    Services {
        input_sealer: InputSealer::without_key(),
        ledger: Arc::clone(store) as _,
        stores: RecordStores {
            history: Arc::clone(store) as _,
            interactions: Arc::clone(store) as _,
        },
        clock: Arc::new(WallClock),
        redactor: RedactorHandle::from_redactor(Arc::new(Redactor::new([]))),
        keyed_hasher: KeyedHasher::new([7; 32]),
        observer: Arc::new(NoopObserver),
        monitor: MonitorHandle::default(),
        attempt_resources: AttemptResources::default(),
        active_writers: ActiveWriters::default(),
        breakers: CredentialBreakers::default(),
        budget_usages: BudgetUsageCache::default(),
    }
}

/// Returns schedules of which none is due soon, each with a time and an input text of its own.
pub(crate) fn idle_schedules(count: usize) -> Vec<ConfiguredSchedule> {
    let month = (WallClock.now() + chrono::TimeDelta::days(60)).format("%-m").to_string();
    let schedule = |number: usize| {
        let (minute, hour, day) = (number % 60, number / 60 % 24, number / 1440 % 28 + 1);
        let spec =
            cron_schedule(&format!("s{number}"), &format!("{minute} {hour} {day} {month} *"));
        let input = format!("Look after item {number}, and say what is to be done about it.");
        operator_schedule(ScheduleSpec { name: format!("Schedule {number}"), input, ..spec })
    };
    (0..count).map(schedule).collect()
}

/// Returns schedules with this period in seconds, spread over it by their jitter.
pub(crate) fn frequent_schedules(
    count: usize,
    period_seconds: usize,
    owner: &str,
) -> Vec<ConfiguredSchedule> {
    let recurrence =
        RecurrenceRule::new(&format!("@every {period_seconds}s"), "UTC", true).expect("a pace");
    let schedule = |number: usize| {
        let spec = cron_schedule(&format!("busy-{owner}-{number}"), "0 0 1 1 *");
        let spec = ScheduleSpec {
            recurrence: recurrence.clone(),
            jitter: Duration::from_millis(period_seconds as u64 * 1000 - 1),
            overlap: OverlapPolicy::Allow,
            params: BTreeMap::new(),
            ..spec
        };
        ConfiguredSchedule { spec, owner: owner.to_owned() }
    };
    (0..count).map(schedule).collect()
}

fn operator_schedule(spec: ScheduleSpec) -> ConfiguredSchedule {
    ConfiguredSchedule { spec, owner: OWNER.to_owned() }
}
