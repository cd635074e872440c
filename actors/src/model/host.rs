//! Machine of the service: its resources and their limits, its capabilities, and the sandbox of an agent on it.

pub mod boundary;
pub mod host_capabilities;
pub mod host_fault;
pub mod pressure;
pub mod resources;
pub mod sandbox;
pub mod storage_stats;
