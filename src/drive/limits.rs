//! The watch over what an attempt takes of the machine.

use std::time::Duration;

use algonius_actors::decide::resources::excess;
use algonius_actors::model::failure::Failure;
use algonius_actors::model::resources::Resources;
use tokio::time::{MissedTickBehavior, interval};

use crate::warden::Tree;

/// From one look to the next.
const PAUSE: Duration = Duration::from_secs(1);

/// Returns when an attempt takes more than it may, with what is to be said of that.
pub(super) async fn exceeded(resources: &Resources, tree: &dyn Tree) -> Failure {
    if !resources.is_limited() {
        return std::future::pending().await;
    }
    let (gauge, held, mut looks) = (tree.gauge(), tree.held(), interval(PAUSE));
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        looks.tick().await;
        if let Some(failure) = excess(resources, held, gauge.clone().weigh().await) {
            return failure;
        }
    }
}
