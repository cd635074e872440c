//! A service within the test: its clock and its gauges are the story's.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use algonius_actors::ports::clock::Clock;
use algonius_actors::ports::meter::Meter;
use algonius_supervisor::clock::WallClock;
use algonius_supervisor::config::Settings;
use algonius_supervisor::warden::wardens::Origin;
use algonius_supervisor::{Running, config, start_on, start_with};

use super::processes::sweep;
use super::{Door, Setup, soon};

/// A service that runs in this process.
pub(crate) struct Inside {
    pub(crate) door: Door,
    running: Running,
}

impl Inside {
    /// Begins one on this clock.
    pub(crate) async fn on_clock(setup: &Setup, clock: Arc<dyn Clock>) -> Self {
        let started = start_with(settings(setup), clock, origin());
        Self::of(setup, soon("the start", started).await.unwrap())
    }

    /// Begins one on a machine with these gauges.
    pub(crate) async fn on_machine(setup: &Setup, gauges: Arc<dyn Meter>) -> Self {
        let started = start_on(settings(setup), Arc::new(WallClock), gauges, origin());
        Self::of(setup, soon("the start", started).await.unwrap())
    }

    fn of(setup: &Setup, running: Running) -> Self {
        let token = fs::read_to_string(setup.token_file()).unwrap().trim().to_owned();
        Self { door: Door { address: running.address(), token }, running }
    }

    pub(crate) async fn stop(self, setup: &Setup) {
        soon("the stop", self.running.stop(Duration::ZERO)).await;
        sweep(&setup.here().join("home"));
    }
}

fn settings(setup: &Setup) -> Settings {
    let env = setup.variables().clone();
    let checked = config::load(setup.write(), &|name| env.get(name).cloned());
    let mut settings = checked.unwrap_or_else(|faults| panic!("{faults}")).settings;
    settings.server.listen = ([127, 0, 0, 1], 0).into();
    settings
}

fn origin() -> Origin {
    Origin::of(env!("CARGO_BIN_EXE_algonius"))
}
