//! What a program told of its own end, so far.

use algonius_actors::decide::contract::Testimony;
use algonius_actors::model::code::Code;
use algonius_actors::model::failure::Failure;
use chrono::{DateTime, Utc};

use super::failing::Failing;

/// So many tools that were denied are named.
const MOST_DENIED: usize = 20;

/// What was told. The first failure is the cause of those that follow.
#[derive(Default)]
pub(super) struct Account {
    failure: Option<Failure>,
    status: Option<u16>,
    denied: Vec<String>,
    is_done: bool,
}

impl Account {
    /// It will not do it.
    pub(super) fn reject(&mut self, message: &str) {
        let clause = "the agent rejected it";
        let sentence =
            if message.is_empty() { clause.to_owned() } else { format!("{clause}: {message}") };
        self.failure.get_or_insert(Failure::new(Code::Rejected, sentence));
    }

    /// It failed; the message may be shown.
    pub(super) fn fail(&mut self, failing: &Failing, message: &str, now: DateTime<Utc>) {
        if self.failure.is_some() {
            return;
        }
        let sentence = match message {
            "" => "the agent reported a failure".to_owned(),
            message => format!("the agent reported: {message}"),
        };
        let failure = Failure::new(failing.code(), sentence);
        self.failure = Some(Failure { until: failing.until(now), ..failure });
        self.status = failing.status;
    }

    /// It failed for a reason of ours.
    pub(super) fn blame(&mut self, failure: Failure) {
        self.failure.get_or_insert(failure);
    }

    /// It was not let use a tool, whose name may be shown.
    pub(super) fn deny(&mut self, tool: String) {
        if self.denied.len() < MOST_DENIED && !self.denied.contains(&tool) {
            self.denied.push(tool);
        }
    }

    /// It says that it is done.
    pub(super) const fn close(&mut self) {
        self.is_done = true;
    }

    /// What it all says, where a word for the end is due or not.
    pub(super) fn testimony(self, is_due: bool) -> Testimony {
        let Self { failure, status, denied, is_done } = self;
        Testimony { failure, status, is_open: is_due && !is_done, denied }
    }
}
