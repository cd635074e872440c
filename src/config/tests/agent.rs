//! Tests of the keys of agents.

use super::*;

mod agents;
mod cognitive;
mod consent;
mod file_delivery;
mod overrides;
mod remote;
mod resources;
mod sandbox;
mod stdio_protocol;
mod success;
mod team;
