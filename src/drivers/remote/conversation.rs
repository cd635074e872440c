//! Remote task and context of a conversation, stored for the next message of the conversation.

use algonius_actors::driver::AttemptWork;
use algonius_actors::driver::report::Reporter;
use algonius_actors::model::code::Code;
use algonius_actors::model::execution::event::EventKind;
use algonius_actors::model::failure::Failure;
use algonius_actors::model::id::ExecutionId;
use algonius_actors::model::session::{ConversationKey, Session, SessionId};
use algonius_actors::ports::ledger::LedgerError;
use algonius_actors::ports::session_store::SessionStore;
use serde::{Deserialize, Serialize};

/// Warning about ids with which the next message cannot continue the conversation.
const LONG_IDS_WARNING: &str = "the remote agent has ids of a task and a context that are together longer than 4096 bytes; the \
     next message cannot continue this conversation, and an answer to a question of the agent fails";

/// Remote side of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct RemoteConversation {
    /// Id of the remote context.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) context: Option<String>,
    /// Id of the remote task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) task: Option<String>,
    /// Previous task of the conversation: its id in this service, and the remote one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    previous_task: Option<(ExecutionId, String)>,
}

impl RemoteConversation {
    /// Finds the remote side of the message: none for the first message of a conversation, the context for a later one,
    /// and the task too for the answer to a question of that task.
    ///
    /// # Errors
    /// Fails if the task that asked is not known.
    pub(super) async fn find(
        work: &AttemptWork,
        sessions: &dyn SessionStore,
    ) -> Result<Self, Failure> {
        let session = sessions.session(&ConversationKey::from_request(&work.request)).await;
        let session = session.map_err(|error| {
            tracing::error!(%error, "failed to read session of conversation");
            Failure::new(
                Code::LedgerUnavailable,
                "the session of the conversation could not be read",
            )
        })?;
        let stored = session.and_then(|session| {
            let conversation = serde_json::from_str(session.id.expose()).ok()?;
            Some((session.last_execution, conversation))
        });
        Self::continue_from(stored, work.execution, work.request.continued_execution.is_some())
    }

    /// Returns the remote side of a message from the stored one, which the given execution stored.
    fn continue_from(
        stored: Option<(ExecutionId, Self)>,
        execution: ExecutionId,
        is_answer: bool,
    ) -> Result<Self, Failure> {
        match stored {
            Some((stored_by, conversation)) if is_answer && stored_by == execution => {
                Ok(conversation)
            }
            _ if is_answer => {
                let message = "the remote task that asked the question is unknown";
                Err(Failure::new(Code::PermanentFailure, message))
            }
            // Each attempt of a message sends the same references.
            Some((stored_by, conversation)) if stored_by == execution => {
                Ok(Self { task: None, ..conversation })
            }
            Some((stored_by, Self { context, task, previous_task })) => {
                let previous_task = task.map(|task| (stored_by, task)).or(previous_task);
                Ok(Self { context, task: None, previous_task })
            }
            None => Ok(Self::default()),
        }
    }

    /// Returns the remote ids of those tasks that are known: the previous one of the conversation. All other ids are
    /// those of this service, which the other service does not know.
    pub(super) fn translate_references(&self, ids: &[String]) -> Vec<String> {
        let remote_id = |id: &String| {
            let (execution, task) = self.previous_task.as_ref()?;
            (*id == execution.to_string()).then(|| task.clone())
        };
        ids.iter().filter_map(remote_id).collect()
    }

    /// Stores the remote side for the next message. Ids that are too long are not stored, with a warning.
    ///
    /// # Errors
    /// Fails if nothing was committed.
    pub(super) async fn store(
        &self,
        work: &AttemptWork,
        (sessions, reporter): (&dyn SessionStore, &Reporter),
    ) -> Result<(), LedgerError> {
        if self.context.is_none() && self.task.is_none() {
            return Ok(());
        }
        // Without the previous task the conversation still continues.
        let short_form = Self { previous_task: None, ..self.clone() };
        let id = [self, &short_form].into_iter().find_map(|conversation| {
            serde_json::to_string(conversation).ok().and_then(|text| SessionId::new(&text))
        });
        let Some(id) = id else {
            // The session of an earlier message is another conversation of the remote agent.
            sessions.delete_session(ConversationKey::from_request(&work.request)).await?;
            let message = LONG_IDS_WARNING.to_owned();
            return reporter.record_event(EventKind::Warning { message }).await;
        };
        let (execution, last_used_at) = (work.execution, reporter.now());
        let session = Session {
            id,
            last_execution: execution,
            last_used_at,
            reported_counters: Default::default(),
        };
        sessions.save_session(ConversationKey::from_request(&work.request), session).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored_conversation(
        task: Option<&str>,
        previous: Option<(ExecutionId, &str)>,
    ) -> RemoteConversation {
        RemoteConversation {
            context: Some("c".to_owned()),
            task: task.map(str::to_owned),
            previous_task: previous.map(|(execution, task)| (execution, task.to_owned())),
        }
    }

    #[test]
    fn each_attempt_of_a_message_sends_the_same_references() {
        let (first, second, third) =
            (ExecutionId::generate(), ExecutionId::generate(), ExecutionId::generate());
        let next = |stored_by: ExecutionId, conversation: RemoteConversation, execution| {
            let text = serde_json::to_string(&conversation).unwrap();
            let read = serde_json::from_str(&text).unwrap();
            RemoteConversation::continue_from(Some((stored_by, read)), execution, false).unwrap()
        };
        let ids = [first.to_string(), second.to_string(), "other".to_owned()];
        let conversation = next(first, stored_conversation(Some("r-1"), None), second);
        assert_eq!(conversation.translate_references(&ids), ["r-1"]);
        assert_eq!(conversation.task, None);
        // An attempt that failed before or after the remote task began.
        for failed in [
            conversation.clone(),
            RemoteConversation { task: Some("r-2".to_owned()), ..conversation.clone() },
        ] {
            let retried = next(second, failed, second);
            assert_eq!(retried.translate_references(&ids), ["r-1"]);
        }
        // A message that began no remote task hides none.
        assert_eq!(next(second, conversation, third).translate_references(&ids), ["r-1"]);
        let conversation =
            next(second, stored_conversation(Some("r-2"), Some((first, "r-1"))), third);
        assert_eq!(conversation.translate_references(&ids), ["r-2"]);
    }

    #[test]
    fn an_answer_needs_the_task_of_the_question() {
        let (own, other) = (ExecutionId::generate(), ExecutionId::generate());
        let stored_question = || Some((own, stored_conversation(Some("r"), None)));
        let answer = RemoteConversation::continue_from(stored_question(), own, true).unwrap();
        assert_eq!(answer.task.as_deref(), Some("r"));
        for result in [
            RemoteConversation::continue_from(stored_question(), other, true),
            RemoteConversation::continue_from(None, own, true),
        ] {
            assert_eq!(result.unwrap_err().code, Code::PermanentFailure);
        }
    }
}
