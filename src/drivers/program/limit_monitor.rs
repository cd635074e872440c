//! Monitoring of the resource limits of an attempt or a call.

use std::time::Duration;

use algonius_actors::decide::host::resources::exceeded_limit_failure;
use algonius_actors::model::failure::Failure;
use algonius_actors::model::host::resources::ResourceLimits;
use algonius_warden::ProcessTree;
use tokio::time::{MissedTickBehavior, interval};

/// Interval between two measurements.
const MEASUREMENT_INTERVAL: Duration = Duration::from_secs(1);

/// Returns when a program exceeds a resource limit, with the failure for it.
pub(in crate::drivers) async fn wait_until_limit_exceeded(
    resources: &ResourceLimits,
    tree: &dyn ProcessTree,
) -> Failure {
    if !resources.is_limited() {
        // A measurement looks at all processes of the machine, so a program without limits is not measured.
        return std::future::pending().await;
    }
    // A control group that limits memory counts shared memory once, and the watch leaves memory to it.
    let (gauge, enforced_controllers, mut measurement_timer) =
        (tree.gauge(), tree.enforced_controllers(), interval(MEASUREMENT_INTERVAL));
    // By default tokio makes up for missed ticks in a burst of measurements.
    measurement_timer.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        measurement_timer.tick().await;
        if let Some(failure) = exceeded_limit_failure(
            resources,
            enforced_controllers,
            gauge.clone().read_memory_and_processes().await,
        ) {
            return failure;
        }
    }
}
