//! Processes of the machine: facts from `/proc`, labels, signals, resource usage, and the end of leftovers.

pub(crate) mod kill_leftovers;
pub(crate) mod lost_processes;
pub(crate) mod process_label;
pub(crate) mod process_scan;
pub(crate) mod procfs;
pub(crate) mod signal;
pub(crate) mod usage;
