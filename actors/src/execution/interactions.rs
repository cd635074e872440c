//! Interactions of the present attempt: questions of the agent, their answers, and the deadlines that pause meanwhile.

mod deadlines;
mod open_interactions;

use chrono::TimeDelta;

use super::attempt::CurrentAttempt;
use super::claim::ResourceClaim;
use super::context::ExecutionContext;
use super::persistence::Persistence;
use super::published_state::PublishedState;
use super::tasks::ExecutionBackgroundTasks;
use super::{ExecutionMsg, InteractionMsg};
use crate::decide::execution::ExecutionEvent;
use crate::decide::output::redact_question;
use crate::decide::permission;
use crate::driver::report::QuestionReport;
use crate::model::execution::AttemptId;
use crate::model::execution::event::EventKind;
use crate::model::interaction::{
    AnswerSource, AnswerValue, Interaction, InteractionAnswer, InteractionEnd, InteractionId,
    InteractionOrigin, InteractionRequestKey, InteractionState, Question, WireId,
};
use crate::model::permission::{PermissionDecision, PermissionVerdict, TimeoutAction};
use crate::ports::interaction_store::reports::lost_interaction_end;
use crate::ports::interaction_store::{CloseInteractionOutcome, OpenInteractionOutcome};

use self::deadlines::AttemptDeadlines;
pub(super) use self::open_interactions::OpenInteractions;

/// Reason that the agent receives when nobody answered.
const TIMEOUT_REASON: &str = "nobody answered in time";

/// Maximum number of open questions of an attempt.
const MAX_OPEN_QUESTIONS: u32 = 64;

/// Maximum size of a question for a person, in bytes. A person cannot review more, and all readers of the task get it.
const MAX_QUESTION_BYTES: usize = 256 << 10;

/// Warning about a question beyond a limit.
const QUESTION_LIMIT_WARNING: &str = "the agent asked too many questions at once, or one that is too long to review, so its request was cancelled";

/// Warning about an answer that the agent did not receive.
const LOST_ANSWER_WARNING: &str = "the answer to a question of the agent was lost with an earlier process of the service, so its request was cancelled";

/// Interactions of the present attempt, with the parts of the execution that they use.
pub(super) struct AttemptInteractions<'e> {
    pub(super) open_interactions: &'e mut OpenInteractions,
    /// True if the result of the work counts.
    pub(super) is_at_work: bool,
    pub(super) context: &'e ExecutionContext,
    pub(super) claim: &'e ResourceClaim,
    pub(super) attempt: &'e mut CurrentAttempt,
    pub(super) persistence: &'e mut Persistence,
    pub(super) published: &'e PublishedState,
    pub(super) tasks: &'e mut ExecutionBackgroundTasks,
}

impl AttemptInteractions<'_> {
    /// Handles a report about questions.
    pub(super) fn handle_report(&mut self, attempt_id: AttemptId, report: QuestionReport) {
        match report {
            QuestionReport::Opened { wire_id, question } => {
                self.handle_question(attempt_id, wire_id, *question);
            }
            QuestionReport::Withdrawn { wire_id } => self.handle_withdrawal(attempt_id, &wire_id),
            QuestionReport::AnswerDelivered { wire_id } => {
                self.handle_answer_delivery(attempt_id, &wire_id);
            }
            QuestionReport::MemberQuestions { count } => {
                self.handle_member_questions(attempt_id, count);
            }
        }
    }

    /// Handles a question of the agent: a rule decides, or the ledger records it for a person.
    fn handle_question(&mut self, attempt_id: AttemptId, wire_id: WireId, question: Question) {
        if attempt_id != self.attempt.attempt_id() || !self.is_at_work {
            return; // The end of the attempt cancels all its requests.
        }
        let digest = self.context.services.keyed_hasher.question_digest(&question);
        if let Some((verdict, rule)) = automatic_verdict(self.context, self.claim, &question) {
            return self.apply_rule_verdict(wire_id, &question, (verdict, rule, digest));
        }
        let (now, id) = (self.context.now(), InteractionId::generate());
        let timeout = self.context.spec.permission_policy().interaction_timeout;
        let due_at = now + TimeDelta::from_std(timeout).unwrap_or(TimeDelta::MAX);
        let redactor = self.context.services.redactor.current();
        let request = &self.context.request;
        let interaction = Interaction {
            id,
            request_key: InteractionRequestKey {
                execution: self.context.id,
                attempt_id,
                wire_id: wire_id.clone(),
            },
            origin: InteractionOrigin {
                owner: request.origin.owner,
                agent: self.context.spec.id.clone(),
                context: request.context.clone(),
                teams: Vec::new(),
            },
            question: redact_question::redact_question(question, &redactor),
            approver_rules: self.context.spec.permission_policy().approver_rules.clone(),
            tool_call_digest: digest,
            opened_at: now,
            due_at,
            state: InteractionState::Open,
            end: None,
            delivered_at: None,
        };
        if self.open_interactions.count() >= MAX_OPEN_QUESTIONS
            || interaction.question.size() > MAX_QUESTION_BYTES
        {
            return self.cancel_excess_request(wire_id);
        }
        self.open_interactions.add(wire_id, id);
        self.persistence.record_interaction(interaction);
    }

    /// Cancels a request of the agent that exceeds a limit of questions, and reports it.
    fn cancel_excess_request(&mut self, wire_id: WireId) {
        let message = QUESTION_LIMIT_WARNING.to_owned();
        self.persistence.add_event(self.context.now(), EventKind::Warning { message });
        self.persistence.flush();
        self.send_answer(wire_id, None, None);
    }

    /// Records the verdict of a rule, and sends it to the agent.
    fn apply_rule_verdict(
        &mut self,
        wire_id: WireId,
        question: &Question,
        (verdict, rule, digest): (PermissionVerdict, String, String),
    ) {
        let (now, attempt_id) = (self.context.now(), self.attempt.attempt_id());
        let tool = question.subject.as_ref().map(|call| call.tool.clone()).unwrap_or_default();
        let tool = self.context.services.redactor.current().redact(&tool).into_owned();
        self.persistence.record_decision(PermissionDecision {
            at: now,
            agent: self.context.spec.id.clone(),
            owner: self.context.request.origin.owner,
            execution: self.context.id,
            attempt_id,
            interaction: None,
            tool: tool.clone(),
            tool_call_digest: digest,
            verdict,
            source: AnswerSource::Rule { rule: rule.clone() },
            waited_ms: 0,
        });
        let answer = match verdict {
            PermissionVerdict::Allow => AnswerValue::Allow,
            PermissionVerdict::Deny | PermissionVerdict::Ask => AnswerValue::Deny {
                reason: Some(format!("the permission policy denies it: {rule}")),
            },
        };
        self.persistence.add_event(now, EventKind::PermissionDecided { tool, verdict, rule });
        self.persistence.flush();
        self.send_answer(wire_id, None, Some(answer));
    }

    /// Handles a withdrawal by the agent.
    fn handle_withdrawal(&mut self, attempt_id: AttemptId, wire_id: &WireId) {
        if attempt_id != self.attempt.attempt_id() {
            return;
        }
        if let Some(id) = self.open_interactions.by_wire_id.get(wire_id).copied() {
            self.close_interaction(id, InteractionState::Withdrawn, AnswerSource::Agent);
        }
    }

    /// Handles the number of open questions of the members of a team: callers answer them as those of the run.
    fn handle_member_questions(&mut self, attempt_id: AttemptId, count: u32) {
        if attempt_id != self.attempt.attempt_id() {
            return;
        }
        let held_deadlines = self.open_interactions.set_member_questions(count);
        self.published.publish_member_questions(count);
        self.deadlines().continue_after_pause(held_deadlines);
    }

    /// Handles the delivery of an answer.
    fn handle_answer_delivery(&mut self, attempt_id: AttemptId, wire_id: &WireId) {
        if attempt_id != self.attempt.attempt_id() {
            return;
        }
        let now = self.context.now();
        match self.open_interactions.undelivered_answers.remove(wire_id) {
            Some(Some(id)) => self.persistence.record_delivery(id, now),
            Some(None) => {}
            // The input contains an answer that an earlier process of the service wrote and did not record as written.
            None => {
                let (execution, wire_id) = (self.context.id, wire_id.clone());
                let key = InteractionRequestKey { execution, attempt_id, wire_id };
                self.persistence.record_earlier_delivery(key, now);
            }
        }
    }

    /// Handles a message about an interaction. Returns the event that ends the execution, if there is one.
    pub(super) fn handle(&mut self, msg: InteractionMsg) -> Option<ExecutionEvent> {
        match msg {
            InteractionMsg::Recorded(interaction, OpenInteractionOutcome::New) => {
                self.handle_recorded_question(&interaction);
            }
            InteractionMsg::Recorded(_, OpenInteractionOutcome::Existing(existing)) => {
                return self.handle_existing_question(&existing);
            }
            InteractionMsg::Recorded(interaction, OpenInteractionOutcome::Superseded) => {
                _ = self.remove_question(interaction.id);
            }
            InteractionMsg::Due(id) => {
                if self.open_interactions.contains(id) {
                    self.close_interaction(id, InteractionState::Expired, AnswerSource::Timeout);
                }
            }
            InteractionMsg::Closed(
                CloseInteractionOutcome::Closed(interaction)
                | CloseInteractionOutcome::AlreadyClosed(interaction),
            ) => {
                return self.deliver_answer(&interaction);
            }
            InteractionMsg::Answered(interaction, reply) => {
                self.adopt_recorded_id(&interaction);
                let event = self.deliver_answer(&interaction);
                _ = reply.send(Some(self.context.progress.subscribe()));
                return event;
            }
            InteractionMsg::Closed(CloseInteractionOutcome::Unknown) => {}
        }
        None
    }

    fn handle_recorded_question(&mut self, interaction: &Interaction) {
        let remaining = (interaction.due_at - self.context.now()).to_std().unwrap_or_default();
        let id = interaction.id;
        self.tasks.spawn(async move {
            tokio::time::sleep(remaining).await;
            Some(ExecutionMsg::Interaction(InteractionMsg::Due(id)))
        });
        self.published.publish_interactions(self.open_interactions.count());
    }

    /// Handles a question that the ledger knew: the attempt is replayed after the loss of a process or an actor. The
    /// interaction keeps its id and its remaining time; an answer that was never written to the agent is sent now. An
    /// agent whose input contains the answer does not ask again.
    fn handle_existing_question(&mut self, existing: &Interaction) -> Option<ExecutionEvent> {
        self.adopt_recorded_id(existing);
        if !existing.is_open() {
            return self.deliver_answer(existing);
        }
        // Its answer may have arrived before this reading of the ledger.
        if self.open_interactions.contains(existing.id) {
            self.handle_recorded_question(existing);
        }
        None
    }

    /// Gives the agent's request the id of the interaction that the ledger knew for it.
    fn adopt_recorded_id(&mut self, existing: &Interaction) {
        if existing.request_key.attempt_id == self.attempt.attempt_id()
            && let Some(id) =
                self.open_interactions.by_wire_id.get_mut(&existing.request_key.wire_id)
        {
            *id = existing.id;
        }
    }

    /// Closes the questions of a failed attempt, because its process has ended.
    pub(super) fn close_lost_questions(&mut self) {
        for id in self.open_interactions.ids() {
            self.persistence.record_unanswered_close(id, lost_interaction_end(self.context.now()));
        }
    }

    fn close_interaction(
        &mut self,
        id: InteractionId,
        state: InteractionState,
        source: AnswerSource,
    ) {
        let answer = InteractionAnswer { value: None, by: source };
        self.persistence
            .record_unanswered_close(id, InteractionEnd { state, answer, at: self.context.now() });
    }

    /// Sends the answer of a closed interaction to the agent, once. Returns the event that ends the execution instead,
    /// if the policy cancels it.
    fn deliver_answer(&mut self, interaction: &Interaction) -> Option<ExecutionEvent> {
        let wire_id = self.remove_question(interaction.id)?;
        let interaction_end = interaction.end.as_ref()?;
        // The ledger erases the clear text with the delivery, and the redacted text is no answer. The agent asks
        // although the answer was delivered, or the answer cannot be read: its request is cancelled, which permits
        // nothing, and the record of the interaction stays as it is.
        let is_answered = interaction_end.state == InteractionState::Answered;
        if interaction.delivered_at.is_some()
            || is_answered && interaction_end.answer.value.is_none()
        {
            self.cancel_unanswerable_request(wire_id);
            return None;
        }
        let is_permission = interaction.question.kind.is_permission();
        let answer = match interaction_end.state {
            InteractionState::Open | InteractionState::Withdrawn => return None,
            InteractionState::Answered => interaction_end.answer.value.clone(),
            InteractionState::Expired => {
                if self.context.spec.permission_policy().on_timeout == TimeoutAction::Cancel {
                    let reason = TIMEOUT_REASON.to_owned();
                    return self.is_at_work.then_some(ExecutionEvent::CancelRequested { reason });
                }
                is_permission.then(|| AnswerValue::Deny { reason: Some(TIMEOUT_REASON.to_owned()) })
            }
            InteractionState::Lost => None,
        };
        self.send_answer(wire_id, Some(interaction.id), answer);
        None
    }

    /// Sends an answer to the agent; `None` cancels its request.
    fn send_answer(
        &mut self,
        wire_id: WireId,
        id: Option<InteractionId>,
        answer: Option<AnswerValue>,
    ) {
        self.open_interactions.undelivered_answers.insert(wire_id.clone(), id);
        self.attempt.send_answer(wire_id, answer);
    }

    /// Cancels a request of the agent whose answer cannot be sent, and reports it.
    fn cancel_unanswerable_request(&mut self, wire_id: WireId) {
        tracing::warn!(execution = %self.context.id, "{LOST_ANSWER_WARNING}");
        let message = LOST_ANSWER_WARNING.to_owned();
        self.persistence.add_event(self.context.now(), EventKind::Warning { message });
        self.persistence.flush();
        self.send_answer(wire_id, None, None);
    }

    /// Removes a question, and continues the deadlines that it paused. Returns the request of the agent.
    fn remove_question(&mut self, id: InteractionId) -> Option<WireId> {
        let (wire_id, held_deadlines) = self.open_interactions.remove(id)?;
        self.published.publish_interactions(self.open_interactions.count());
        self.attempt.record_activity(); // The wait for a person is no silence of the agent.
        self.deadlines().continue_after_pause(held_deadlines);
        Some(wire_id)
    }

    /// Returns the deadlines of the attempt, with the questions that pause them.
    pub(super) fn deadlines(&mut self) -> AttemptDeadlines<'_> {
        AttemptDeadlines {
            attempt_id: self.attempt.attempt_id(),
            is_running: self.published.is_running(),
            open_interactions: self.open_interactions,
            tasks: self.tasks,
        }
    }
}

/// Returns the verdict of the policy, unless a person decides.
fn automatic_verdict(
    context: &ExecutionContext,
    claim: &ResourceClaim,
    question: &Question,
) -> Option<(PermissionVerdict, String)> {
    let subject = question.subject.as_ref().filter(|_| question.kind.is_permission())?;
    let workspace = claim.workspace();
    let workspace_root = workspace.as_ref().map(|workspace| workspace.path().to_string_lossy());
    let policy = context.spec.permission_policy();
    let (verdict, rule) = permission::evaluate_policy(policy, subject, workspace_root.as_deref());
    (verdict != PermissionVerdict::Ask).then_some((verdict, rule))
}
