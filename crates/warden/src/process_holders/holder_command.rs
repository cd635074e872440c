//! Command that starts a process holder.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::inherited_state::soft_limits;

/// Command that becomes a process holder: this program, unless another one is set.
#[derive(Debug, Clone)]
pub struct HolderCommand {
    /// Program to run, with one end of a socket as its standard input.
    pub program: PathBuf,
    /// Arguments of the program.
    pub args: Vec<OsString>,
}

impl Default for HolderCommand {
    /// Returns the running program, even if its file was replaced meanwhile. Its programs get the soft limits that this
    /// process inherited.
    fn default() -> Self {
        let args = [OsString::from("warden")].into_iter().chain(soft_limits::holder_args());
        Self { program: PathBuf::from("/proc/self/exe"), args: args.collect() }
    }
}

impl HolderCommand {
    /// Returns the `algonius` program at this path, for a service that is embedded in another program.
    #[must_use]
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self { program: program.into(), ..Self::default() }
    }
}
