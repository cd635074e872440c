//! Checked settings of the service.

use std::path::PathBuf;

use algonius_actors::model::access::principal::NewToken;
use algonius_actors::model::id::AgentId;
use algonius_redact::RedactionConfig;

use super::keys::agent::ConfiguredAgent;
use super::keys::alerts::AlertSettings;
use super::keys::inputs::InputSettings;
use super::keys::log::LogSettings;
use super::keys::pressure::PressureSettings;
use super::keys::push::PushSettings;
use super::keys::retention::RetentionSettings;
use super::keys::schedules::SchedulerSettings;
use super::keys::server::ServerSettings;
use super::keys::server::access::LockoutSettings;
use super::keys::telemetry::TelemetrySettings;
use super::service_files::ServiceFiles;

/// Settings of a configuration without an error.
#[derive(Clone)]
pub struct Settings {
    /// Network settings and directories of the service.
    pub server: ServerSettings,
    /// Monitoring of the machine; `None` if it is disabled.
    pub pressure: Option<PressureSettings>,
    /// Push notifications; `None` if they are disabled.
    pub push: Option<PushSettings>,
    /// Retention of the history; `None` keeps all of it.
    pub retention: Option<RetentionSettings>,
    /// Agents in the order of the file; never empty.
    pub agents: Vec<ConfiguredAgent>,
    /// Agent of requests that name none.
    pub default_agent: Option<AgentId>,
    /// Callers that the service accepts.
    pub callers: CallerSettings,
    /// Protection of secrets in texts.
    pub secrecy: SecrecySettings,
    /// Log, metrics, alerts and telemetry.
    pub observability: ObservabilitySettings,
    /// Scheduler and schedules.
    pub scheduling: SchedulerSettings,
    /// Files that were read besides the configuration itself.
    pub referenced_files: Vec<PathBuf>,
    /// Files that no agent may read or change.
    pub service_files: ServiceFiles,
}

/// Callers that the service accepts.
#[derive(Debug, Clone)]
pub struct CallerSettings {
    /// Configured tokens, including those of single agents.
    pub tokens: Vec<NewToken>,
    /// Limits for wrong credentials.
    pub lockout: LockoutSettings,
}

/// Protection of secrets in texts.
#[derive(Clone)]
pub struct SecrecySettings {
    /// Texts that must be redacted everywhere.
    pub secrets: Vec<String>,
    /// Additional redaction.
    pub redaction: RedactionConfig,
    /// Settings of inputs that contain a secret.
    pub inputs: InputSettings,
}

impl std::fmt::Debug for SecrecySettings {
    /// Omits the secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SecrecySettings")
            .field("redaction", &self.redaction)
            .field("inputs", &self.inputs)
            .finish_non_exhaustive()
    }
}

/// Log, metrics, alerts and telemetry.
#[derive(Debug, Clone)]
pub struct ObservabilitySettings {
    /// Log settings.
    pub log: LogSettings,
    /// True if metrics are served to callers that may read.
    pub serves_metrics: bool,
    /// Conditions of alerts, and their receivers.
    pub alerts: Box<AlertSettings>,
    /// OpenTelemetry collector.
    pub telemetry: Option<TelemetrySettings>,
}

impl std::fmt::Debug for Settings {
    /// Omits the files: the text at the position of a path may be a secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Settings")
            .field("server", &self.server)
            .field("pressure", &self.pressure)
            .field("push", &self.push)
            .field("retention", &self.retention)
            .field("agents", &self.agents)
            .field("default_agent", &self.default_agent)
            .field("callers", &self.callers)
            .field("secrecy", &self.secrecy)
            .field("observability", &self.observability)
            .field("scheduling", &self.scheduling)
            .finish_non_exhaustive()
    }
}
