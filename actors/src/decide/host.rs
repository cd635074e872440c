//! Decisions about the machine: pressure, resource limits and isolation.

pub mod pressure;
pub mod resources;
pub mod sandbox;
