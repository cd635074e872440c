//! Loading of a configuration in the environment of this terminal.

use std::path::Path;

use crate::cli::error::CliError;
use crate::config::{self, LoadedConfig};

/// Loads the configuration of a file, or the shipped one.
pub(crate) fn load(file: Option<&Path>) -> Result<LoadedConfig, CliError> {
    let env = |name: &str| std::env::var_os(name);
    let loaded = match file {
        Some(file) => config::load(file, &env),
        None => config::load_built_in(&env),
    };
    loaded.map_err(CliError::InvalidConfiguration)
}
