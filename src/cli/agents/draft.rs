//! The table of an agent that is added, and the file that it is added to: what stands there stays as it
//! is, and the whole is written at once or not at all.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::cli::args::AddAgent;
use crate::cli::fault::CliError;

/// A configuration, and what is to be added to it.
pub(super) struct Draft {
    /// The file, without links.
    file: PathBuf,
    /// What stands there.
    before: String,
    /// What is added.
    table: String,
}

impl Draft {
    /// Reads the file, and words the table of the agent of this id.
    pub(super) fn new(wanted: &AddAgent, id: &str) -> Result<Self, CliError> {
        let fault = |source| CliError::File {
            what: "cannot read (`algonius init` makes one)",
            file: wanted.config.clone(),
            source,
        };
        let file = wanted.config.canonicalize().map_err(fault)?;
        let before = fs::read_to_string(&file).map_err(fault)?;
        Ok(Self { file, before, table: table(wanted, id)? })
    }

    /// The file.
    pub(super) fn file(&self) -> &Path {
        &self.file
    }

    /// What stands there.
    pub(super) fn before(&self) -> &str {
        &self.before
    }

    /// What is added.
    pub(super) fn table(&self) -> &str {
        &self.table
    }

    /// The whole with it.
    pub(super) fn after(&self) -> String {
        let gap = match self.before.as_str() {
            "" => "",
            before if before.ends_with("\n\n") => "",
            before if before.ends_with('\n') => "\n",
            _ => "\n\n",
        };
        format!("{}{gap}{}", self.before, self.table)
    }

    /// The whole with it switched off, to look at it where the machine lacks something.
    pub(super) fn switched_off(&self) -> String {
        format!("{}enabled = false\n", self.after())
    }

    /// Writes the whole.
    pub(super) fn write(&self) -> Result<(), CliError> {
        self.put(&self.after())
    }

    /// Writes what stood there.
    pub(super) fn take_back(&self) -> Result<(), CliError> {
        self.put(&self.before)
    }

    /// At once or not at all: the service may read at any time.
    fn put(&self, text: &str) -> Result<(), CliError> {
        let fault =
            |source| CliError::File { what: "cannot write", file: self.file.clone(), source };
        replace(&self.file, text).map_err(fault)
    }
}

fn replace(file: &Path, text: &str) -> io::Result<()> {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let fresh = file.with_file_name(format!(".{name}.{}", std::process::id()));
    let written = File::create_new(&fresh).and_then(|mut new| {
        new.set_permissions(fs::metadata(file)?.permissions())?;
        new.write_all(text.as_bytes())?;
        new.sync_all()
    });
    let replaced = written.and_then(|()| fs::rename(&fresh, file));
    if replaced.is_err() {
        _ = fs::remove_file(&fresh); // The first fault is the one to tell.
    }
    replaced
}

/// The agent's table. What is a text in JSON is one in TOML.
fn table(wanted: &AddAgent, id: &str) -> Result<String, CliError> {
    let mut lines = format!("[agents.{id}]\npreset = {}\n", json!(wanted.preset));
    if let Some(model) = &wanted.model {
        lines.push_str(&format!("model = {}\n", json!(model)));
    }
    if wanted.read_write {
        lines.push_str("access = \"read-write\"\n");
    }
    if let Some(folder) = &wanted.working_dir {
        let fault = |source| CliError::File { what: "there is no", file: folder.clone(), source };
        let folder = folder.canonicalize().map_err(fault)?;
        lines.push_str(&format!("working_dir = {}\n", json!(folder.to_string_lossy())));
    }
    Ok(lines)
}
