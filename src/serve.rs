//! Transports over one gateway: HTTP in, messages to the tree, JSON out.

pub mod a2a;
pub mod admin;
pub mod answer;
pub mod api;
pub mod auth;
pub mod beside;
pub mod body;
pub mod card;
pub mod changing;
pub mod counted;
pub mod cursor;
pub mod document;
mod envelope;
pub mod exposure;
mod extension;
pub mod follow;
pub mod gate;
pub mod grpc;
pub mod host;
pub mod jsonrpc;
pub mod listen;
pub mod lockout;
pub mod looks;
mod message;
pub mod observed;
pub mod opening;
pub mod peer;
pub mod perform;
pub mod push;
pub mod rest;
pub mod router;
pub mod segment;
pub mod sse;
mod standing;
pub mod status;
pub mod stocktaking;
pub mod task;
mod unread;
pub mod version;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use algonius_actors::door::Gateway;
use algonius_actors::model::agent::AgentSpec;
use algonius_actors::model::id::AgentId;
use algonius_actors::model::rungs::Rungs;
use algonius_actors::model::status::ProgramStatus;

use admin::Admin;
use auth::Guard;
use bytes::Bytes;
use card::GrpcUrls;
use chrono::{DateTime, Utc};
use exposure::Rates;
use gate::Aliases;
use host::Hosts;
use ipnet::IpNet;
use lockout::Lockouts;
use looks::Looks;
use stocktaking::Stocktaking;

use crate::observe::Observatory;
use crate::push::Desk;

/// What every request can reach, under one configuration.
#[derive(Clone)]
pub struct App(Arc<Shared>);

/// Tells what is known of the program of an agent.
pub type Known = Arc<dyn Fn(&AgentId) -> Option<ProgramStatus> + Send + Sync>;

/// The shared part of an [`App`].
pub struct Shared {
    /// The tree.
    pub gateway: Gateway,
    /// Who may enter.
    pub guard: Guard,
    /// The addresses that may not even try.
    pub lockouts: Arc<Lockouts>,
    /// The calls that agents may still take.
    pub rates: Arc<Rates>,
    /// Changes the configuration and tokens.
    pub admin: Arc<dyn Admin>,
    /// The names of the service.
    pub hosts: Hosts,
    /// Proxies whose word about a caller's address counts.
    pub proxies: Vec<IpNet>,
    /// Paths of agents beside the usual ones.
    pub aliases: Aliases,
    /// Where gRPC clients connect.
    pub grpc: GrpcUrls,
    /// Takes push configurations; `None` when nobody is told.
    pub push: Option<Desk>,
    /// The agents, by id.
    pub agents: BTreeMap<AgentId, Arc<AgentSpec>>,
    /// The zone of a schedule that names none.
    pub zone: String,
    /// Whether schedules may have seconds.
    pub seconds: bool,
    /// The agent of the host's own card.
    pub default_agent: Option<AgentId>,
    /// Counts and times requests.
    pub observatory: Observatory,
    /// Whether those who may read are shown the numbers.
    pub metrics: bool,
    /// How much room the ledger takes, in bytes.
    pub ledger_bytes: Arc<dyn Fn() -> u64 + Send + Sync>,
    /// How much the ledger holds.
    pub stocktaking: Stocktaking,
    /// What `/status` tells those who see all.
    pub looks: Looks<Bytes>,
    /// What the machine offers.
    pub rungs: Rungs,
    /// Tells which wardens live.
    pub wardens: Arc<dyn Fn() -> Vec<u32> + Send + Sync>,
    /// Tells what is known of the program of an agent.
    pub programs: Known,
    /// Since when it serves.
    pub begun: DateTime<Utc>,
    /// Where callers reach the service, without a slash at the end.
    pub public_url: String,
    /// Whether cards are shown to everybody.
    pub public_card: bool,
    /// The longest body in bytes.
    pub max_body: usize,
    /// How long a body may take.
    pub body_timeout: Duration,
}

impl App {
    /// Shares what every request can reach.
    #[must_use]
    pub fn new(shared: Shared) -> Self {
        Self(Arc::new(shared))
    }
}

impl std::ops::Deref for App {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.0
    }
}

#[cfg(test)]
mod tests;
