//! Real programs, driven to their ends. Every wait has a deadline.

mod answers;
mod dialects;
mod endings;
mod events;
mod floods;
mod guards;
mod handed;
mod ledger;
mod limits;
mod named;
mod prompts;
mod proofs;
mod story;
mod thread;
mod workplace;
mod world;
