//! One process of the service: its tree and its services.

use std::sync::Arc;
use std::time::Duration;

use algonius_redact::Redactor;

use super::clock::VirtualClock;
use super::driver::ScriptedDriver;
use super::gate::Gate;
use super::ledger::MemoryLedger;
use super::meter::{BOUNDS, PACE, ScriptedMeter};
use super::sealer::ScriptedSealer;
use super::timebook::{MemoryTimebook, Plainly};
use crate::api::supervision_tree::{Tree, TreePlan};
use crate::decide::admission::dedup_key::Keyring;
use crate::driver::Driver;
use crate::maintenance::monitor::ReadingSettings;
use crate::model::agent::AgentSpec;
use crate::model::schedule::Configured;
use crate::ports::observer::Nobody;
use crate::report::BudgetUsages;
use crate::root::AgentDefinition;
use crate::scheduler::{NAP, SchedulerConfig};
use crate::services::AttemptResources;
use crate::services::credential_breakers::CredentialBreakers;
use crate::services::monitor_handle::MonitorHandle;
use crate::services::{ActiveWriters, InputSealer, Masking, RecordStores, Services};

/// Time within which the input of a failed execution can be retried.
const RETRY_WINDOW: Duration = Duration::from_secs(3600);

/// Creates the services of a process.
pub(super) fn kit(
    (ledger, redactor): (&MemoryLedger, &Arc<Redactor>),
    sealer: &Arc<ScriptedSealer>,
    gate: &Arc<Gate>,
    clock: &Arc<VirtualClock>,
) -> Services {
    Services {
        ledger: Arc::new(ledger.through(Arc::clone(gate))),
        stores: RecordStores {
            history: Arc::new(ledger.through(Arc::clone(gate))),
            interactions: Arc::new(ledger.through(Arc::clone(gate))),
        },
        clock: Arc::<VirtualClock>::clone(clock),
        redactor: Masking::fixed(Arc::clone(redactor)),
        inputs: InputSealer::new(Arc::<ScriptedSealer>::clone(sealer), RETRY_WINDOW),
        keyring: Keyring::new([7; 32]),
        observer: Arc::new(Nobody),
        monitor: MonitorHandle::default(),
        resources: AttemptResources::default(),
        active_writers: ActiveWriters::default(),
        breakers: CredentialBreakers::default(),
        budget_usages: BudgetUsages::default(),
    }
}

/// Starts a process of the service.
#[expect(clippy::expect_used, reason = "a test fails by panicking")]
pub(super) async fn grow(
    kit: Services,
    (specs, driver): (&[AgentSpec], &Arc<ScriptedDriver>),
    meter: Option<&Arc<ScriptedMeter>>,
    agenda: SchedulerConfig,
) -> Tree {
    let driver = || Arc::<ScriptedDriver>::clone(driver) as Arc<dyn Driver>;
    let seat =
        |spec: &AgentSpec| AgentDefinition { spec: Arc::new(spec.clone()), driver: driver() };
    let probe = meter.map(|meter| {
        let meter = Arc::<ScriptedMeter>::clone(meter);
        ReadingSettings { host_metrics: meter, spec: BOUNDS, interval: PACE }
    });
    let seats = specs.iter().map(seat).collect();
    let plan = TreePlan { probe, agenda: Some(agenda), ..TreePlan::default() };
    Tree::start(kit, seats, plan).await.expect("the tree starts")
}

/// Creates the scheduler configuration of a process.
pub(super) fn agenda(
    timebook: &MemoryTimebook,
    gate: &Arc<Gate>,
    configured: &[Configured],
) -> SchedulerConfig {
    SchedulerConfig {
        schedule_store: Arc::new(timebook.through(Arc::clone(gate))),
        wording: Arc::new(Plainly),
        configured: Some(configured.to_vec()),
        history: Duration::from_secs(3650 * 86_400),
        nap: NAP,
    }
}
