//! Keys that the programs of agents and backend programs have in common: the command, the environment, the sandbox,
//! the resource limits and the working folder.

pub(crate) mod command;
pub(crate) mod environment;
pub(crate) mod resources;
pub(crate) mod sandbox;
pub(crate) mod search;
pub(crate) mod working_dir;
