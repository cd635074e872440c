//! Real programs, driven to their ends. Every wait has a deadline.

mod answers;
mod endings;
mod events;
mod guards;
mod handed;
mod ledger;
mod named;
mod workplace;
mod world;
