//! Settings of process holders.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;

use super::holder_command::HolderCommand;
use crate::confinement::cgroup::ControlGroups;
use crate::output::memory_account::OutputMemory;

/// Settings that all process holders of a service share.
#[derive(Debug, Clone)]
pub struct ProcessHolderOptions {
    /// Command that becomes a process holder.
    pub command: HolderCommand,
    /// Folder in which the next process instance of the service finds the process holders.
    pub runtime_dir: PathBuf,
    /// Id of the data directory of the service.
    pub data_dir_id: Uuid,
    /// Time for which a process holder waits for the next process instance of the service.
    pub reattach_grace: Duration,
    /// Control groups of the programs, if there are any.
    pub control_groups: Option<Arc<ControlGroups>>,
    /// Memory for the output of programs.
    pub output_memory: OutputMemory,
}
