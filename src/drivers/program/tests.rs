//! Tests with real programs that run to their ends. Every wait has a deadline.

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
mod thread;
mod workplace;
mod world;

/// Entry point of a process holder, not a test.
#[test]
fn process_holder() {
    algonius_warden::testing::hold_if_started_as_holder();
}
