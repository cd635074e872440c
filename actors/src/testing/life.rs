//! One life of the service: its tree, and what it is given.

use std::sync::Arc;
use std::time::Duration;

use super::clock::VirtualClock;
use super::driver::ScriptedDriver;
use super::gate::Gate;
use super::ledger::MemoryLedger;
use super::meter::{BOUNDS, PACE, ScriptedMeter};
use super::timebook::{MemoryTimebook, Plainly};
use crate::circuits::Circuits;
use crate::decide::key::Keyring;
use crate::decide::redact::Redactor;
use crate::kit::{Kit, Masking, Pens};
use crate::lookout::Lookout;
use crate::model::agent::AgentSpec;
use crate::model::schedule::Configured;
use crate::monitor::Probe;
use crate::ports::driver::Driver;
use crate::ports::observer::Nobody;
use crate::report::Purses;
use crate::root::Seat;
use crate::scheduler::{Agenda, NAP};
use crate::tree::{Plan, Tree};
use crate::turns::Turns;

/// What a life of the service is given.
pub(super) fn kit(
    (ledger, redactor): (&MemoryLedger, &Arc<Redactor>),
    gate: &Arc<Gate>,
    clock: &Arc<VirtualClock>,
) -> Kit {
    Kit {
        ledger: Arc::new(ledger.through(Arc::clone(gate))),
        history: Arc::new(ledger.through(Arc::clone(gate))),
        clock: Arc::<VirtualClock>::clone(clock),
        redactor: Masking::fixed(Arc::clone(redactor)),
        keyring: Keyring::new([7; 32]),
        observer: Arc::new(Nobody),
        lookout: Lookout::default(),
        turns: Turns::default(),
        pens: Pens::default(),
        circuits: Circuits::default(),
        purses: Purses::default(),
    }
}

/// A life of the service.
#[expect(clippy::expect_used, reason = "a test fails by panicking")]
pub(super) async fn grow(
    kit: Kit,
    (specs, driver): (&[AgentSpec], &Arc<ScriptedDriver>),
    meter: Option<&Arc<ScriptedMeter>>,
    agenda: Agenda,
) -> Tree {
    let driver = || Arc::<ScriptedDriver>::clone(driver) as Arc<dyn Driver>;
    let seat = |spec: &AgentSpec| Seat { spec: Arc::new(spec.clone()), driver: driver() };
    let probe = meter.map(|meter| {
        let meter = Arc::<ScriptedMeter>::clone(meter);
        Probe { meter, spec: BOUNDS, interval: PACE }
    });
    let seats = specs.iter().map(seat).collect();
    let plan = Plan { probe, agenda: Some(agenda), ..Plan::default() };
    Tree::start(kit, seats, plan).await.expect("the tree starts")
}

/// What a life of the service has to do at set times.
pub(super) fn agenda(
    timebook: &MemoryTimebook,
    gate: &Arc<Gate>,
    configured: &[Configured],
) -> Agenda {
    Agenda {
        timebook: Arc::new(timebook.through(Arc::clone(gate))),
        wording: Arc::new(Plainly),
        configured: Some(configured.to_vec()),
        history: Duration::from_secs(3650 * 86_400),
        nap: NAP,
    }
}
