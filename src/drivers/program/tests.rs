//! Tests with real programs that run to their ends. Every wait has a deadline.

mod answers;
mod dialects;
mod endings;
mod events;
mod fixture;
mod input_files;
mod ledger;
mod limits;
mod long_output;
mod named_files;
mod prompts;
mod refused_starts;
mod session_resume;
mod success_checks;
mod workspace;

/// Entry point of a process holder, not a test.
#[test]
fn process_holder() {
    algonius_warden::testing::serve_if_started_as_holder();
}
