//! The configuration in force, and how another one comes into force while the service runs.
//!
//! One task does one thing after the other: it reads the configuration again, compares it with the one
//! in force, and has each part apply its difference. Each kind of thing that can differ has a file of
//! its own here: it says what differs (`difference`), and applies it (`agents`, `masks`, `schedules`,
//! `tokens`).

mod agents;
mod apply;
mod difference;
mod masks;
mod schedules;
mod sight;
mod steward;
mod switches;
mod tokens;
mod told;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use algonius_actors::kit::Circuits;
use algonius_actors::model::agent::AgentSpec;
use algonius_actors::model::id::AgentId;
use algonius_actors::ports::clock::Clock;
use algonius_actors::root::Seating;
use chrono::{DateTime, Utc};
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{MissedTickBehavior, interval};

use crate::admit::Keys;
use crate::config::{Settings, Source};
use crate::front::{Front, Specs};
use crate::store::Store;
use crate::wire::admin::ConfigurationStatus;
use crate::workshop::Workshop;

pub(super) use masks::Masks;
pub(super) use schedules::schedules;
use sight::Sight;
use steward::Order;
pub(super) use steward::{Desk, Steward, desk};
pub(super) use switches::Switches;

/// From one look at the files of the configuration to the next: a service at rest sleeps between them.
const PACE: Duration = Duration::from_secs(2);

/// What a configuration is applied to.
pub(super) struct World {
    pub(super) source: Source,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) store: Arc<Store>,
    pub(super) workshop: Workshop,
    pub(super) seating: Seating,
    pub(super) front: Front,
    pub(super) masks: Masks,
    pub(super) circuits: Circuits,
}

/// Brings configurations into force.
pub(super) struct Reloader {
    world: World,
    /// As the service was started, but for its agents: what cannot be changed while it runs is so until
    /// its end.
    booted: Settings,
    /// What is in force.
    settings: Settings,
    switches: Switches,
    keys: Keys,
    /// The agents that callers can reach: those in force, and those that finish what they have.
    specs: Specs,
    /// Ends with an agent that was let go.
    departures: JoinSet<Option<AgentId>>,
    /// When what is in force came into force.
    since: DateTime<Utc>,
    sight: Sight,
    status: watch::Sender<ConfigurationStatus>,
    levels: watch::Sender<tracing::Level>,
}

impl Reloader {
    /// The configuration of the start is in force; callers are shown it.
    pub(super) fn begin(
        world: World,
        settings: Settings,
        (specs, keys, switches): (Specs, Keys, Switches),
        desk: Desk,
    ) -> JoinHandle<()> {
        let since = world.clock.now();
        let sight = Sight::of(&world.source, &settings);
        let Desk { orders, status, levels } = desk;
        let reloader = Self {
            booted: Settings { agents: Vec::new(), ..settings.clone() },
            departures: JoinSet::new(),
            settings,
            switches,
            keys,
            specs,
            since,
            sight,
            status,
            levels,
            world,
        };
        reloader.status.send_replace(ConfigurationStatus {
            generation: 1,
            since,
            read_at: since,
            watched: reloader.settings.server.watch,
            switched: reloader.switches.told(),
            ..ConfigurationStatus::default()
        });
        reloader.show();
        tokio::spawn(reloader.work(orders))
    }

    /// Does what is ordered and what is seen, one after the other.
    async fn work(mut self, mut orders: mpsc::Receiver<Order>) {
        let mut looks = interval(PACE);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                order = orders.recv() => match order {
                    Some(order) => self.perform(order).await,
                    None => return,
                },
                Some(gone) = self.departures.join_next() => self.gone(gone.ok().flatten()),
                _ = looks.tick(), if self.settings.server.watch => {
                    if self.sight.has_changed().await {
                        _ = self.reload("a file has changed").await; // The log and the status tell.
                    }
                }
            }
        }
    }

    async fn perform(&mut self, order: Order) {
        match order {
            Order::Reload(why, reply) => _ = reply.send(self.reload(why).await),
            Order::Switch(agent, on, reply) => _ = reply.send(self.switch(agent, on).await),
            Order::Make(wanted, reply) => _ = reply.send(self.make(*wanted).await),
            Order::Revoke(name, reply) => _ = reply.send(self.revoke(name).await),
            Order::Rotate(reply) => _ = reply.send(self.rotate().await),
        }
    }

    /// Shows callers what is in force.
    fn show(&self) {
        let guard = self.keys.guard(&self.specs);
        self.world.front.show(&self.settings, self.specs.clone(), guard, self.since);
    }
}

/// The agents of a configuration, by their ids.
pub(super) fn specs<'a>(specs: impl IntoIterator<Item = &'a Arc<AgentSpec>>) -> Specs {
    let named = specs.into_iter().map(|spec| (spec.id.clone(), Arc::clone(spec)));
    named.collect::<BTreeMap<_, _>>()
}
