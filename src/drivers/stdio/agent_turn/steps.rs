//! Steps of the protocol as events of the attempt, and the end of a turn.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use algonius_actors::decide::budget::cumulative_usage::CounterValues;
use algonius_actors::driver::report::Reporter;
use algonius_actors::model::code::Code;
use algonius_actors::model::execution::event::{FileChange, ToolStage};
use algonius_actors::model::failure::Failure;
use algonius_actors::model::interaction::{AnswerValue, WireId};
use algonius_actors::ports::ledger::LedgerError;
use algonius_protocols::{
    AgentRequest, AgentRequestKind, AnsweredCall, Command, OpenFault, ProtocolStep, SessionStart,
    TextRole, TokenUsage, ToolCall, ToolStatus, TurnOutcome,
};
use serde_json::{Map, Value};
use tokio::time::{Instant, sleep_until};

use super::open_requests::tool_name;
use super::{AgentTurn, SESSION_KEY};
use crate::drivers::adapters::event_line::ProgramEvent;
use crate::drivers::adapters::event_reader::EventReader;

const SESSION_UNKNOWN: &str = "the session of the conversation is lost: the agent does not know it";

/// State of a turn that outlives a step.
pub(super) struct TurnState {
    /// Longest time until the session is open.
    open_timeout: Duration,
    /// Time at which a session that is not open fails the turn; `None` once it is open.
    open_deadline: Option<Instant>,
    answer: AnswerProgress,
    /// Stages of tool calls that were shown.
    reported_stages: HashMap<String, ToolStage>,
    reported_changes: HashSet<String>,
    /// Number of tool calls that were denied.
    denied_calls: usize,
    is_cancelled: bool,
    is_over: bool,
    failure: Option<Failure>,
}

impl TurnState {
    /// Returns the state of a turn whose session must be open after this time.
    pub(super) fn new(open_timeout: Duration) -> Self {
        Self {
            open_timeout,
            open_deadline: Some(Instant::now() + open_timeout),
            answer: AnswerProgress::default(),
            reported_stages: HashMap::new(),
            reported_changes: HashSet::new(),
            denied_calls: 0,
            is_cancelled: false,
            is_over: false,
            failure: None,
        }
    }

    /// Waits until the session should be open; forever if it is open.
    pub(super) async fn wait_until_opening_is_late(&self) {
        match self.open_deadline {
            Some(deadline) => sleep_until(deadline).await,
            None => std::future::pending().await,
        }
    }

    /// Fails a turn whose session was not opened in time.
    pub(super) fn fail_opening(&mut self, events: &mut EventReader<'_>) {
        let seconds = self.open_timeout.as_secs_f64();
        let message = format!("the agent opened no session within {seconds} s");
        self.fail(Failure::new(Code::SessionNotOpened, message));
        self.fail_unless_over(events);
    }

    /// Records that the turn is cancelled by order.
    pub(super) const fn record_cancel(&mut self) {
        self.is_cancelled = true;
    }

    /// Fails the turn, unless it has failed before.
    pub(super) fn fail(&mut self, failure: Failure) {
        self.failure.get_or_insert(failure);
    }

    /// Fails the attempt if its turn has not ended: for the cause that cancelled the turn, if there is one.
    pub(super) fn fail_unless_over(&mut self, events: &mut EventReader<'_>) {
        if !self.is_over {
            let failure = self.failure.take();
            events.fail_with(failure.unwrap_or_else(|| {
                Failure::new(Code::EndedEarly, "the agent ended before its turn was over")
            }));
        }
    }

    /// Returns the failure of a turn that ended in this way; `None` for a success.
    fn failure_of(&mut self, end: TurnOutcome) -> Option<Failure> {
        let failure = |code, message: &str| Some(Failure::new(code, message));
        if let Some(failure) = self.failure.take() {
            return Some(failure);
        }
        match end {
            TurnOutcome::EndTurn if !self.answer.has_text && self.denied_calls > 0 => {
                failure(Code::Denied, "the agent was denied a tool, and gave no answer")
            }
            TurnOutcome::EndTurn => None,
            TurnOutcome::Cancelled if self.is_cancelled => {
                failure(Code::Cancelled, "the turn was cancelled")
            }
            TurnOutcome::Cancelled if self.denied_calls > 0 => {
                failure(Code::Denied, "the agent ended its turn because it was denied a tool")
            }
            TurnOutcome::Cancelled => failure(Code::EndedEarly, "the agent cancelled its turn"),
            TurnOutcome::MaxTokens => {
                failure(Code::EndedEarly, "the model reached its limit of tokens")
            }
            TurnOutcome::MaxTurnRequests => {
                failure(Code::EndedEarly, "the agent reached its limit of requests in a turn")
            }
            TurnOutcome::Refusal => failure(Code::Rejected, "the agent refused to answer"),
            TurnOutcome::Failed { message, is_authentication, .. } => {
                let code = if is_authentication { Code::NotAuthenticated } else { Code::Reported };
                Some(Failure::new(code, message))
            }
            TurnOutcome::Lost => {
                failure(Code::EndedEarly, "the agent ended before its turn was over")
            }
        }
    }

    /// Shows the stage of a tool call, once.
    async fn report_tool_call(
        &mut self,
        call: &ToolCall,
        events: &mut EventReader<'_>,
    ) -> Result<(), LedgerError> {
        self.answer.is_thinking = false;
        let stage = match call.status {
            ToolStatus::Pending | ToolStatus::InProgress => ToolStage::Started,
            ToolStatus::Completed => ToolStage::Completed,
            ToolStatus::Failed => ToolStage::Failed,
        };
        if self.reported_stages.insert(call.id.clone(), stage) == Some(stage) {
            return Ok(());
        }
        let diffs = call.diffs.iter().filter(|_| stage == ToolStage::Completed);
        for diff in diffs {
            if !self.reported_changes.insert(format!("{} {}", call.id, diff.path)) {
                continue;
            }
            let is_new = diff.old.is_none();
            let change = if is_new { FileChange::Created } else { FileChange::Modified };
            let path = diff.path.clone();
            events.handle_event(ProgramEvent::FileChange { path, change }).await?;
        }
        let (id, tool) = (Some(call.id.clone()), tool_name(call));
        events.handle_event(ProgramEvent::ToolCall { id, tool, stage }).await
    }
}

/// Text of an agent as far as it was shown.
#[derive(Default)]
struct AnswerProgress {
    /// Message of the agent to which the latest text belongs.
    message_id: Option<String>,
    has_text: bool,
    is_thinking: bool,
}

impl AnswerProgress {
    /// Shows a piece of text.
    async fn report_text(
        &mut self,
        (message_id, role): (Option<String>, TextRole),
        text: String,
        events: &mut EventReader<'_>,
    ) -> Result<(), LedgerError> {
        if role == TextRole::Thought {
            let is_first = !std::mem::replace(&mut self.is_thinking, true);
            return if is_first {
                events.handle_event(ProgramEvent::Thinking {}).await
            } else {
                Ok(())
            };
        }
        self.is_thinking = false;
        if self.has_text && message_id != self.message_id {
            events.handle_event(ProgramEvent::Superseded).await?;
        }
        (self.message_id, self.has_text) = (message_id, true);
        events.handle_event(ProgramEvent::Draft { text }).await
    }
}

impl AgentTurn {
    /// Performs steps. Returns true if the turn is over.
    pub(super) async fn perform(
        &mut self,
        steps: Vec<ProtocolStep>,
        (events, reporter): (&mut EventReader<'_>, &Reporter),
    ) -> Result<bool, LedgerError> {
        let mut steps = std::collections::VecDeque::from(steps);
        while let Some(step) = steps.pop_front() {
            let caused_steps = self.perform_step(step, (events, reporter)).await?;
            if self.plan.tool_call_monitor.is_overdue() {
                break; // An answer that was not written is not delivered.
            }
            // What a step causes precedes the steps after it, as in the first run.
            caused_steps.into_iter().rev().for_each(|step| steps.push_front(step));
        }
        Ok(self.state.is_over)
    }

    async fn perform_step(
        &mut self,
        step: ProtocolStep,
        (events, reporter): (&mut EventReader<'_>, &Reporter),
    ) -> Result<Vec<ProtocolStep>, LedgerError> {
        match step {
            ProtocolStep::Send(line) => self.send(&line),
            ProtocolStep::Opened { id, .. } => {
                self.state.open_deadline = None;
                record_session(id, events, reporter).await?;
                return Ok(self.send_prompt());
            }
            ProtocolStep::Identified { id, .. } => record_session(id, events, reporter).await?,
            ProtocolStep::OpenFailed { fault: OpenFault::UnknownSession, .. }
                if self.plan.resumed_session.take().is_some() =>
            {
                events.record_lost_session(SESSION_UNKNOWN).await?;
                reporter.set_session_counters(CounterValues::default());
                return Ok(self.open_session(SessionStart::New));
            }
            ProtocolStep::OpenFailed { fault, message, .. }
            | ProtocolStep::InitializeFailed { fault, message } => {
                self.end_turn(Some(open_failure(&fault, &message)), events);
            }
            ProtocolStep::Text { message_id, role, text, .. } => {
                self.state.answer.report_text((message_id, role), text, events).await?;
            }
            ProtocolStep::Tool { call, .. } => {
                self.state.report_tool_call(&call, events).await?;
                let monitor = &mut self.plan.tool_call_monitor;
                let failure = monitor.check_reported_call(&call, (events, reporter)).await?;
                return Ok(failure.map_or_else(Vec::new, |failure| self.cancel_for(failure)));
            }
            ProtocolStep::Usage { usage, .. } => record_usage(usage, events).await?,
            ProtocolStep::Warning { text, .. } => events.warn(&text).await?,
            ProtocolStep::ProtocolError { message } => events.warn(&message).await?,
            ProtocolStep::Request { request, .. } => {
                return self.report_question(*request, (events, reporter)).await;
            }
            ProtocolStep::Answered { request, call, .. } => {
                call.into_iter().for_each(|call| self.record_answer(call));
                reporter.report_delivery(self.requests.remove(&request));
            }
            ProtocolStep::Withdrawn { request, .. } => {
                reporter.report_withdrawal(self.requests.remove(&request));
            }
            ProtocolStep::TurnEnded { outcome, usage, .. } => {
                if let Some(usage) = usage {
                    record_usage(usage, events).await?;
                }
                if outcome == TurnOutcome::EndTurn {
                    events.handle_event(ProgramEvent::Accepted).await?;
                }
                let failure = self.state.failure_of(outcome);
                self.end_turn(failure, events);
            }
            // Nothing of these steps is recorded.
            ProtocolStep::Initialized(_) | ProtocolStep::Closed { .. } => {}
            ProtocolStep::Plan { .. } | ProtocolStep::Compacted { .. } => {}
            ProtocolStep::ModeChanged { .. } | ProtocolStep::ModelChanged { .. } => {}
        }
        Ok(Vec::new())
    }

    /// Returns the steps for an answer. An answer to an unknown request changes nothing.
    pub(super) fn answer_steps(
        &mut self,
        wire_id: &WireId,
        answer: Option<AnswerValue>,
    ) -> Vec<ProtocolStep> {
        let Some((request, call, answer)) = self.requests.resolve(wire_id, answer) else {
            return Vec::new();
        };
        let steps = self.connection.perform(Command::Answer {
            session: SESSION_KEY,
            request_id: request.clone(),
            answer,
        });
        // Only a written line is a delivered answer.
        steps
            .into_iter()
            .chain([ProtocolStep::Answered { session: SESSION_KEY, request, call }])
            .collect()
    }

    /// Counts the answer to a permission request. A replay reports the answers again, so no earlier place may count
    /// them.
    fn record_answer(&mut self, call: AnsweredCall) {
        self.state.denied_calls += usize::from(!call.is_allowed);
        self.plan.tool_call_monitor.record_answer(call);
    }

    /// Reports a question. Returns the steps that cancel the turn instead, if the tool call exceeds the limit.
    async fn report_question(
        &mut self,
        request: AgentRequest,
        (events, reporter): (&mut EventReader<'_>, &Reporter),
    ) -> Result<Vec<ProtocolStep>, LedgerError> {
        if let AgentRequestKind::Permission { call, .. } = &request.kind
            && let Some(failure) = self.plan.tool_call_monitor.count_call(call)
        {
            return Ok(self.cancel_for(failure));
        }
        // The text before a question is shown before it.
        events.release().await?;
        reporter.flush_pending().await?;
        let (wire_id, question) = self.requests.add(request);
        reporter.report_question(wire_id, question);
        Ok(Vec::new())
    }

    /// Cancels the turn, which ends with this failure.
    fn cancel_for(&mut self, failure: Failure) -> Vec<ProtocolStep> {
        self.state.fail(failure);
        // A replay finds the cause again, and the agent has received the cancellation.
        if self.connection.has_sent_cancel() {
            return Vec::new();
        }
        self.connection.perform(Command::Cancel { session: SESSION_KEY })
    }

    fn end_turn(&mut self, failure: Option<Failure>, events: &mut EventReader<'_>) {
        self.state.is_over = true;
        failure.into_iter().for_each(|failure| events.fail_with(failure));
    }
}

fn open_failure(fault: &OpenFault, message: &str) -> Failure {
    match fault {
        OpenFault::Authentication => Failure::new(Code::NotAuthenticated, message),
        OpenFault::ModeNotConfirmed { requested: mode } => {
            let message = format!("the agent did not confirm the mode `{mode}`: {message}");
            Failure::new(Code::ModeRefused, message)
        }
        OpenFault::UnknownSession | OpenFault::Other => {
            let message = format!("the agent opened no session: {message}");
            Failure::new(Code::SessionNotOpened, message)
        }
    }
}

/// Records the native id of the conversation.
async fn record_session(
    id: String,
    events: &mut EventReader<'_>,
    reporter: &Reporter,
) -> Result<(), LedgerError> {
    reporter.set_session(&id);
    events.handle_event(ProgramEvent::Session { id }).await
}

async fn record_usage(usage: TokenUsage, events: &mut EventReader<'_>) -> Result<(), LedgerError> {
    let TokenUsage { input, output, cached, reasoning, .. } = usage;
    let numbers = [
        ("input_tokens", input),
        ("output_tokens", output),
        ("cached_tokens", cached),
        ("reasoning_tokens", reasoning),
    ];
    let fields: Map<String, Value> = numbers
        .into_iter()
        .filter_map(|(name, number)| Some((name.to_owned(), Value::from(number?))))
        .collect();
    if fields.is_empty() {
        return Ok(());
    }
    events.handle_event(ProgramEvent::Usage { cumulative: false, fields }).await
}
