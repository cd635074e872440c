//! HTTP servers of all protocols over one api: requests in, messages to the supervision tree, JSON out.

pub mod a2a;
pub mod agent_directory;
pub mod api;
pub mod auth;
pub mod http;
pub mod ops;
pub mod router;

use std::sync::Arc;

use algonius_actors::api::Api;
use algonius_actors::model::failure::Failure;
use algonius_actors::model::id::AgentId;
use algonius_actors::model::observation::status::AgentStatus;
use chrono::{DateTime, Utc};

use crate::push::PushRegistry;
use a2a::card::public_address::PublicAddressResolver;
use agent_directory::{AgentDirectory, unknown_agent};
use api::schedules::ScheduleDefaults;
use auth::AccessControl;
use http::body_limits::BodyLimits;
use ops::admin::Administration;
use ops::error_pages::ErrorPages;
use ops::status::{MachineFacts, Monitoring};

/// State that all requests share under one configuration.
#[derive(Clone)]
pub struct AppState(Arc<SharedState>);

/// The shared part of an [`AppState`].
pub struct SharedState {
    /// Api to the supervision tree.
    pub api: Api,
    /// Changes of the configuration and of tokens.
    pub admin: Arc<dyn Administration>,
    /// Registry of push configurations; `None` if push notifications are disabled.
    pub push_registry: Option<PushRegistry>,
    /// Rules about callers.
    pub access_control: AccessControl,
    /// Agents of the configuration.
    pub agents: AgentDirectory,
    /// Defaults and rules for schedules.
    pub schedule_defaults: ScheduleDefaults,
    /// Addresses at which callers reach the service.
    pub public_addresses: PublicAddressResolver,
    /// Limits of request bodies.
    pub body_limits: BodyLimits,
    /// Sources of the metrics and of the status.
    pub monitoring: Monitoring,
    /// Facts about the machine and the processes on it.
    pub machine: MachineFacts,
    /// Pages about errors.
    pub error_pages: ErrorPages,
    /// Time at which the present configuration came into force.
    pub config_in_force_since: DateTime<Utc>,
}

impl AppState {
    /// Wraps the state that all requests share.
    #[must_use]
    pub fn new(shared: SharedState) -> Self {
        Self(Arc::new(shared))
    }

    /// Returns the status of an agent, with the facts about its program.
    ///
    /// # Errors
    /// `agent-unknown`.
    pub async fn agent_status(&self, id: &AgentId) -> Result<AgentStatus, Failure> {
        let tree = self.api.tree.status().await;
        let status = tree.agents.into_iter().find(|agent| agent.id == *id);
        let status = status.ok_or_else(unknown_agent)?;
        Ok(AgentStatus { program: self.agents.program_status(id), ..status })
    }
}

impl std::ops::Deref for AppState {
    type Target = SharedState;

    fn deref(&self) -> &SharedState {
        &self.0
    }
}

#[cfg(test)]
mod tests;
