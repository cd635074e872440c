//! Faults of a configuration: complaints about positions, and suggestions of corrections.

mod builder;
mod fault;
mod suggestion;

pub(crate) use builder::{DiagnosticBuilder, new_diagnostic};
pub(crate) use fault::sort_by_position;
pub use fault::{ConfigFault, ConfigFaults, FaultCode, Severity};
pub use suggestion::nearest_word;
