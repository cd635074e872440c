//! Ends of attempts and programs, and their reports to the execution.

use std::io;

use algonius_actors::driver::report::Reporter;
use algonius_actors::model::code::Code;
use algonius_actors::model::execution::Interruption;
use algonius_actors::model::failure::Failure;
use algonius_actors::model::program::ProcessExit;
use algonius_actors::model::session::SessionId;

use crate::drivers::program::session_resume::SessionUpdate;

/// Report about the exit of a program.
pub(super) struct ExitReport {
    pub(super) exit: ProcessExit,
    /// Failure for which the service ended the program, if the program caused it.
    pub(super) fault: Option<Failure>,
    /// True if the program was ended because too many requests to its model failed.
    pub(super) has_exhausted_retries: bool,
}

impl ExitReport {
    /// Returns the report about a program that exited by itself.
    pub(super) const fn from_exit(exit: ProcessExit) -> Self {
        Self { exit, fault: None, has_exhausted_retries: false }
    }
}

/// End of an attempt.
pub(in crate::drivers) struct AttemptEnd {
    /// Outcome of the run: success or the failure.
    pub(in crate::drivers) result: Result<(), Failure>,
    /// Exit code, if there was one.
    pub(in crate::drivers) exit_code: Option<i32>,
    /// Input that the program needs from its caller.
    pub(in crate::drivers) required_input: Option<Interruption>,
    /// Session update from the program's output.
    pub(in crate::drivers) session_update: SessionUpdate,
}

impl AttemptEnd {
    /// Returns true if the run failed because its program did not know the session to resume.
    pub(in crate::drivers) fn is_session_lost(&self) -> bool {
        self.session_update.is_lost && self.result.is_err()
    }

    /// Returns the session id that the program wrote if the run succeeded, or `None` if it failed.
    pub(in crate::drivers) fn take_session_id_of_success(&mut self) -> Option<Option<SessionId>> {
        self.result.is_ok().then(|| self.session_update.reported_id.take())
    }

    /// Reports the end to the execution. A question counts only after a success.
    pub(in crate::drivers) fn report(self, reporter: Reporter) {
        match self.required_input {
            Some(required_input) if self.result.is_ok() => {
                reporter.report_input_required(required_input, self.exit_code);
            }
            _ => reporter.report_end(self.result, self.exit_code),
        }
    }

    pub(super) fn from_exit_error(kind: io::ErrorKind) -> Self {
        let failure = match kind {
            io::ErrorKind::ConnectionAborted => {
                Failure::new(Code::Interrupted, "its process holder was lost")
            }
            _ => Failure::new(Code::Internal, "the exit status of the agent's process is unknown"),
        };
        Self {
            result: Err(failure),
            exit_code: None,
            required_input: None,
            session_update: SessionUpdate::default(),
        }
    }
}
