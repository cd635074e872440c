//! Table of a new agent and the file to which it is added: existing content stays unchanged, and the file is written
//! atomically.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::cli::args::AddAgentArgs;
use crate::cli::configuration::{ConfigLocation, atomic_file, init};
use crate::cli::error::CliError;
use crate::config;

/// Configuration file with the table to add.
pub(super) struct ConfigDraft {
    /// Path of the file, with links resolved.
    file: PathBuf,
    /// Present content of the file.
    present_content: String,
    /// Table to add.
    table: String,
    /// True if the file does not exist yet.
    is_new: bool,
}

impl ConfigDraft {
    /// Reads the file that every command finds, and writes the table of the agent with this id. If no file exists,
    /// the draft is the file of the present user, with the content that `algonius init` writes.
    pub(super) fn new(args: &AddAgentArgs, id: &str) -> Result<Self, CliError> {
        let found_file = ConfigLocation::find(args.config.as_deref()).file;
        let Some(existing_file) = found_file else {
            let file =
                ConfigLocation::user_file().unwrap_or_else(|| PathBuf::from("supervisor.toml"));
            let (present_content, table) =
                (config::BUILT_IN_CONFIG.to_owned(), build_agent_table(args, id)?);
            return Ok(Self { file, present_content, table, is_new: true });
        };
        let file_error = |source| CliError::File {
            problem: "cannot read (`algonius init` makes one)",
            file: existing_file.clone(),
            source,
        };
        let file = existing_file.canonicalize().map_err(file_error)?;
        let present_content = fs::read_to_string(&file).map_err(file_error)?;
        Ok(Self { file, present_content, table: build_agent_table(args, id)?, is_new: false })
    }

    /// True if the file does not exist before it is written.
    pub(super) const fn is_new(&self) -> bool {
        self.is_new
    }

    /// Returns the path of the file.
    pub(super) fn file(&self) -> &Path {
        &self.file
    }

    /// Returns the present content of the file.
    pub(super) fn present_content(&self) -> &str {
        &self.present_content
    }

    /// Returns the table to add.
    pub(super) fn table(&self) -> &str {
        &self.table
    }

    /// Returns the content with the table.
    pub(super) fn content_with_table(&self) -> String {
        let separator = match self.present_content.as_str() {
            "" => "",
            present_content if present_content.ends_with("\n\n") => "",
            present_content if present_content.ends_with('\n') => "\n",
            _ => "\n\n",
        };
        format!("{}{separator}{}", self.present_content, self.table)
    }

    /// Returns the content with the agent disabled, for a check on a machine that lacks something.
    pub(super) fn content_with_agent_disabled(&self) -> String {
        format!("{}enabled = false\n", self.content_with_table())
    }

    /// Writes the content with the table.
    pub(super) fn write(&self) -> Result<(), CliError> {
        if self.is_new {
            init::write_files(self.file.clone(), false)?;
        }
        self.replace_with(&self.content_with_table())
    }

    /// Restores the previous content.
    pub(super) fn restore(&self) -> Result<(), CliError> {
        self.replace_with(&self.present_content)
    }

    /// Replaces the file atomically, because the service may read it at any time.
    fn replace_with(&self, text: &str) -> Result<(), CliError> {
        let file_error =
            |source| CliError::File { problem: "cannot write", file: self.file.clone(), source };
        atomic_file::replace(&self.file, text).map_err(file_error)
    }
}

/// Returns the table of the agent. A JSON string is also a valid TOML string.
fn build_agent_table(args: &AddAgentArgs, id: &str) -> Result<String, CliError> {
    let mut lines = format!("[agents.{id}]\npreset = {}\n", json!(args.preset));
    if let Some(model) = &args.model {
        lines.push_str(&format!("model = {}\n", json!(model)));
    }
    if args.read_write {
        lines.push_str("access = \"read-write\"\n");
    }
    if let Some(folder) = &args.working_dir {
        let file_error =
            |source| CliError::File { problem: "there is no", file: folder.clone(), source };
        let folder = folder.canonicalize().map_err(file_error)?;
        lines.push_str(&format!("working_dir = {}\n", json!(folder.to_string_lossy())));
    }
    Ok(lines)
}
