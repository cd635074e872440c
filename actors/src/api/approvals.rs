//! Questions of agents: reads and answers by callers, with their authorization.

use std::collections::BTreeMap;

use tokio::sync::watch;

use crate::decide::output::redact_question;
use crate::decide::permission::{answer, check_approver};
use crate::gateway::GatewayMsg;
use crate::gateway::reader::{ExecutionReader, ledger_read_failure};
use crate::model::access::principal::{Caller, Right};
use crate::model::code::Code;
use crate::model::execution::progress::Progress;
use crate::model::execution::record::ExecutionRecord;
use crate::model::failure::Failure;
use crate::model::id::AgentId;
use crate::model::interaction::{
    AnswerSource, AnswerValue, Interaction, InteractionAnswer, InteractionEnd, InteractionFilter,
    InteractionId, InteractionState,
};
use crate::model::permission::{DecisionFilter, PermissionDecision};
use crate::ports::interaction_store::CloseInteractionOutcome;

/// Handle that reads and answers the questions of agents. Clones are cheap.
#[derive(Clone)]
pub struct InteractionHandle {
    pub(crate) reader: ExecutionReader,
}

/// Answer of a caller.
#[derive(Debug, Clone)]
pub struct CallerAnswer {
    /// Answer to the question.
    pub value: AnswerValue,
    /// Digest of the question that the caller saw; `None` does not compare it.
    pub digest: Option<String>,
    /// Interface of the answer, such as `api` or `a2a`.
    pub channel: &'static str,
    /// Id of the message that contains the answer, if the interface has messages.
    pub message_id: Option<String>,
}

/// Interaction after an answer, and the progress of its execution while an actor holds it.
pub struct AnswerReply {
    /// Closed interaction.
    pub interaction: Interaction,
    /// Progress of the execution.
    pub progress: Option<watch::Receiver<Progress>>,
}

impl InteractionHandle {
    /// Returns an interaction, if the caller may see it.
    ///
    /// # Errors
    /// Returns `interaction-unknown` both if the interaction does not exist and if it belongs to another caller.
    pub async fn interaction(
        &self,
        caller: &Caller,
        id: InteractionId,
    ) -> Result<Interaction, Failure> {
        let filter = InteractionFilter { id: Some(id), limit: 1, ..InteractionFilter::default() };
        self.interactions(caller, filter)
            .await?
            .pop()
            .ok_or_else(|| interaction_unknown_failure(id))
    }

    /// Returns true if an execution has all these parameters, so that an answer that repeats them changes nothing. The
    /// record has them redacted.
    #[must_use]
    pub fn has_params(&self, record: &ExecutionRecord, params: &BTreeMap<String, String>) -> bool {
        let redactor = self.reader.services.redactor.current();
        params.iter().all(|(name, value)| {
            record.params.get(name).is_some_and(|known| redactor.redact(value) == known.as_str())
        })
    }

    /// Returns the interactions that the caller may see, newest first: those of its own executions, or all for an
    /// administrator and for a caller with the right to approve.
    ///
    /// # Errors
    /// Returns an error if the interactions could not be read.
    pub async fn interactions(
        &self,
        caller: &Caller,
        mut filter: InteractionFilter,
    ) -> Result<Vec<Interaction>, Failure> {
        let allows = |right| caller.scope.allows(right, None);
        if !allows(Right::Admin) && !allows(Right::Approve) {
            if !allows(Right::Read) {
                return Ok(Vec::new());
            }
            filter.owner = Some(caller.principal);
        }
        filter.agents.clone_from(&caller.scope.agents);
        let store = &self.reader.services.stores.interactions;
        let mut interactions =
            store.interactions(filter).await.map_err(|error| ledger_read_failure(&error))?;
        let in_scope = |team: &AgentId| {
            caller.scope.agents.as_ref().is_none_or(|agents| agents.contains(team))
        };
        for Interaction { origin, .. } in &mut interactions {
            origin.teams = origin.teams_from_first_match(in_scope);
        }
        Ok(interactions)
    }

    /// Returns the open interactions of an execution, oldest first. Their paths begin at the agent of the execution.
    ///
    /// # Errors
    /// Returns an error if the interactions could not be read.
    pub async fn open_interactions(
        &self,
        record: &ExecutionRecord,
    ) -> Result<Vec<Interaction>, Failure> {
        let (execution, state) = (Some(record.id), Some(InteractionState::Open));
        let filter = InteractionFilter { execution, state, ..InteractionFilter::default() };
        let store = &self.reader.services.stores.interactions;
        let mut open =
            store.interactions(filter).await.map_err(|error| ledger_read_failure(&error))?;
        open.reverse();
        for Interaction { origin, .. } in &mut open {
            origin.teams = origin.teams_from_first_match(|team| *team == record.agent);
        }
        Ok(open)
    }

    /// Returns the permission decisions, for an administrator only; oldest first, each with its number.
    ///
    /// # Errors
    /// Returns `forbidden` for other callers, and if the token is for some agents only and the filter names none.
    pub async fn permission_decisions(
        &self,
        caller: &Caller,
        filter: DecisionFilter,
    ) -> Result<Vec<(u64, PermissionDecision)>, Failure> {
        if !caller.scope.allows(Right::Admin, filter.agent.as_ref()) {
            return Err(Failure::new(Code::Forbidden, "the token does not allow this"));
        }
        if filter.agent.is_none() && caller.scope.agents.is_some() {
            let message = "the token is for some agents only, so the request must name one of them";
            return Err(Failure::new(Code::Forbidden, message));
        }
        let store = &self.reader.services.stores.interactions;
        store.decisions(filter).await.map_err(|error| ledger_read_failure(&error))
    }

    /// Answers an interaction once. Returns after the ledger has recorded the answer; the agent receives it then. The
    /// same answer again returns the recorded one.
    ///
    /// # Errors
    /// Returns an error if the caller may not answer, if the answer does not fit the question, or if the interaction is
    /// closed.
    pub async fn answer(
        &self,
        caller: &Caller,
        id: InteractionId,
        caller_answer: CallerAnswer,
    ) -> Result<AnswerReply, Failure> {
        let interaction = self.interaction(caller, id).await?;
        authorize_answer(caller, &interaction)?;
        let visible_origin = interaction.origin.clone();
        if caller_answer
            .digest
            .as_ref()
            .is_some_and(|digest| *digest != interaction.tool_call_digest)
        {
            let message = "the digest is not the one of the question";
            return Err(Failure::new(Code::InteractionChanged, message));
        }
        let value = answer::check_answer(&interaction.question, &caller_answer.value)
            .map_err(|fault| Failure::new(Code::AnswerInvalid, fault.to_string()))?;
        let by = AnswerSource::Principal {
            name: caller.name.clone(),
            channel: caller_answer.channel.to_owned(),
            message: caller_answer.message_id,
        };
        let services = &self.reader.services;
        let answer = InteractionAnswer { value: Some(value), by };
        let end =
            InteractionEnd { state: InteractionState::Answered, answer, at: services.clock.now() };
        let redacted_end =
            redact_question::redact_interaction_end(&end, &services.redactor.current());
        let close_result =
            services.stores.interactions.close(id, end.clone(), redacted_end.clone()).await;
        match close_result.map_err(|error| ledger_read_failure(&error))? {
            CloseInteractionOutcome::Closed(interaction) => {
                let progress = self.forward_answer(interaction.clone()).await;
                let interaction =
                    Interaction { end: Some(redacted_end), origin: visible_origin, ..*interaction };
                Ok(AnswerReply { interaction, progress })
            }
            CloseInteractionOutcome::AlreadyClosed(interaction)
                if has_same_answer(&interaction, [&end, &redacted_end]) =>
            {
                let at = interaction.end.as_ref().map_or(redacted_end.at, |closed| closed.at);
                let end = Some(InteractionEnd { at, ..redacted_end });
                let interaction = Interaction { end, origin: visible_origin, ..*interaction };
                Ok(AnswerReply { interaction, progress: None })
            }
            CloseInteractionOutcome::AlreadyClosed(interaction) => {
                Err(interaction_closed_failure(&interaction))
            }
            CloseInteractionOutcome::Unknown => Err(interaction_unknown_failure(id)),
        }
    }

    /// Sends a recorded answer to the actor of the execution. Without an actor the answer waits in the ledger.
    async fn forward_answer(
        &self,
        interaction: Box<Interaction>,
    ) -> Option<watch::Receiver<Progress>> {
        self.reader
            .gateway_handle
            .call_or_none(|reply| GatewayMsg::InteractionAnswered(interaction, reply))
            .await
            .flatten()
    }
}

/// Checks that the caller may answer. A right for a team covers the questions of its members in its runs, but only an
/// administrator of the member is exempt from the member's list of approvers.
fn authorize_answer(caller: &Caller, interaction: &Interaction) -> Result<(), Failure> {
    let allows_on_path = |right| {
        interaction.origin.agent_path().any(|agent| caller.scope.allows(right, Some(agent)))
    };
    let is_admin = caller.scope.allows(Right::Admin, Some(&interaction.origin.agent));
    let may_approve = allows_on_path(Right::Approve) || allows_on_path(Right::Admin);
    let is_owner = interaction.origin.owner == caller.principal;
    let forbidden = |message: &str| Failure::new(Code::Forbidden, message);
    if !may_approve {
        return Err(forbidden("the token does not have the right `approve`"));
    }
    check_approver(&interaction.approver_rules, &caller.name, is_owner, is_admin)
        .map_err(|refusal| forbidden(&refusal.to_string()))
}

/// Returns true if the interaction was closed by the same answer of the same principal. The answer of the
/// interaction is raw until it was delivered, and redacted later.
fn has_same_answer(interaction: &Interaction, raw_and_redacted_ends: [&InteractionEnd; 2]) -> bool {
    let closed = interaction.end.as_ref();
    let source_without_message = |answer: &InteractionAnswer| match &answer.by {
        // The same answer may come in another message.
        AnswerSource::Principal { name, channel, .. } => Ok((name.clone(), channel.clone())),
        other => Err(other.clone()),
    };
    closed.is_some_and(|closed| {
        raw_and_redacted_ends.iter().any(|end| {
            end.answer.value == closed.answer.value
                && source_without_message(&end.answer) == source_without_message(&closed.answer)
        })
    })
}

fn interaction_unknown_failure(id: InteractionId) -> Failure {
    Failure::new(Code::InteractionUnknown, format!("there is no interaction `{id}`"))
}

fn interaction_closed_failure(interaction: &Interaction) -> Failure {
    let state = interaction.state.as_str();
    let end = interaction.end.as_ref().map(|closed| {
        let answered_by = match &closed.answer.by {
            AnswerSource::Principal { name, .. } => format!(" by `{name}`"),
            AnswerSource::Rule { rule } => format!(" by {rule}"),
            AnswerSource::Timeout
            | AnswerSource::Cancel
            | AnswerSource::ProcessEnd
            | AnswerSource::Agent => String::new(),
        };
        format!("{answered_by} at {}", closed.at.format("%Y-%m-%d %H:%M:%S UTC"))
    });
    let message = format!("the interaction is {state} already{}", end.unwrap_or_default());
    Failure::new(Code::InteractionClosed, message)
}
