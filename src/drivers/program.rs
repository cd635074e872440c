//! Driver of command-line programs: one process for each attempt, or one process for a conversation.

mod attempt;
pub mod backend_process;
pub mod context;
pub(in crate::drivers) mod limit_monitor;
pub mod process_driver;
mod program_environment;
mod running_process;
mod sandbox;
pub mod service_paths;
mod session_process;
mod session_resume;
mod success_checks;
pub mod version;
mod workspace;

#[cfg(test)]
mod tests;
