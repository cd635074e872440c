//! Steps of the protocol as events of the attempt.

use algonius_actors::decide::budget::cumulative_usage::CounterValues;
use algonius_actors::driver::report::Reporter;
use algonius_actors::model::code::Code;
use algonius_actors::model::failure::Failure;
use algonius_actors::model::interaction::{AnswerValue, WireId};
use algonius_actors::ports::ledger::LedgerError;
use algonius_protocols::{
    AgentRequest, AgentRequestKind, AnsweredCall, Command, OpenFault, ProtocolStep, RequestId,
    SessionStart, ToolCall,
};

use super::turn_state::record_usage;
use super::{AgentTurn, SESSION_KEY};
use crate::drivers::adapters::event_line::ProgramEvent;
use crate::drivers::adapters::event_reader::EventReader;

const SESSION_UNKNOWN_MESSAGE: &str =
    "the session of the conversation is lost: the agent does not know it";

impl AgentTurn {
    /// Performs steps. Returns true if the turn is over.
    pub(super) async fn perform_steps(
        &mut self,
        steps: Vec<ProtocolStep>,
        (event_reader, reporter): (&mut EventReader<'_>, &Reporter),
    ) -> Result<bool, LedgerError> {
        let mut steps = std::collections::VecDeque::from(steps);
        while let Some(step) = steps.pop_front() {
            let caused_steps = self.perform_step(step, (event_reader, reporter)).await?;
            if self.plan.tool_call_monitor.is_turn_overdue() {
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
        (event_reader, reporter): (&mut EventReader<'_>, &Reporter),
    ) -> Result<Vec<ProtocolStep>, LedgerError> {
        match step {
            ProtocolStep::Send(line) => {
                self.input.send(&line, (&mut self.state, &mut self.plan), event_reader).await?;
            }
            ProtocolStep::Initialized(agent) => self.capabilities = agent.capabilities,
            ProtocolStep::SessionOpened { native_id: id, .. } => {
                self.state.session_open_deadline = None;
                record_session(id, event_reader).await?;
                return Ok(self.send_prompt(event_reader));
            }
            ProtocolStep::SessionIdentified { native_id: id, .. } => {
                record_session(id, event_reader).await?;
            }
            ProtocolStep::OpenFailed { fault: OpenFault::UnknownSession, .. }
                if self.plan.resumed_session.take().is_some() =>
            {
                return replace_lost_session(self, (event_reader, reporter)).await;
            }
            ProtocolStep::OpenFailed { fault, message, .. }
            | ProtocolStep::InitializeFailed { fault, message } => {
                self.state.end_turn(Some(open_failure(&fault, &message)), event_reader);
            }
            ProtocolStep::Text { message_id, role, text, .. } => {
                self.state.answer.report_text((message_id, role), text, event_reader).await?;
            }
            ProtocolStep::Content { content, .. } => {
                self.state.report_content(*content, event_reader).await?;
            }
            ProtocolStep::ContentLost { reason, text } => {
                self.state.record_unreadable_part((reason, &text), event_reader);
            }
            ProtocolStep::Tool { call, .. } => {
                return report_tool_call(self, &call, (event_reader, reporter)).await;
            }
            ProtocolStep::Usage { usage, .. } => record_usage(usage, event_reader).await?,
            ProtocolStep::Warning { text: message, .. }
            | ProtocolStep::ProtocolError { message } => event_reader.warn(&message).await?,
            ProtocolStep::MessageLost { reason, text } => {
                self.state.end_unreadable_turn((reason, &text), event_reader);
            }
            ProtocolStep::Request { request, .. } => {
                return self.report_question(*request, (event_reader, reporter)).await;
            }
            ProtocolStep::RequestAnswered { request_id: request, call, .. } => {
                handle_answered_request(self, (&request, call), reporter);
            }
            ProtocolStep::RequestWithdrawn { request_id: request, .. } => {
                reporter.report_withdrawal(self.requests.remove(&request));
            }
            ProtocolStep::TurnEnded { outcome, usage, .. } => {
                self.state.end_with_outcome(outcome, usage, event_reader).await?;
            }
            // Nothing of these steps is recorded.
            ProtocolStep::SessionClosed { .. } => {}
            ProtocolStep::Plan { .. } | ProtocolStep::HistoryCompacted { .. } => {}
            ProtocolStep::ModeChanged { .. } | ProtocolStep::ModelChanged { .. } => {}
        }
        Ok(Vec::new())
    }

    /// Returns the steps for an answer. An answer to an unknown request changes nothing.
    pub(super) fn answer_request(
        &mut self,
        wire_id: &WireId,
        answer: Option<AnswerValue>,
    ) -> Vec<ProtocolStep> {
        let Some((request_id, call, answer)) = self.requests.resolve(wire_id, answer) else {
            return Vec::new();
        };
        let steps = self.connection.handle_command(Command::Answer {
            session: SESSION_KEY,
            request_id: request_id.clone(),
            answer,
        });
        // Only a written line is a delivered answer.
        steps
            .into_iter()
            .chain([ProtocolStep::RequestAnswered { session: SESSION_KEY, request_id, call }])
            .collect()
    }

    /// Reports a question. Returns the steps that cancel the turn instead, if the tool call exceeds the limit.
    async fn report_question(
        &mut self,
        request: AgentRequest,
        (event_reader, reporter): (&mut EventReader<'_>, &Reporter),
    ) -> Result<Vec<ProtocolStep>, LedgerError> {
        if let AgentRequestKind::Permission { call, .. } = &request.kind
            && let Some(failure) = self.plan.tool_call_monitor.count_against_limit(call)
        {
            return Ok(self.cancel_turn(failure));
        }
        // The text before a question is shown before it.
        event_reader.release_visible_text().await?;
        reporter.flush_unless_superseded().await?;
        let (wire_id, question) = self.requests.add(request);
        reporter.report_question(wire_id, question);
        Ok(Vec::new())
    }

    /// Cancels the turn, which ends with this failure.
    fn cancel_turn(&mut self, failure: Failure) -> Vec<ProtocolStep> {
        self.state.record_failure(failure);
        // A replay finds the cause again, and the agent has received the cancellation.
        if self.connection.has_replayed_cancel() {
            return Vec::new();
        }
        self.connection.handle_command(Command::Cancel { session: SESSION_KEY })
    }
}

/// Returns the steps that open a new session in place of one that the agent does not know.
async fn replace_lost_session(
    turn: &mut AgentTurn,
    (event_reader, reporter): (&mut EventReader<'_>, &Reporter),
) -> Result<Vec<ProtocolStep>, LedgerError> {
    event_reader.record_lost_session(SESSION_UNKNOWN_MESSAGE).await?;
    reporter.set_session_usage_counters(CounterValues::default());
    Ok(turn.open_session(SessionStart::New))
}

/// Reports a tool call. Returns the steps that cancel the turn, if the call must end it.
async fn report_tool_call(
    turn: &mut AgentTurn,
    call: &ToolCall,
    (event_reader, reporter): (&mut EventReader<'_>, &Reporter),
) -> Result<Vec<ProtocolStep>, LedgerError> {
    turn.state.report_tool_call(call, event_reader).await?;
    let monitor = &mut turn.plan.tool_call_monitor;
    let failure = monitor.judge_reported_call(call, (event_reader, reporter)).await?;
    Ok(failure.map_or_else(Vec::new, |failure| turn.cancel_turn(failure)))
}

/// Counts the answer to a permission request; a replay reports the answers again, so no earlier place may count them.
/// Reports the delivery of an answer, unless the agent has closed its input and cannot have read it.
fn handle_answered_request(
    turn: &mut AgentTurn,
    (request_id, call): (&RequestId, Option<AnsweredCall>),
    reporter: &Reporter,
) {
    if let Some(call) = call {
        turn.state.denied_call_count += usize::from(!call.is_allowed);
        turn.plan.tool_call_monitor.record_answer(call);
    }
    let wire_id = turn.requests.remove(request_id);
    if turn.input.is_open() {
        reporter.report_answer_delivery(wire_id);
    }
}

async fn record_session(id: String, event_reader: &mut EventReader<'_>) -> Result<(), LedgerError> {
    event_reader.handle_event(ProgramEvent::Session { id }).await
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
