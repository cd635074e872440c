//! The inside of algonius-supervisor: nouns, pure decisions, ports and the supervision tree.
//!
//! Nothing in this crate opens a socket, a file, a database or a process, and nothing in it reads
//! the wall clock: the world is reached through [`ports`] alone. So every story of the tree can be
//! told in virtual time, in milliseconds.
//!
//! - [`model`]: nouns. Data only.
//! - [`decide`]: verbs. Pure functions `(state, event) -> (state, effects)`.
//! - [`ports`]: what the tree needs from the world, as traits.
#![forbid(unsafe_code)]

pub mod decide;
pub mod model;
pub mod ports;
pub mod report;
