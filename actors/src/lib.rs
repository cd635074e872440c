//! Core of algonius-supervisor: domain model, pure logic, ports and the supervision tree.
//!
//! This crate opens no socket, file, database or process, and does not read the wall clock: it uses the outside world
//! through [`ports`] alone. Every scenario of the tree can therefore be tested in virtual time, within milliseconds.
//!
//! - [`model`]: domain model. Data only.
//! - [`decide`]: pure functions `(state, event) -> (state, effects)`.
//! - [`ports`]: interfaces to the outside world, as traits.
//! - [`root`], [`gateway`], [`maintenance`], [`scheduler`], [`agent`], [`execution`]: the actors, which only perform
//!   effects. [`services`] is the state that they share.
//! - [`driver`]: the work of an attempt, and its reports. [`runs`]: the drivers of teams and of cognitive agents.
//! - `testing` (feature): fake ports in virtual time, for tests.
//! - [`api`]: the start of the tree, and its handles for the edge.
#![forbid(unsafe_code)]

pub mod agent;
pub mod api;
pub mod decide;
pub mod driver;
pub mod execution;
pub mod gateway;
pub mod maintenance;
pub mod model;
pub mod ports;
pub mod root;
pub mod runs;
pub mod scheduler;
pub mod services;
#[cfg(feature = "testing")]
pub mod testing;
