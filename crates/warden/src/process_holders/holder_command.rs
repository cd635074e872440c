//! Command that starts a process holder.

use std::ffi::OsString;
use std::path::PathBuf;

/// Command that becomes a process holder: this program, unless another one is set.
#[derive(Debug, Clone)]
pub struct HolderCommand {
    /// Program to run, with one end of a socket as its standard input.
    pub program: PathBuf,
    /// Arguments of the program.
    pub args: Vec<OsString>,
}

impl Default for HolderCommand {
    /// Returns the running program, even if its file was replaced meanwhile.
    fn default() -> Self {
        Self { program: PathBuf::from("/proc/self/exe"), args: vec!["warden".into()] }
    }
}

impl HolderCommand {
    /// Returns the `algonius` program at this path, for a service that is embedded in another program.
    #[must_use]
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self { program: program.into(), ..Self::default() }
    }
}
