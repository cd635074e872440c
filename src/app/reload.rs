//! Configuration in force, and its replacement while the service runs.
//!
//! One task performs all steps in sequence: it reads the configuration again, compares it with the one in force, and
//! applies each difference. Each kind of difference has its own file here: `difference` finds it, and `agents`,
//! `redaction`, `schedules` and `token_administration` apply it.

mod agent_switches;
mod agents;
mod apply;
mod config_protection;
mod difference;
mod file_watch;
mod programs;
mod redaction;
mod reload_handle;
mod report;
mod schedules;
mod sockets;
mod status_publisher;
mod token_administration;

use std::sync::Arc;
use std::time::Duration;

use algonius_actors::model::failure::Failure;
use algonius_actors::model::id::AgentId;
use algonius_actors::ports::clock::Clock;
use algonius_actors::root::AgentRegistry;
use algonius_actors::services::CredentialBreakers;
use algonius_store::Store;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval};

use crate::app::agent_factory::AgentFactory;
use crate::app::credentials::Credentials;
use crate::app::http_state::{AgentSpecs, HttpState};
use crate::config::{ConfigSource, Settings};

pub(crate) use agent_switches::AgentSwitches;
use agents::ServedAgents;
pub(crate) use agents::specs_by_id;
use config_protection::FileProtection;
use file_watch::ConfigFiles;
pub(crate) use redaction::RedactionState;
use reload_handle::AdminRequest;
pub(crate) use reload_handle::{ReloadHandle, ReloaderChannels, channel};
pub(crate) use schedules::configured_schedules;
use status_publisher::{AutoReloadState, StatusPublisher};
use token_administration::{TokenAdministration, replace_token_file};

/// Interval between two checks of the configuration files; an idle service sleeps in between.
const CHECK_INTERVAL: Duration = Duration::from_secs(2);

/// Parts to which a configuration is applied.
pub(crate) struct ReloadContext {
    pub(crate) source: ConfigSource,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) store: Arc<Store>,
    pub(crate) agent_factory: AgentFactory,
    pub(crate) agent_registry: AgentRegistry,
    pub(crate) http_state: HttpState,
    pub(crate) redaction: RedactionState,
    pub(crate) breakers: CredentialBreakers,
}

/// Task that applies configurations.
pub(crate) struct Reloader {
    files: ConfigFiles,
    http_state: HttpState,
    redaction: RedactionState,
    breakers: CredentialBreakers,
    /// Settings of the start without agents: settings that need a restart stay in effect until the end.
    startup_settings: Settings,
    /// Settings in force.
    settings: Settings,
    switches: AgentSwitches,
    agents: ServedAgents,
    tokens: TokenAdministration,
    protection: FileProtection,
    status_publisher: StatusPublisher,
    /// Reason why the last installed program could not be used.
    program_error: Option<String>,
}

impl Reloader {
    /// Puts the configuration of the start into force, and publishes it.
    pub(crate) fn start(
        context: ReloadContext,
        settings: Settings,
        (specs, credentials, switches): (AgentSpecs, Credentials, AgentSwitches),
        channels: ReloaderChannels,
    ) -> JoinHandle<()> {
        let ReloadContext { source, clock, store, agent_factory, agent_registry, .. } = context;
        let ReloaderChannels { requests, status, log_level } = channels;
        let (http_state, redaction) = (context.http_state, context.redaction);
        let mut reloader = Self {
            protection: FileProtection::new(source.file()),
            files: ConfigFiles::new(source, &settings),
            agents: ServedAgents::new((agent_factory, agent_registry), http_state.address(), specs),
            tokens: TokenAdministration::new(store, Arc::clone(&clock), credentials),
            status_publisher: StatusPublisher::new(clock, status, log_level),
            http_state,
            redaction,
            breakers: context.breakers,
            startup_settings: Settings { agents: Vec::new(), ..settings.clone() },
            settings,
            switches,
            program_error: None,
        };
        reloader.protect_files();
        let state = auto_reload_state(&reloader.protection, &reloader.settings);
        let overridden_agents = reloader.switches.overridden_agents();
        reloader.status_publisher.publish_initial_status(state, overridden_agents);
        reloader.publish_http_state();
        tokio::spawn(reloader.run(requests))
    }

    /// Handles requests and detected changes, one after the other.
    async fn run(mut self, mut requests: mpsc::Receiver<AdminRequest>) {
        let mut checks = interval(CHECK_INTERVAL);
        // A check that was late must not be followed by others at once: each of them finds the same.
        checks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                request = requests.recv() => match request {
                    Some(request) => self.handle_request(request).await,
                    None => return,
                },
                Some(drained) = self.agents.next_drained_agent() => self.remove_drained_agent(drained),
                _ = checks.tick() => {
                    self.check_and_apply_file_changes().await;
                    self.apply_program_changes().await;
                    if self.agents.apply_socket_changes(&mut self.settings).await {
                        self.publish_http_state();
                    }
                }
            }
        }
    }

    /// Checks the service's files: restores their modes, and applies changes to them.
    async fn check_and_apply_file_changes(&mut self) {
        self.protection.restore_modes(&self.settings);
        self.publish_auto_reload_state();
        let reloads_on_change = self.settings.server.configuration.reloads_on_change;
        if !reloads_on_change || !self.files.poll_for_change().await {
            return;
        }
        // The change itself may come from another user.
        self.protection.update_auto_reload_obstacle(&self.settings);
        self.publish_auto_reload_state();
        if self.protection.applies_changes_automatically(&self.settings) {
            _ = self.reload("a file has changed").await; // The log and the status report it.
        }
    }

    async fn handle_request(&mut self, request: AdminRequest) {
        match request {
            AdminRequest::Reload(reason, reply) => {
                self.protection.accept_mode_changes();
                _ = reply.send(self.reload(reason).await);
            }
            AdminRequest::SwitchAgent(agent, enabled, reply) => {
                _ = reply.send(self.switch_agent(agent, enabled).await);
            }
            AdminRequest::CreateToken(spec, reply) => {
                let created = self.tokens.create(*spec, &self.settings, &mut self.redaction).await;
                _ = reply.send(self.publish_if_ok(created));
            }
            AdminRequest::RevokeToken(name, reply) => {
                let revoked = self.tokens.revoke(name, &self.settings).await;
                _ = reply.send(self.publish_if_ok(revoked));
            }
            AdminRequest::RotateOperatorToken(reply) => {
                let rotated = self.rotate_operator_token().await;
                _ = reply.send(self.publish_if_ok(rotated));
            }
        }
    }

    /// Replaces the text of the operator's token.
    async fn rotate_operator_token(&mut self) -> Result<(), Failure> {
        replace_token_file(self.settings.server.token_file.clone()).await?;
        self.files.record_states(); // The service itself changed this file, so its change requests no reload.
        let (settings, specs) = (&self.settings, self.agents.specs());
        self.tokens.reload_credentials(settings, specs, &mut self.redaction).await?;
        tracing::info!("operator token rotated");
        Ok(())
    }

    /// Publishes the tokens in force after a successful change of them.
    fn publish_if_ok<T>(&self, result: Result<T, Failure>) -> Result<T, Failure> {
        if result.is_ok() {
            self.publish_http_state();
        }
        result
    }

    /// Removes an agent from the published configuration after it has finished its executions.
    fn remove_drained_agent(&mut self, agent: Option<AgentId>) {
        let Some(id) = agent else { return };
        // The agent may have been configured again since.
        if self.settings.agents.iter().all(|agent| agent.spec.id != id) {
            self.agents.remove_agent(&id);
            self.publish_http_state();
        }
    }

    /// Protects the files of the configuration in force.
    fn protect_files(&mut self) {
        self.protection.record_and_watch_files(&self.settings);
        self.publish_auto_reload_state();
    }

    fn publish_auto_reload_state(&self) {
        let state = auto_reload_state(&self.protection, &self.settings);
        self.status_publisher.publish_auto_reload_state(state);
    }

    /// Publishes the configuration in force.
    fn publish_http_state(&self) {
        let (specs, in_force_since) = (self.agents.specs(), self.status_publisher.in_force_since());
        let authenticator = self.tokens.authenticator(specs);
        self.http_state.publish(&self.settings, specs.clone(), authenticator, in_force_since);
    }
}

/// Returns true if changed files are applied automatically, and the reason if not.
fn auto_reload_state(protection: &FileProtection, settings: &Settings) -> AutoReloadState {
    AutoReloadState {
        is_active: protection.applies_changes_automatically(settings),
        auto_reload_obstacle: protection.auto_reload_obstacle().cloned(),
    }
}
