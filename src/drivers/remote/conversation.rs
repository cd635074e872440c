//! Remote task and context of a conversation, stored for the next message of the conversation.

use algonius_actors::driver::AttemptWork;
use algonius_actors::driver::report::Reporter;
use algonius_actors::model::code::Code;
use algonius_actors::model::execution::event::EventKind;
use algonius_actors::model::failure::Failure;
use algonius_actors::model::session::{Conversation, Session, SessionId};
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
        let session = sessions.session(&Conversation::from_request(&work.request)).await;
        let session = session.map_err(|error| {
            tracing::error!(%error, "failed to read session of conversation");
            Failure::new(
                Code::LedgerUnavailable,
                "the session of the conversation could not be read",
            )
        })?;
        let is_answer = work.request.continued_execution.is_some();
        let is_own = session.as_ref().is_some_and(|session| session.execution == work.execution);
        let conversation: Option<Self> =
            session.and_then(|session| serde_json::from_str(session.id.expose()).ok());
        match conversation {
            Some(conversation) if is_answer && is_own => Ok(conversation),
            _ if is_answer => {
                let message = "the remote task that asked the question is unknown";
                Err(Failure::new(Code::PermanentFailure, message))
            }
            Some(conversation) => Ok(Self { task: None, ..conversation }),
            None => Ok(Self::default()),
        }
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
        if *self == Self::default() {
            return Ok(());
        }
        let id = serde_json::to_string(self).ok().and_then(|text| SessionId::new(&text));
        let Some(id) = id else {
            // The session of an earlier message is another conversation of the remote agent.
            sessions.forget(Conversation::from_request(&work.request)).await?;
            let message = LONG_IDS_WARNING.to_owned();
            return reporter.record_event(EventKind::Warning { message }).await;
        };
        let (execution, last_used_at) = (work.execution, reporter.now());
        let session =
            Session { id, execution, last_used_at, reported_counters: Default::default() };
        sessions.store(Conversation::from_request(&work.request), session).await
    }
}
