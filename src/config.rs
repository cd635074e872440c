//! Configuration: TOML text, a report of all faults with their positions, and checked settings.

mod diagnostics;
mod document;
mod keys;
mod load;
pub mod presets;
mod schema;
mod service_files;
mod settings;
mod source;
mod table;

pub use diagnostics::{ConfigFault, ConfigFaults, FaultCode, Severity, nearest_word};
pub use keys::agent::network::NETWORK_VARIABLES;
pub use keys::agent::{AgentWorker, ConfiguredAgent};
pub use keys::alerts::AlertSettings;
pub use keys::inputs::{InputSealingKey, InputSettings};
pub use keys::log::{LogFormat, LogSettings};
pub use keys::pressure::PressureSettings;
pub use keys::programs::search::{ProgramSearch, is_executable};
pub use keys::push::PushSettings;
pub use keys::retention::RetentionSettings;
pub use keys::schedules::{ScheduleWithOwner, SchedulerSettings};
pub use keys::server::access::{LockoutSettings, RequestAccessSettings};
pub use keys::server::{
    ConfigFileSettings, DurabilitySetting, ProgramSettings, PublicSettings, RequestLimits,
    ServerSettings, default_token_file,
};
pub use keys::telemetry::TelemetrySettings;
pub use load::{BUILT_IN_CONFIG, LoadedConfig, load, load_built_in, load_built_in_text, load_text};
pub use schema::schema;
pub use service_files::{FilesWithSecrets, ServiceFiles};
pub use settings::{CallerSettings, ObservabilitySettings, SecrecySettings, Settings};
pub use source::ConfigSource;

#[cfg(test)]
mod tests;
