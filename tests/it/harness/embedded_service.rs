//! Service within the test process, with a clock and a meter of the test.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use algonius_actors::ports::clock::Clock;
use algonius_actors::ports::host_metrics::HostMetrics;
use algonius_supervisor::config::Settings;
use algonius_supervisor::platform::clock::WallClock;
use algonius_supervisor::{RunningService, config, start_with_clock, start_with_host_metrics};
use algonius_warden::process_holders::HolderCommand;

use super::processes::kill_processes_of_home;
use super::{ServiceClient, Setup, within_deadline};

/// Service that runs in this process.
pub(crate) struct EmbeddedService {
    pub(crate) client: ServiceClient,
    service: RunningService,
}

impl EmbeddedService {
    /// Starts a service on this clock.
    pub(crate) async fn start_with_clock(setup: &Setup, clock: Arc<dyn Clock>) -> Self {
        let start = start_with_clock(load_settings(setup), clock, holder_command());
        Self::new(setup, within_deadline("the start", Box::pin(start)).await.unwrap())
    }

    /// Starts a service on a machine with this meter.
    pub(crate) async fn start_with_host_metrics(
        setup: &Setup,
        host_metrics: Arc<dyn HostMetrics>,
    ) -> Self {
        let start = start_with_host_metrics(
            load_settings(setup),
            Arc::new(WallClock),
            host_metrics,
            holder_command(),
        );
        Self::new(setup, within_deadline("the start", Box::pin(start)).await.unwrap())
    }

    fn new(setup: &Setup, service: RunningService) -> Self {
        let token = fs::read_to_string(setup.token_file()).unwrap().trim().to_owned();
        Self { client: ServiceClient { address: service.address(), token }, service }
    }

    pub(crate) async fn stop(self, setup: &Setup) {
        within_deadline("the stop", Box::pin(self.service.stop(Duration::ZERO))).await;
        kill_processes_of_home(&setup.test_folder().join("home"));
    }
}

fn load_settings(setup: &Setup) -> Settings {
    let env = setup.env_variables().clone();
    let loaded = config::load(setup.write_config(), &|name| env.get(name).map(Into::into));
    let mut settings = loaded.unwrap_or_else(|faults| panic!("{faults}")).settings;
    settings.server.listen_address = ([127, 0, 0, 1], 0).into();
    settings
}

fn holder_command() -> HolderCommand {
    HolderCommand::new(env!("CARGO_BIN_EXE_algonius"))
}
