//! The inside of algonius-supervisor: nouns, pure decisions, ports and the supervision tree.
//!
//! Nothing in this crate opens a socket, a file, a database or a process, and nothing in it reads
//! the wall clock: the world is reached through [`ports`] alone. So every story of the tree can be
//! told in virtual time, in milliseconds.
//!
//! - [`model`]: nouns. Data only.
//! - [`decide`]: verbs. Pure functions `(state, event) -> (state, effects)`.
//! - [`ports`]: what the tree needs from the world, as traits.
//! - [`root`], [`gateway`], [`monitor`], [`retention`], [`scheduler`], [`agent`], [`execution`]: the actors,
//!   which only perform effects.
//! - `testing` (feature): a world of scripted ports in virtual time, for tests.
//! - [`tree`] and [`door`]: how the edge starts the tree, and how it enters.
#![forbid(unsafe_code)]

pub mod agent;
mod alarm;
pub mod circuits;
pub mod decide;
pub mod door;
mod echo;
pub mod execution;
pub mod follow;
pub mod gateway;
mod history;
pub mod kit;
pub mod lookout;
pub mod model;
pub mod monitor;
mod pen;
pub mod pens;
pub mod ports;
pub mod ready;
mod recover;
pub mod report;
pub mod retention;
pub mod root;
pub mod scheduler;
pub mod schedules;
#[cfg(feature = "testing")]
pub mod testing;
pub mod tree;
pub mod turns;
