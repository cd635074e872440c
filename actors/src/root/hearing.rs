//! What every agent is told of: how the machine is, and what is known of the credentials. One task
//! hears it for all of them; a task for each would cost more memory than many an agent's work.

use std::sync::Arc;
use std::time::Duration;

use ractor::ActorRef;
use tokio::sync::watch;
use tokio::time::timeout;

use super::{RootData, RootMsg};
use crate::agent::AgentMsg;
use crate::alarm::alarmed;
use crate::circuits::Shut;
use crate::decide::breaker::Circuit;
use crate::monitor::{Latest, is_high};
use crate::ports::clock::Clock;

/// The longest sleep until a circuit may be tried: the wall's clock may be set meanwhile.
const LOOK: Duration = Duration::from_secs(60);

/// What has changed for all agents.
#[derive(Clone, Copy)]
pub enum Turn {
    /// The machine is hard-pressed, or is so no longer.
    Pressure,
    /// What is known of a credential, or whether it may be tried.
    Circuits,
}

impl RootData {
    /// Hears of all that changes from now on. Who begins later looks for itself at first.
    pub(super) fn hear(&mut self) {
        let (me, broken) = (self.me.clone(), self.me.clone());
        let pressure = self.pressure.subscribe();
        let machine = hear_machine(me.clone(), pressure);
        let circuits = hear_circuits(me, self.kit.circuits.listen(), self.kit.clock.clone());
        let both = async move {
            tokio::join!(machine, circuits);
        };
        self.tasks.spawn(alarmed(both, move || _ = broken.cast(RootMsg::Deaf)));
    }

    /// Tells the agents. One that has failed looks for itself when it is started again.
    pub(super) fn tell_agents(&self, turn: Turn) {
        for actor in self.parts.values().filter_map(|part| part.actor.as_ref()) {
            _ = actor.cast(match turn {
                Turn::Pressure => AgentMsg::Judged,
                Turn::Circuits => AgentMsg::CircuitTurned,
            });
        }
    }

    /// Hears again after a panic, and has all look for what they have missed.
    pub(super) fn hear_again(&mut self) {
        self.hear();
        [Turn::Pressure, Turn::Circuits].into_iter().for_each(|turn| self.tell_agents(turn));
    }
}

/// Tells each judgement of the machine that differs.
async fn hear_machine(me: ActorRef<RootMsg>, mut pressure: watch::Receiver<Latest>) {
    let mut was_high = is_high(&pressure.borrow_and_update());
    while let Ok(latest) = pressure.wait_for(|now| is_high(now) != was_high).await {
        was_high = is_high(&latest);
        _ = me.cast(RootMsg::Turned(Turn::Pressure)); // It ends with the root.
    }
}

/// Tells each circuit that changes, and when the next may be tried.
async fn hear_circuits(
    me: ActorRef<RootMsg>,
    mut news: watch::Receiver<Shut>,
    clock: Arc<dyn Clock>,
) {
    loop {
        let left = soonest(&news.borrow(), &*clock);
        let heard = match left {
            Some(left) => timeout(left.min(LOOK), news.changed()).await.unwrap_or(Ok(())),
            None => news.changed().await,
        };
        if heard.is_err() {
            return;
        }
        _ = me.cast(RootMsg::Turned(Turn::Circuits)); // It ends with the root.
    }
}

/// How long until the next circuit may be tried. While none is shut nobody asks for the time.
fn soonest(shut: &Shut, clock: &dyn Clock) -> Option<Duration> {
    if shut.is_empty() {
        return None;
    }
    let now = clock.now();
    let left =
        |circuit: &Circuit| (circuit.until - now).to_std().ok().filter(|left| !left.is_zero());
    shut.values().filter_map(left).min()
}
