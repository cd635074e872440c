//! Table of a new agent and the file to which it is added: existing content stays unchanged, and the file is written
//! atomically.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::cli::args::AddAgentArgs;
use crate::cli::configuration::{Configuration, init};
use crate::cli::error::CliError;
use crate::config;

/// Configuration file with the table to add.
pub(super) struct ConfigDraft {
    /// Path of the file, with links resolved.
    file: PathBuf,
    /// Present content of the file.
    before: String,
    /// Table to add.
    table: String,
    /// True if the file does not exist yet.
    is_new: bool,
}

impl ConfigDraft {
    /// Reads the file that every command finds, and writes the table of the agent with this id. If no file exists,
    /// the draft is the file of the present user, with the content that `algonius init` writes.
    pub(super) fn new(args: &AddAgentArgs, id: &str) -> Result<Self, CliError> {
        let found_file = Configuration::find(args.config.as_deref()).file;
        let Some(existing_file) = found_file else {
            let file = Configuration::of_user().unwrap_or_else(|| PathBuf::from("supervisor.toml"));
            let (before, table) = (config::SHIPPED_CONFIG.to_owned(), table(args, id)?);
            return Ok(Self { file, before, table, is_new: true });
        };
        let fault = |source| CliError::File {
            problem: "cannot read (`algonius init` makes one)",
            file: existing_file.clone(),
            source,
        };
        let file = existing_file.canonicalize().map_err(fault)?;
        let before = fs::read_to_string(&file).map_err(fault)?;
        Ok(Self { file, before, table: table(args, id)?, is_new: false })
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
    pub(super) fn before(&self) -> &str {
        &self.before
    }

    /// Returns the table to add.
    pub(super) fn table(&self) -> &str {
        &self.table
    }

    /// Returns the content with the table.
    pub(super) fn after(&self) -> String {
        let gap = match self.before.as_str() {
            "" => "",
            before if before.ends_with("\n\n") => "",
            before if before.ends_with('\n') => "\n",
            _ => "\n\n",
        };
        format!("{}{gap}{}", self.before, self.table)
    }

    /// Returns the content with the agent disabled, for a check on a machine that lacks something.
    pub(super) fn after_with_agent_disabled(&self) -> String {
        format!("{}enabled = false\n", self.after())
    }

    /// Writes the content with the table.
    pub(super) fn write(&self) -> Result<(), CliError> {
        if self.is_new {
            init::write(self.file.clone(), false)?;
        }
        self.replace_with(&self.after())
    }

    /// Restores the previous content.
    pub(super) fn restore(&self) -> Result<(), CliError> {
        self.replace_with(&self.before)
    }

    /// Replaces the file atomically, because the service may read it at any time.
    fn replace_with(&self, text: &str) -> Result<(), CliError> {
        let fault =
            |source| CliError::File { problem: "cannot write", file: self.file.clone(), source };
        replace(&self.file, text).map_err(fault)
    }
}

fn replace(file: &Path, text: &str) -> io::Result<()> {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let temporary_path = file.with_file_name(format!(".{name}.{}", std::process::id()));
    let written = File::create_new(&temporary_path).and_then(|mut temporary_file| {
        temporary_file.set_permissions(fs::metadata(file)?.permissions())?;
        temporary_file.write_all(text.as_bytes())?;
        temporary_file.sync_all()
    });
    let replaced = written.and_then(|()| fs::rename(&temporary_path, file));
    if replaced.is_err() {
        _ = fs::remove_file(&temporary_path); // The first fault is the one to report.
    }
    replaced
}

/// Returns the table of the agent. A JSON string is also a valid TOML string.
fn table(args: &AddAgentArgs, id: &str) -> Result<String, CliError> {
    let mut lines = format!("[agents.{id}]\npreset = {}\n", json!(args.preset));
    if let Some(model) = &args.model {
        lines.push_str(&format!("model = {}\n", json!(model)));
    }
    if args.read_write {
        lines.push_str("access = \"read-write\"\n");
    }
    if let Some(folder) = &args.working_dir {
        let fault =
            |source| CliError::File { problem: "there is no", file: folder.clone(), source };
        let folder = folder.canonicalize().map_err(fault)?;
        lines.push_str(&format!("working_dir = {}\n", json!(folder.to_string_lossy())));
    }
    Ok(lines)
}
