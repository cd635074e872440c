//! What whoever counts and traces is told of an execution.

use chrono::{DateTime, Utc};

use super::ExecutionData;
use crate::decide::alert::Sighting;
use crate::model::code::Code;
use crate::model::execution::{Outcome, Stamp};
use crate::model::failure::Failure;
use crate::model::news::{Attempted, Ended, News, Subject, Tokens};

/// What is told once it is over.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Account {
    /// The attempt under way, and since when.
    attempt: Option<(Stamp, DateTime<Utc>)>,
    /// What the agent said that it used.
    pub(super) tokens: Tokens,
}

impl ExecutionData {
    fn subject(&self) -> Subject {
        Subject {
            execution: self.id,
            agent: self.spec.id.clone(),
            context: self.request.context.clone(),
            asked: self.request.trace.clone(),
        }
    }

    /// An attempt is in the hands of the driver.
    pub(super) fn attempt_begun(&mut self, stamp: Stamp) {
        self.account.attempt = Some((stamp, self.kit.clock.now()));
    }

    /// An attempt has ended. A second end of the same one is none.
    pub(super) fn attempt_ended(&mut self, at: Stamp, code: Option<Code>) {
        let Some((stamp, begun)) = self.account.attempt.take_if(|(stamp, _)| *stamp == at) else {
            return;
        };
        self.charge_wall_time();
        let (of, now) = (self.subject(), self.kit.clock.now());
        let exit_code = self.exit_code;
        let attempted = Attempted { of, stamp, begun, at: now, code, exit_code };
        self.kit.observer.tell(News::Attempted(attempted));
    }

    /// The execution has its outcome. What the driver says of the attempt afterwards is not waited
    /// for.
    pub(super) fn tell_end(
        &mut self,
        outcome: Outcome,
        failure: Option<&Failure>,
        at: DateTime<Utc>,
    ) {
        let code = failure.map(|failure| failure.code);
        if let Some((stamp, _)) = self.account.attempt {
            self.attempt_ended(stamp, code);
        }
        let (of, stamp, tokens) = (self.subject(), self.stamp, self.account.tokens);
        let accepted = of.execution.accepted_at().unwrap_or(at);
        self.kit.observer.tell(News::Ended(Ended {
            of,
            stamp,
            accepted,
            at,
            outcome,
            code,
            tokens,
        }));
        let agent = self.spec.id.clone();
        match outcome {
            Outcome::Completed => self.kit.lookout.see(Sighting::Ended(agent, true)),
            Outcome::Failed | Outcome::Timeout => {
                self.kit.lookout.see(Sighting::Ended(agent, false));
            }
            Outcome::Cancelled => {} // The caller's wish says nothing of the agent.
        }
    }
}
