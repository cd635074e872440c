//! algonius-supervisor: serves any command-line AI agent as a supervised, durable A2A agent.

pub mod drive;
pub mod template;
pub mod warden;
