//! Decisions about the machine: complaints about refused accesses, pressure, rejection of work, resource limits and
//! isolation.

pub mod denied_access;
pub mod pressure;
pub mod refusal;
pub mod resources;
pub mod sandbox;
