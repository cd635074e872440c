//! `algonius init`: writes a configuration and a token that other users cannot read.

use std::path::{Path, PathBuf};

use serde_json::json;

use super::atomic_file;
use super::search::ConfigLocation;
use crate::cli::error::CliError;
use crate::cli::output::CliOutput;
use crate::config;
use crate::platform::operator_token;

/// Paths of the written files.
pub(crate) struct WrittenFiles {
    pub(crate) config_file: PathBuf,
    token_file: PathBuf,
}

/// Writes both files and prints the next steps. Without a directory the files go where every command finds them.
pub(crate) fn run(folder: Option<&Path>, force: bool, out: &CliOutput) -> Result<(), CliError> {
    let user_file = ConfigLocation::user_file().filter(|_| folder.is_none());
    let file = match (folder, user_file) {
        (Some(folder), _) => folder.join("supervisor.toml"),
        (None, Some(file)) => file,
        (None, None) => PathBuf::from("supervisor.toml"),
    };
    let WrittenFiles { config_file, token_file } = write_files(file, force)?;
    if out.is_json() {
        let path_text = |file: &Path| file.display().to_string();
        out.print_json(
            &json!({"configuration": path_text(&config_file), "token": path_text(&token_file)}),
        );
        return Ok(());
    }
    out.print_line(&format!("configuration  {}", config_file.display()));
    out.print_line(&format!("token          {}", token_file.display()));
    let is_found = ConfigLocation::find(None).file.as_ref() == Some(&config_file);
    let config_option =
        if is_found { String::new() } else { format!(" --config {}", config_file.display()) };
    out.print_line(&format!("next           algonius serve{config_option}"));
    Ok(())
}

/// Writes the shipped configuration into a file, and a token beside the data of the service.
pub(crate) fn write_files(config_file: PathBuf, force: bool) -> Result<WrittenFiles, CliError> {
    let file_error = |problem, file: &Path| {
        let file = file.to_owned();
        move |source| CliError::File { problem, file, source }
    };
    let env = |name: &str| std::env::var_os(name);
    // First of all: without a token the configuration is of no use.
    let token_file = config::default_token_file(&env).ok_or(CliError::NoTokenFolder)?;
    let folder = config_file.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder).map_err(file_error("cannot make", folder))?;
    let write = if force { atomic_file::replace } else { atomic_file::create };
    write(&config_file, config::BUILT_IN_CONFIG)
        .map_err(file_error("cannot write", &config_file))?;
    operator_token::read_or_create(&token_file).map_err(file_error("cannot write", &token_file))?;
    Ok(WrittenFiles { config_file, token_file })
}
