//! One process of the service: its tree and its services.

use std::sync::Arc;
use std::time::Duration;

use algonius_redact::Redactor;

use super::clock::VirtualClock;
use super::cognition::ScriptedModelAndTools;
use super::driver::ScriptedDriver;
use super::fault_injection::FaultInjector;
use super::host_metrics::{PRESSURE_LIMITS, READING_INTERVAL, ScriptedHostMetrics};
use super::ledger::MemoryLedger;
use super::schedule_store::{LiteralRenderer, MemoryScheduleStore};
use super::sealer::ScriptedSealer;
use crate::api::RequestHandleCell;
use crate::api::supervision_tree::{SupervisionTree, TreeOptions};
use crate::decide::admission::keyed_hasher::KeyedHasher;
use crate::driver::Driver;
use crate::driver::report::BudgetUsageCache;
use crate::maintenance::monitor::HostReadingSettings;
use crate::model::agent::{AgentKind, AgentSpec};
use crate::model::schedule::ConfiguredSchedule;
use crate::ports::observer::NoopObserver;
use crate::root::AgentDefinition;
use crate::runs::cognitive::CognitiveDriver;
use crate::runs::team::TeamDriver;
use crate::scheduler::{DEFAULT_MAX_SLEEP, SchedulerConfig};
use crate::services::AttemptResources;
use crate::services::credential_breakers::CredentialBreakers;
use crate::services::monitor_handle::MonitorHandle;
use crate::services::{ActiveWriters, InputSealer, RecordStores, RedactorHandle, Services};

/// Time within which the input of a failed execution can be retried.
const RETRY_WINDOW: Duration = Duration::from_secs(3600);

/// Creates the services of a process.
pub(super) fn create_services(
    (ledger, redactor): (&MemoryLedger, &Arc<Redactor>),
    sealer: &Arc<ScriptedSealer>,
    fault_injector: &Arc<FaultInjector>,
    clock: &Arc<VirtualClock>,
) -> Services {
    Services {
        ledger: Arc::new(ledger.with_fault_injector(Arc::clone(fault_injector))),
        stores: RecordStores {
            history: Arc::new(ledger.with_fault_injector(Arc::clone(fault_injector))),
            interactions: Arc::new(ledger.with_fault_injector(Arc::clone(fault_injector))),
        },
        clock: Arc::<VirtualClock>::clone(clock),
        redactor: RedactorHandle::from_redactor(Arc::clone(redactor)),
        input_sealer: InputSealer::new(Arc::<ScriptedSealer>::clone(sealer), RETRY_WINDOW),
        keyed_hasher: KeyedHasher::new([7; 32]),
        observer: Arc::new(NoopObserver),
        monitor: MonitorHandle::default(),
        attempt_resources: AttemptResources::default(),
        active_writers: ActiveWriters::default(),
        breakers: CredentialBreakers::default(),
        budget_usages: BudgetUsageCache::default(),
    }
}

/// Starts a process of the service.
#[expect(clippy::expect_used, reason = "a test fails by panicking")]
pub(super) async fn start_tree(
    services: Services,
    (specs, driver): (&[AgentSpec], &Arc<ScriptedDriver>),
    host_metrics: Option<&Arc<ScriptedHostMetrics>>,
    scheduler_config: SchedulerConfig,
) -> SupervisionTree {
    let request_handle_cell = RequestHandleCell::default();
    let definition = |spec: &AgentSpec| {
        let driver: Arc<dyn Driver> = match spec.kind() {
            AgentKind::Team => Arc::new(TeamDriver::new(request_handle_cell.clone())),
            AgentKind::Cognitive => Arc::new(CognitiveDriver::new(
                request_handle_cell.clone(),
                Arc::<ScriptedModelAndTools>::clone(&driver.cognition),
                Arc::<ScriptedModelAndTools>::clone(&driver.cognition),
            )),
            AgentKind::Program | AgentKind::Remote => Arc::<ScriptedDriver>::clone(driver),
        };
        AgentDefinition { spec: Arc::new(spec.clone()), driver }
    };
    let host_reading_settings = host_metrics.map(|host_metrics| {
        let host_metrics = Arc::<ScriptedHostMetrics>::clone(host_metrics);
        HostReadingSettings { host_metrics, spec: PRESSURE_LIMITS, interval: READING_INTERVAL }
    });
    let definitions = specs.iter().map(definition).collect();
    let scheduler_config = Some(scheduler_config);
    let tree_options = TreeOptions {
        host_reading_settings,
        scheduler_config,
        request_handle_cell,
        ..TreeOptions::default()
    };
    SupervisionTree::start(services, definitions, tree_options).await.expect("the tree starts")
}

/// Creates the scheduler configuration of a process.
pub(super) fn create_scheduler_config(
    schedule_store: &MemoryScheduleStore,
    fault_injector: &Arc<FaultInjector>,
    configured: &[ConfiguredSchedule],
) -> SchedulerConfig {
    SchedulerConfig {
        schedule_store: Arc::new(schedule_store.with_fault_injector(Arc::clone(fault_injector))),
        renderer: Arc::new(LiteralRenderer),
        configured_schedules: Some(configured.to_vec()),
        occurrence_retention: Duration::from_secs(3650 * 86_400),
        max_sleep: DEFAULT_MAX_SLEEP,
    }
}
