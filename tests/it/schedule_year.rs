//! A year of schedules in three zones on the real ledger, with restarts, reloads and clocks that are
//! set, compared with a list that another program made.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use algonius_actors::api::supervision_tree::{SupervisionTree, TreeOptions};
use algonius_actors::decide::admission::keyed_hasher::KeyedHasher;
use algonius_actors::model::access::principal::{NewToken, Right, Scope};
use algonius_actors::model::schedule::ConfiguredSchedule;
use algonius_actors::model::schedule::occurrence::{Occurrence, OccurrenceStatus};
use algonius_actors::model::schedule::recurrence::RecurrenceRule;
use algonius_actors::model::schedule::{OverlapPolicy, ScheduleSpec};
use algonius_actors::ports::clock::Clock;
use algonius_actors::ports::ledger::Ledger;
use algonius_actors::ports::observer::NoopObserver;
use algonius_actors::ports::schedule_store::ScheduleStore;
use algonius_actors::ports::schedule_template::ScheduleTemplateRenderer;
use algonius_actors::root::AgentDefinition;
use algonius_actors::scheduler::SchedulerConfig;
use algonius_actors::services::monitor_handle::MonitorHandle;
use algonius_actors::services::{
    ActiveWriters, AttemptResources, BudgetUsageCache, CredentialBreakers, InputSealer,
    RecordStores, RedactorHandle, Services,
};
use algonius_actors::testing::{
    DEFAULT_AGENT, ScriptedAttempt, ScriptedDriver, VirtualClock, agent_spec, cron_schedule,
};
use algonius_redact::Redactor;
use algonius_store::{Durability, Store};
use chrono::{DateTime, TimeDelta, Utc};

use crate::paused_time_store::{PausedTimeStore, run_with_paused_time};

/// Made by `tests/clients/year.py`.
const EXPECTED_OCCURRENCES: &str = include_str!("year.txt");

const ZONES: [&str; 3] = ["Europe/Zurich", "America/New_York", "Australia/Lord_Howe"];
const SCHEDULE_KINDS: [(&str, &str); 4] = [
    ("night", "30 2 * * *"),
    ("office", "0 9 * * 1-5"),
    ("half-days", "0 */12 * * *"),
    ("monthly", "45 1 1 * *"),
];

struct VerbatimInputRenderer;

impl ScheduleTemplateRenderer for VerbatimInputRenderer {
    fn render(&self, spec: &ScheduleSpec, _: DateTime<Utc>) -> Result<String, String> {
        Ok(spec.input.clone())
    }
}

fn year_schedules() -> Vec<ConfiguredSchedule> {
    let zones_and_kinds =
        ZONES.iter().flat_map(|zone| SCHEDULE_KINDS.iter().map(move |kind| (*zone, *kind)));
    let schedules = zones_and_kinds.map(|(zone, (name, cron))| {
        let id = format!("{name}-{}", zone.replace('/', "-"));
        let recurrence = RecurrenceRule::new(cron, zone, false).unwrap();
        let spec =
            ScheduleSpec { recurrence, overlap: OverlapPolicy::Queue, ..cron_schedule(&id, cron) };
        ConfiguredSchedule {
            spec: ScheduleSpec { input: "work".to_owned(), ..spec },
            owner: "ann".to_owned(),
        }
    });
    schedules.collect()
}

/// One life of the service after the other on one ledger.
struct YearFixture {
    store: PausedTimeStore,
    clock: Arc<VirtualClock>,
    driver: Arc<ScriptedDriver>,
}

impl YearFixture {
    async fn start_tree(&self) -> SupervisionTree {
        let services = Services {
            input_sealer: InputSealer::without_key(),
            ledger: Arc::new(self.store.clone()),
            stores: RecordStores {
                history: Arc::clone(&self.store.0) as _,
                interactions: Arc::clone(&self.store.0) as _,
            },
            clock: Arc::<VirtualClock>::clone(&self.clock),
            redactor: RedactorHandle::from_redactor(Arc::new(Redactor::new([]))),
            keyed_hasher: KeyedHasher::new([7; 32]),
            observer: Arc::new(NoopObserver),
            monitor: MonitorHandle::default(),
            attempt_resources: AttemptResources::default(),
            active_writers: ActiveWriters::default(),
            breakers: CredentialBreakers::default(),
            budget_usages: BudgetUsageCache::default(),
        };
        let driver = Arc::<ScriptedDriver>::clone(&self.driver);
        let mut worker_spec = agent_spec(DEFAULT_AGENT);
        worker_spec.limits.capacity.max_waiting = 1000;
        let scheduler_config = SchedulerConfig {
            schedule_store: Arc::new(self.store.clone()),
            renderer: Arc::new(VerbatimInputRenderer),
            configured_schedules: Some(year_schedules()),
            occurrence_retention: Duration::from_secs(3650 * 86_400),
            max_sleep: Duration::from_secs(6 * 3600),
        };
        let definitions = vec![AgentDefinition { spec: Arc::new(worker_spec), driver }];
        SupervisionTree::start(
            services,
            definitions,
            TreeOptions { scheduler_config: Some(scheduler_config), ..TreeOptions::default() },
        )
        .await
        .unwrap()
    }

    /// Waits until the clock tells a time.
    async fn sleep_until(&self, at: DateTime<Utc>) {
        while self.clock.now() < at {
            let remaining_time = (at - self.clock.now()).to_std().unwrap_or_default();
            tokio::time::sleep(remaining_time.max(Duration::from_millis(1))).await; // Virtual: no time passes.
        }
    }
}

/// The days that are played: 82 have an hour that is left out in two zones, and one that comes twice
/// in the third.
fn day_count() -> i64 {
    let configured_days =
        std::env::var("ALGONIUS_YEAR_DAYS").ok().and_then(|text| text.parse().ok());
    configured_days.unwrap_or(82)
}

/// A number that looks like chance, from 0 to below `limit`.
fn pseudo_random(seed: &mut u64, limit: u64) -> u64 {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*seed >> 33) % limit
}

#[tokio::test(start_paused = true)]
async fn a_year_in_three_zones_has_each_occurrence_once() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let store = run_with_paused_time(Store::open(&data, Durability::ProcessCrash)).await.unwrap();
    let fixture = YearFixture {
        store: PausedTimeStore(Arc::new(store)),
        clock: Arc::default(),
        driver: Arc::default(),
    };
    fixture.driver.script("work", [ScriptedAttempt::ok(60)]);
    let start_time = fixture.clock.now();
    let scope = Scope { rights: vec![Right::Read, Right::Run], agents: None };
    let new_token = NewToken { name: "ann".to_owned(), hash: [1; 32], scope, expires_at: None };
    fixture.store.replace_configured_tokens(vec![new_token], start_time).await.unwrap();
    let (mut tree, mut seed, mut target_time) = (fixture.start_tree().await, 5, start_time);
    let end_time = start_time + TimeDelta::days(day_count());
    while target_time < end_time {
        target_time +=
            TimeDelta::minutes(i64::try_from(pseudo_random(&mut seed, 9 * 24 * 60)).unwrap());
        fixture.sleep_until(target_time.min(end_time)).await;
        match pseudo_random(&mut seed, 4) {
            0 => tree.api().schedules.configure_schedules(year_schedules()).await.unwrap(),
            1 => fixture
                .clock
                .shift_wall_clock(-i64::try_from(pseudo_random(&mut seed, 7200)).unwrap()),
            2 => fixture
                .clock
                .shift_wall_clock(i64::try_from(pseudo_random(&mut seed, 1700)).unwrap()),
            _ => {
                tree.stop(Duration::ZERO).await;
                let downtime =
                    TimeDelta::seconds(i64::try_from(pseudo_random(&mut seed, 3000)).unwrap());
                fixture.sleep_until(fixture.clock.now() + downtime).await;
                tree = fixture.start_tree().await;
            }
        }
        target_time = target_time.max(fixture.clock.now());
    }
    fixture.sleep_until(end_time + TimeDelta::hours(2)).await;
    tree.stop(Duration::from_secs(9999)).await;
    // In a year in three time zones each occurrence fires once, despite restarts, reloads and
    // clock changes
    assert_occurrences(&fixture, start_time, end_time).await;
}

async fn assert_occurrences(
    fixture: &YearFixture,
    start_time: DateTime<Utc>,
    end_time: DateTime<Utc>,
) {
    let mut occurrences = Vec::new();
    for schedule in year_schedules() {
        occurrences
            .extend(fixture.store.occurrences_since(&schedule.spec.id, start_time).await.unwrap());
    }
    occurrences.retain(|it| it.planned_at <= end_time);
    let not_fired: Vec<_> =
        occurrences.iter().filter(|it| it.status != OccurrenceStatus::Fired).collect();
    assert!(not_fired.is_empty(), "{not_fired:?}");
    let executions: BTreeSet<_> = occurrences.iter().filter_map(|it| it.execution).collect();
    assert_eq!(executions.len(), occurrences.len(), "two times are one execution");
    let occurrence_line =
        |it: &Occurrence| format!("{} {}", it.schedule, it.planned_at.format("%Y-%m-%dT%H:%M:%SZ"));
    let mut differences: BTreeMap<String, i32> =
        occurrences.iter().map(|it| (occurrence_line(it), 1)).collect();
    let expected_lines = EXPECTED_OCCURRENCES.lines().map(|line| {
        let [kind, zone, at] = line.split(' ').collect::<Vec<_>>().try_into().unwrap();
        format!("{kind}-{} {at}", zone.replace('/', "-"))
    });
    let is_before_end = |line: &String| {
        let at = line.split(' ').nth(1).map(|at| at.parse::<DateTime<Utc>>().unwrap());
        at.is_some_and(|at| at <= end_time)
    };
    let expected_lines: BTreeSet<_> = expected_lines.filter(is_before_end).collect();
    assert!(
        expected_lines.len() > 11 * usize::try_from(day_count()).unwrap(),
        "{}",
        expected_lines.len()
    );
    expected_lines.iter().for_each(|line| *differences.entry(line.clone()).or_default() -= 1);
    let wrong_lines: Vec<_> = differences.iter().filter(|(_, count)| **count != 0).collect();
    assert!(
        wrong_lines.is_empty(),
        "found and not expected (1), or the reverse (-1): {wrong_lines:?}"
    );
}
