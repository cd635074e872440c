//! One life of the service: its tree, and what it is given.

use std::sync::Arc;

use super::clock::VirtualClock;
use super::driver::ScriptedDriver;
use super::gate::Gate;
use super::ledger::MemoryLedger;
use super::meter::{BOUNDS, PACE, ScriptedMeter};
use crate::decide::key::Keyring;
use crate::decide::redact::Redactor;
use crate::kit::Kit;
use crate::lookout::Lookout;
use crate::model::agent::AgentSpec;
use crate::model::alert::AlertSpec;
use crate::monitor::Probe;
use crate::ports::driver::Driver;
use crate::ports::observer::Nobody;
use crate::root::Seat;
use crate::tree::Tree;
use crate::turns::Turns;

/// What a life of the service is given.
pub(super) fn kit(
    (ledger, redactor): (&MemoryLedger, &Arc<Redactor>),
    gate: &Arc<Gate>,
    clock: &Arc<VirtualClock>,
) -> Kit {
    Kit {
        ledger: Arc::new(ledger.through(Arc::clone(gate))),
        clock: Arc::<VirtualClock>::clone(clock),
        redactor: Arc::clone(redactor),
        keyring: Keyring::new([7; 32]),
        observer: Arc::new(Nobody),
        lookout: Lookout::default(),
        turns: Turns::default(),
    }
}

/// A life of the service.
#[expect(clippy::expect_used, reason = "a test fails by panicking")]
pub(super) async fn grow(
    kit: Kit,
    (specs, driver): (&[AgentSpec], &Arc<ScriptedDriver>),
    meter: Option<&Arc<ScriptedMeter>>,
) -> Tree {
    let driver = || Arc::<ScriptedDriver>::clone(driver) as Arc<dyn Driver>;
    let seat = |spec: &AgentSpec| Seat { spec: Arc::new(spec.clone()), driver: driver() };
    let probe = meter.map(|meter| {
        let meter = Arc::<ScriptedMeter>::clone(meter);
        Probe { meter, spec: BOUNDS, interval: PACE }
    });
    Tree::start(kit, specs.iter().map(seat).collect(), (probe, AlertSpec::default()))
        .await
        .expect("the tree starts")
}
