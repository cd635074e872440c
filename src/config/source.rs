//! Source of a configuration, which can be read again.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::diagnostics::ConfigFaults;
use super::load::{LoadedConfig, load, load_built_in};
use super::settings::Settings;

/// Lookup of a variable in an environment.
type SharedEnvLookup = Arc<dyn Fn(&str) -> Option<OsString> + Send + Sync>;

/// Source of a configuration. Cheap to clone.
#[derive(Clone)]
pub struct ConfigSource {
    origin: SourceOrigin,
    /// Listen address that overrides the configuration.
    listen_address_override: Option<SocketAddr>,
}

#[derive(Clone)]
enum SourceOrigin {
    /// File, or the shipped configuration, with an environment.
    FileOrBuiltIn(Option<PathBuf>, SharedEnvLookup),
    /// Settings that never change.
    Fixed(Box<Settings>),
}

impl ConfigSource {
    /// Returns a file as the source, or the shipped configuration without one, in the environment of this process.
    #[must_use]
    pub fn new(file: Option<&Path>) -> Self {
        let environment = Arc::new(|name: &str| std::env::var_os(name));
        Self {
            origin: SourceOrigin::FileOrBuiltIn(file.map(Path::to_owned), environment),
            listen_address_override: None,
        }
    }

    /// Returns fixed settings as the source; each reading yields the same.
    #[must_use]
    pub fn from_settings(settings: Settings) -> Self {
        Self { origin: SourceOrigin::Fixed(Box::new(settings)), listen_address_override: None }
    }

    /// Returns the same source with another listen address.
    #[must_use]
    pub fn with_listen_address(self, listen_address: Option<SocketAddr>) -> Self {
        Self { listen_address_override: listen_address, ..self }
    }

    /// Returns the file, if there is one.
    #[must_use]
    pub fn file(&self) -> Option<&Path> {
        match &self.origin {
            SourceOrigin::FileOrBuiltIn(file, _) => file.as_deref(),
            SourceOrigin::Fixed(_) => None,
        }
    }

    /// Reads and checks the configuration. Reads files, so it may take a moment.
    ///
    /// # Errors
    /// Fails if the configuration has any error.
    pub fn read(&self) -> Result<LoadedConfig, ConfigFaults> {
        let mut loaded = match &self.origin {
            SourceOrigin::FileOrBuiltIn(Some(file), environment) => load(file, &**environment),
            SourceOrigin::FileOrBuiltIn(None, environment) => load_built_in(&**environment),
            SourceOrigin::Fixed(settings) => {
                Ok(LoadedConfig { settings: Settings::clone(settings), warnings: Vec::new() })
            }
        }?;
        // The option of the command line outlives each reload.
        if let Some(listen_address) = self.listen_address_override {
            loaded.settings.server.listen_address = listen_address;
        }
        Ok(loaded)
    }
}
