//! Reports of a driver about its attempt, and the only path of its text to the ledger.
//!
//! Text is redacted here, before it is stored: a driver passes raw bytes and receives the range of their redacted form.

mod attempt_context;
mod budget_meter;
mod budget_usage;
mod liveness;
mod output_writer;
mod pipelined_writes;
mod redacted_tail;
mod replay_filter;
mod step_records;
mod stored_output;
mod usage_records;
mod write_buffer;

use std::sync::Arc;

use chrono::{DateTime, Utc};
use tokio::sync::watch;

pub use self::attempt_context::{AttemptContext, OutputSettings};
pub use self::budget_meter::BudgetMeter;
pub use self::budget_usage::BudgetUsageCache;
pub use self::liveness::Liveness;
pub use self::output_writer::{OutputWriter, split_into_chunks};
pub use self::redacted_tail::RedactedTail;
pub use self::replay_filter::ReplayFilter;
pub use self::step_records::StepTextEnd;
pub(crate) use self::stored_output::{AnswerText, StoredOutputReader};
pub(crate) use self::usage_records::UsageCounters;
pub use self::write_buffer::WriteBuffer;

use crate::decide::budget::cumulative_usage::CounterValues;
use crate::model::agent::budget::Charge;
use crate::model::code::Code;
use crate::model::execution::event::{EventKind, TextChannel};
use crate::model::execution::followers::Followers;
use crate::model::execution::progress::RawAnswer;
use crate::model::execution::{AttemptId, Interruption};
use crate::model::failure::Failure;
use crate::model::interaction::{Question, WireId};
use crate::model::observation::telemetry_events::TokenCounts;
use crate::model::session::SessionId;
use crate::ports::ledger::{LedgerError, WriteBatch};

/// Message to the execution's actor. A message contains text only if the text is short and the last one.
#[derive(Debug, Clone, PartialEq)]
pub enum Report {
    /// The work runs.
    Started {
        /// Id of the attempt.
        attempt_id: AttemptId,
        /// Process id, if there is a process.
        pid: Option<u32>,
        /// Start event, if it is not recorded yet.
        start_event: Option<(DateTime<Utc>, EventKind)>,
    },
    /// The work has ended and its output is complete.
    Ended {
        /// Id of the attempt.
        attempt_id: AttemptId,
        /// Result of the attempt.
        result: Result<(), Failure>,
        /// Exit code of the process, if there was one.
        exit_code: Option<i32>,
        /// Last output, which is written together with the end.
        batch: WriteBatch,
    },
    /// The work has ended because it needs input of the caller.
    InputRequired {
        /// Id of the attempt.
        attempt_id: AttemptId,
        /// Kind of the required input.
        required_input: Interruption,
        /// Exit code of the process, if there was one.
        exit_code: Option<i32>,
        /// Last output.
        batch: WriteBatch,
    },
    /// The work has suspended itself, because the service stops. It continues after the next start.
    Suspended {
        /// Id of the attempt.
        attempt_id: AttemptId,
        /// Last records.
        batch: WriteBatch,
    },
    /// Something happened to questions of the agent, or of the members of a team.
    Questions {
        /// Id of the attempt.
        attempt_id: AttemptId,
        /// Event of the questions.
        report: QuestionReport,
    },
    /// The work waits until the ledger records its last step, or it no longer waits.
    LedgerWait {
        /// Id of the attempt.
        attempt_id: AttemptId,
        /// True if the work waits.
        awaits_ledger: bool,
    },
    /// The agent reported its usage.
    UsageReported {
        /// Id of the attempt.
        attempt_id: AttemptId,
        /// Tokens since the previous report.
        tokens: TokenCounts,
        /// Budget amounts since the previous report.
        charge: Charge,
    },
}

/// Report about questions to people.
#[derive(Debug, Clone, PartialEq)]
pub enum QuestionReport {
    /// The agent opened a question to a person, and its work waits for the answer. The question is raw.
    Opened {
        /// Id of the request in the agent's protocol.
        wire_id: WireId,
        /// Question of the agent.
        question: Box<Question>,
    },
    /// The agent withdrew its question.
    Withdrawn {
        /// Id of the request in the agent's protocol.
        wire_id: WireId,
    },
    /// The answer to a question was written to the agent.
    AnswerDelivered {
        /// Id of the request in the agent's protocol.
        wire_id: WireId,
    },
    /// Questions of the members of a team were opened or closed. They are recorded with the members.
    MemberQuestions {
        /// Number of the open questions.
        count: u32,
    },
}

/// Reporter of a driver to its execution. A reporter that is dropped without a report reports an internal failure, so
/// that a driver that panics never leaves an execution without an end.
pub struct Reporter {
    context: AttemptContext,
    send: Box<dyn Fn(Report) + Send + Sync>,
    /// Usage that the agent has reported in the attempt.
    reported_usage: watch::Sender<Charge>,
    is_closed: bool,
    session_id: watch::Sender<Option<SessionId>>,
    /// Number of requests to its model that the program reported as failed.
    failed_requests: watch::Sender<u32>,
    /// Counters since the start of the program's session, if it counts per session.
    session_usage_counters: watch::Sender<CounterValues>,
}

impl Reporter {
    /// Creates the reporter of one attempt; the callback must not block.
    #[must_use]
    pub fn new(context: AttemptContext, send: impl Fn(Report) + Send + Sync + 'static) -> Self {
        // A replayed attempt reports its usage from the start again, so the recorded part must not be charged twice.
        let reported_usage = watch::Sender::new(context.replay_filter.recorded_usage());
        let (session_id_sender, session_usage_counters) =
            (watch::Sender::default(), watch::Sender::default());
        let failed_requests = watch::Sender::default();
        Self {
            context,
            send: Box::new(send),
            reported_usage,
            is_closed: false,
            session_id: session_id_sender,
            session_usage_counters,
            failed_requests,
        }
    }

    /// Returns the wall time.
    #[must_use]
    pub fn now(&self) -> DateTime<Utc> {
        self.context.clock.now()
    }

    /// Redacts secrets in a sentence that will be shown.
    #[must_use]
    pub fn redact(&self, text: &str) -> String {
        self.context.redactor.redact(text).into_owned()
    }

    /// Creates a buffer for the last `max_bytes` bytes of a text.
    #[must_use]
    pub fn new_redacted_tail(&self, max_bytes: usize) -> RedactedTail {
        RedactedTail::new(Arc::clone(&self.context.redactor), max_bytes)
    }

    /// Reports that the work runs, and records its process.
    pub fn report_start(&self, pid: Option<u32>) {
        self.context.liveness.record_activity();
        let start_event = pid
            .and_then(|pid| self.context.replay_filter.filter(EventKind::ProcessStarted { pid }));
        let start_event = start_event.map(|event| (self.now(), event));
        (self.send)(Report::Started { attempt_id: self.context.attempt_id, pid, start_event });
    }

    /// Marks the agent as active although it reports nothing: the service itself is not reading its output now.
    pub fn mark_active(&self) {
        self.context.liveness.record_activity();
    }

    /// Reports a question of the agent. The answer arrives at
    /// [`AttemptLease::send_answer`](crate::driver::AttemptLease::send_answer).
    pub fn report_question(&self, wire_id: WireId, question: Question) {
        self.context.liveness.record_activity();
        self.report_on_questions(QuestionReport::Opened { wire_id, question: Box::new(question) });
    }

    /// Reports that the agent withdrew its question.
    pub fn report_withdrawal(&self, wire_id: WireId) {
        self.report_on_questions(QuestionReport::Withdrawn { wire_id });
    }

    /// Reports that the answer to a question was written to the agent.
    pub fn report_answer_delivery(&self, wire_id: WireId) {
        self.context.liveness.record_activity();
        self.report_on_questions(QuestionReport::AnswerDelivered { wire_id });
    }

    /// Reports the number of open questions of the members of a team.
    pub(crate) fn report_member_questions(&self, count: u32) {
        self.report_on_questions(QuestionReport::MemberQuestions { count });
    }

    fn report_on_questions(&self, report: QuestionReport) {
        (self.send)(Report::Questions { attempt_id: self.context.attempt_id, report });
    }

    /// Returns the followers of the execution.
    #[must_use]
    pub fn followers(&self) -> Followers {
        self.context.progress.borrow().followers.clone()
    }

    /// Opens one text channel. Each channel is opened at most once in an attempt.
    #[must_use]
    pub fn open_output(&self, channel: TextChannel) -> OutputWriter {
        OutputWriter::open(self.context.clone(), channel)
    }

    /// Deletes the text that an earlier process wrote for the attempt, so that it can be written again from its start.
    /// Call this only when all of it can certainly be read again.
    ///
    /// # Errors
    /// Returns an error if the ledger did not commit.
    pub async fn delete_output(&self) -> Result<(), LedgerError> {
        self.context.ledger.delete_output(self.context.execution_id, self.context.attempt_id).await
    }

    /// Records an event of the attempt.
    ///
    /// # Errors
    /// Returns an error if the ledger did not commit the event.
    pub async fn record_event(&self, event: EventKind) -> Result<(), LedgerError> {
        match event {
            EventKind::UsageReported { counters, cumulative } => {
                self.record_usage(counters, cumulative).await
            }
            event => self.context.record_event(event).await,
        }
    }

    /// Records an event together with the next one, at the latest with the end of the attempt.
    pub fn record_later(&self, event: EventKind) {
        if let Some(event) = self.context.replay_filter.filter(event) {
            let events = vec![(self.now(), event)];
            self.context.write_buffer.add(WriteBatch { chunks: Vec::new(), events });
        }
    }

    /// Records the pending records in one commit. Returns true if this attempt may continue; false if another actor has
    /// the execution now. After an error, the records are still pending.
    ///
    /// # Errors
    /// Returns an error if the ledger did not commit them.
    pub async fn flush_unless_superseded(&self) -> Result<bool, LedgerError> {
        if self.context.write_buffer.is_empty() {
            return Ok(true);
        }
        self.context.write_with_pending(WriteBatch::default()).await
    }

    /// Sets the counters of the program's session: later counters are compared with them.
    pub fn set_session_usage_counters(&self, counters: CounterValues) {
        self.session_usage_counters.send_replace(counters);
    }

    /// Returns the counters since the start of the program's session.
    #[must_use]
    pub fn session_usage_counters(&self) -> CounterValues {
        self.session_usage_counters.borrow().clone()
    }

    /// Stores the program's raw session id until the attempt has ended. The visible part of the id is recorded as an
    /// event. Returns false if it is no id that can be stored.
    #[must_use]
    pub fn try_set_session_id(&self, id: &str) -> bool {
        SessionId::new(id).map(|id| self.session_id.send_replace(Some(id))).is_some()
    }

    /// Returns the counter of requests to its model that the program reports as failed.
    #[must_use]
    pub const fn failed_request_counter(&self) -> &watch::Sender<u32> {
        &self.failed_requests
    }

    /// Counts requests to its model that the program reports as failed.
    pub fn add_failed_requests(&self, count: u32) {
        self.failed_requests.send_modify(|failed| *failed = failed.saturating_add(count));
    }

    /// Returns the latest stored session id.
    #[must_use]
    pub fn session_id(&self) -> Option<SessionId> {
        self.session_id.borrow().clone()
    }

    /// Publishes the raw text of the answer to waiting callers, if the agent is configured so. The redacted text is
    /// already recorded.
    pub fn publish_raw_answer(&self, text: &str) {
        if self.context.output_settings.publishes_raw_answer {
            let raw = RawAnswer { attempt_id: self.context.attempt_id, text: text.into() };
            self.context.progress.send_modify(|progress| progress.raw_answer = Some(raw));
        }
    }

    /// Stops reporting: another reporter continues for this work.
    pub fn close_without_report(mut self) {
        self.is_closed = true;
    }

    /// Reports the end of the work. Its output must be written by now, or be pending here.
    pub fn report_end(mut self, result: Result<(), Failure>, exit_code: Option<i32>) {
        self.is_closed = true;
        self.send_end_report(result, exit_code);
    }

    /// Reports that the work has ended because it needs input of the caller.
    pub fn report_input_required(mut self, required_input: Interruption, exit_code: Option<i32>) {
        self.is_closed = true;
        let (attempt_id, batch) = (self.context.attempt_id, self.context.write_buffer.take());
        (self.send)(Report::InputRequired { attempt_id, required_input, exit_code, batch });
    }

    /// Reports that the work has suspended itself, because the service stops. The driver must be able to
    /// [take it over](crate::driver::Driver::take_over_held_work) and resume it from what is recorded.
    pub fn report_suspension(mut self) {
        self.is_closed = true;
        let (attempt_id, batch) = (self.context.attempt_id, self.context.write_buffer.take());
        (self.send)(Report::Suspended { attempt_id, batch });
    }

    fn send_end_report(&self, result: Result<(), Failure>, exit_code: Option<i32>) {
        // The last failed request was not retried.
        let own_retries = self.failed_requests.borrow().saturating_sub(1);
        let result = result.map_err(|failure| Failure { own_retries, ..failure });
        let (attempt_id, batch) = (self.context.attempt_id, self.context.write_buffer.take());
        (self.send)(Report::Ended { attempt_id, result, exit_code, batch });
    }
}

/// Reports that the work cannot continue until the ledger has recorded its last step, or that it continues. Callers who
/// wait for its end learn of it.
pub(crate) fn report_ledger_wait(reporter: &Reporter, awaits_ledger: bool) {
    let attempt_id = reporter.context.attempt_id;
    (reporter.send)(Report::LedgerWait { attempt_id, awaits_ledger });
}

impl Drop for Reporter {
    fn drop(&mut self) {
        if !self.is_closed {
            let result = Err(Failure::new(Code::Internal, "the driver ended without a report"));
            self.send_end_report(result, None);
        }
    }
}
