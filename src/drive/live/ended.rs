//! How a run ended, and what is told of that.

use std::io;

use algonius_actors::model::code::Code;
use algonius_actors::model::failure::Failure;
use algonius_actors::model::session::SessionId;
use algonius_actors::report::Reporter;

use super::super::thread::Aftermath;

/// How a run ended.
pub(in crate::drive) struct Ended {
    /// Whether it succeeded.
    pub(in crate::drive) verdict: Result<(), Failure>,
    /// The exit code, where there was one.
    pub(in crate::drive) exit_code: Option<i32>,
    /// Whether it ended with a question.
    pub(in crate::drive) asked: bool,
    /// What it says of its session.
    pub(in crate::drive) aftermath: Aftermath,
}

impl Ended {
    /// Whether it failed because its program did not know the session that it was to resume.
    pub(in crate::drive) fn is_lost(&self) -> bool {
        self.aftermath.is_lost && self.verdict.is_err()
    }

    /// Whether it went well, with the id of the session that its program wrote.
    pub(in crate::drive) fn remembered(&mut self) -> Option<Option<SessionId>> {
        self.verdict.is_ok().then(|| self.aftermath.named.take())
    }

    /// Tells the execution. A question counts only where nothing went wrong.
    pub(in crate::drive) fn tell(self, report: Reporter) {
        if self.asked && self.verdict.is_ok() {
            report.asked(self.exit_code);
        } else {
            report.ended(self.verdict, self.exit_code);
        }
    }

    pub(super) fn unexplained(kind: io::ErrorKind) -> Self {
        let failure = match kind {
            io::ErrorKind::ConnectionAborted => {
                Failure::new(Code::Interrupted, "the process that held it was lost")
            }
            _ => Failure::new(Code::Internal, "how the agent's process ended is not known"),
        };
        Self {
            verdict: Err(failure),
            exit_code: None,
            asked: false,
            aftermath: Aftermath::default(),
        }
    }
}
