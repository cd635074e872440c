//! Switches that enable or disable agents at run time, in place of the configuration.
//!
//! A switch is stored in a file beside the ledger: it persists over reloads and restarts, until the agent is switched
//! back.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use algonius_actors::model::code::Code;
use algonius_actors::model::failure::Failure;
use algonius_actors::model::id::AgentId;
use tokio::task::spawn_blocking;

use super::{Reloader, report};
use crate::StartError;
use crate::config::{ConfigSource, ConfiguredAgent, LoadedConfig, Severity};
use crate::serve::ops::admin::SwitchResult;
use crate::wire::admin::{ConfigurationError, SwitchedAgent};

/// Name of the file.
const SWITCHES_FILE: &str = "switches.json";

/// Switches of agents, and their configured states.
#[derive(Debug, Clone, Default)]
pub(crate) struct AgentSwitches {
    file: PathBuf,
    overrides: BTreeMap<String, bool>,
    enabled_in_config: BTreeMap<String, bool>,
}

impl AgentSwitches {
    /// Reads the switches from this folder.
    ///
    /// # Errors
    /// Fails if the file exists and cannot be read: an agent that was disabled must stay disabled.
    pub(crate) fn read(data_dir: &Path) -> Result<Self, StartError> {
        let file = data_dir.join(SWITCHES_FILE);
        let overrides = match fs::read(&file) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(io::Error::other),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(BTreeMap::new()),
            Err(error) => Err(error),
        };
        let overrides =
            overrides.map_err(|source| StartError::Switches { file: SWITCHES_FILE, source })?;
        Ok(Self { file, overrides, enabled_in_config: BTreeMap::new() })
    }

    /// Records the configured state of these agents, and applies the switches.
    pub(crate) fn record_and_apply_to(&mut self, agents: &mut [ConfiguredAgent]) {
        let id_and_state =
            |agent: &ConfiguredAgent| (agent.spec.id.to_string(), agent.spec.enabled);
        self.enabled_in_config = agents.iter().map(id_and_state).collect();
        for agent in agents {
            if let Some(enabled) = self.overrides.get(agent.spec.id.as_str()) {
                Arc::make_mut(&mut agent.spec).enabled = *enabled;
            }
        }
    }

    /// Returns the agents whose state differs from the configuration.
    pub(super) fn overridden_agents(&self) -> Vec<String> {
        let differs = |(id, enabled): &(&String, &bool)| {
            self.enabled_in_config
                .get(*id)
                .is_some_and(|enabled_in_config| enabled_in_config != *enabled)
        };
        self.overrides.iter().filter(differs).map(|(id, _)| id.clone()).collect()
    }

    /// Returns true if the configuration enables this agent.
    fn is_enabled_in_config(&self, id: &AgentId) -> bool {
        self.enabled_in_config.get(id.as_str()).copied().unwrap_or_default()
    }

    /// Returns the switches with this agent switched; a switch that equals the configuration is not stored.
    fn with_switch(&self, id: &AgentId, enabled: bool, enabled_in_config: bool) -> Self {
        let mut switches = self.clone();
        switches.enabled_in_config.insert(id.to_string(), enabled_in_config);
        switches.overrides.remove(id.as_str());
        if enabled != enabled_in_config {
            switches.overrides.insert(id.to_string(), enabled);
        }
        switches
    }

    /// Writes the file atomically, readable by its owner only.
    fn write(&self) -> io::Result<()> {
        let temporary_path = self.file.with_added_extension("new");
        let mut options = OpenOptions::new();
        let mut file =
            options.write(true).create(true).truncate(true).mode(0o600).open(&temporary_path)?;
        file.write_all(&serde_json::to_vec(&self.overrides)?)?;
        // Without it, a power failure after the rename could leave an empty file in place of the old one.
        file.sync_all()?;
        fs::rename(&temporary_path, &self.file)
    }
}

impl Reloader {
    /// Enables or disables an agent. Its executions continue, and the switch is stored before it takes effect.
    pub(super) async fn switch_agent(
        &mut self,
        id: AgentId,
        enabled: bool,
    ) -> Result<SwitchResult, Failure> {
        let Some(current_agent) = self.settings.agents.iter().find(|it| it.spec.id == id) else {
            return Err(Failure::new(Code::AgentUnknown, "there is no such agent"));
        };
        let enabled_in_config = self.switches.is_enabled_in_config(&id);
        let is_disabled_everywhere = !enabled_in_config && !current_agent.spec.enabled;
        let (mut agent, enabled_in_config) = match enabled && is_disabled_everywhere {
            true => match read_configured_agent(self.files.source().clone(), &id).await {
                Ok(configured_agent) => (configured_agent.clone(), configured_agent.spec.enabled),
                Err(faults) => return Ok(Err(faults)),
            },
            false => (current_agent.clone(), enabled_in_config),
        };
        Arc::make_mut(&mut agent.spec).enabled = enabled;
        let mut settings = self.settings.clone();
        settings.agents.iter_mut().filter(|it| it.spec.id == id).for_each(|it| *it = agent.clone());
        let agent_changes = match self.agents.prepare_changes(&self.settings, &mut settings) {
            Ok(agents) => agents,
            Err(error) => return Ok(Err(vec![report::rejection(&error)])),
        };
        let switches = self.switches.with_switch(&id, enabled, enabled_in_config);
        // Stored first: an agent that was disabled must stay disabled after a crash.
        store_switches(switches.clone()).await?;
        (self.switches, self.settings) = (switches, settings);
        self.agents.apply_changes(agent_changes).await;
        self.protect_files();
        if enabled {
            self.breakers.reset_rejected_credentials(); // The operator who enabled the agent may have repaired its credential.
        }
        self.publish_http_state();
        self.status_publisher.publish_switched_agents(self.switches.overridden_agents());
        tracing::info!(agent = %id, on = enabled, "agent switched");
        self.apply_program_changes().await; // The program of a disabled agent is not searched.
        Ok(Ok(SwitchedAgent { id: id.to_string(), enabled, configured: enabled_in_config }))
    }
}

/// Reads the present configuration of a disabled agent: faults of the machine were ignored at the last reading, and
/// may have been repaired since.
async fn read_configured_agent(
    source: ConfigSource,
    id: &AgentId,
) -> Result<ConfiguredAgent, Vec<ConfigurationError>> {
    let result = spawn_blocking(move || source.read()).await;
    let LoadedConfig { settings, warnings } = match result {
        Ok(Ok(loaded)) => loaded,
        Ok(Err(faults)) => return Err(report::configuration_errors(&faults)),
        Err(_panicked) => return Err(vec![missing_agent_error()]),
    };
    let key_prefix = format!("agents.{id}.");
    let is_setting_of_agent = |key: &str| key.starts_with(&key_prefix);
    let machine_fault_errors = warnings.iter().filter(|it| {
        it.severity == Severity::WarningWhileDisabled && is_setting_of_agent(&it.key_path)
    });
    let machine_fault_errors: Vec<_> =
        machine_fault_errors.map(report::configuration_error).collect();
    if !machine_fault_errors.is_empty() {
        return Err(machine_fault_errors);
    }
    settings
        .agents
        .into_iter()
        .find(|agent| agent.spec.id == *id)
        .ok_or_else(|| vec![missing_agent_error()])
}

async fn store_switches(switches: AgentSwitches) -> Result<(), Failure> {
    let result = spawn_blocking(move || switches.write()).await.map_err(io::Error::other);
    result.and_then(|result| result).map_err(|error| {
        tracing::error!(%error, "failed to store agent switch");
        Failure::new(Code::Internal, "the switch could not be stored; the agent is unchanged")
    })
}

fn missing_agent_error() -> ConfigurationError {
    let message = "the configuration as it is written has no such agent; reload it".to_owned();
    ConfigurationError { file: None, line: None, column: None, key: None, message, hint: None }
}
