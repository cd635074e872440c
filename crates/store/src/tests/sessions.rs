//! Tests of program sessions: each belongs to one conversation and is removed with its last execution.

use std::collections::BTreeMap;

use algonius_actors::model::execution::{Fence, Outcome};
use algonius_actors::model::id::{AgentId, ContextId, PrincipalId};
use algonius_actors::model::session::{ConversationKey, Session, SessionId};
use algonius_actors::ports::history::History;
use algonius_actors::ports::session_store::SessionStore;
use serde_json::Number;
use uuid::Uuid;

use super::*;
use crate::conformance::settlement;

fn conversation(owner: u128, agent: &str, context: &str) -> ConversationKey {
    ConversationKey {
        owner: PrincipalId(Uuid::from_u128(owner)),
        agent: AgentId::new(agent).unwrap(),
        context: ContextId(context.to_owned()),
    }
}

async fn session_id(store: &Store, conversation: &ConversationKey) -> Option<String> {
    let session = store.session(conversation).await.unwrap();
    session.map(|session| session.id.expose().to_owned())
}

#[tokio::test]
async fn a_session_is_found_until_its_execution_is_removed() {
    let folder = TempDir::new().unwrap();
    let store = Arc::new(open_store(folder.path()).await);
    let ledger: AnyLedger = store.clone();
    let (first, last) = (accept_execution(&ledger).await, accept_execution(&ledger).await);
    let own_conversation = conversation(1, "one", "c");
    for (execution, id) in [(first, "ses-first"), (last, "ses-last")] {
        let id = SessionId::new(id).unwrap();
        store
            .save_session(
                own_conversation.clone(),
                Session {
                    id,
                    last_execution: execution,
                    last_used_at: at_second(5),
                    reported_counters: usage_counters(),
                },
            )
            .await
            .unwrap();
    }
    assert_eq!(session_id(&store, &own_conversation).await.as_deref(), Some("ses-last"));
    for (owner, agent, context) in [(2, "one", "c"), (1, "two", "c"), (1, "one", "d")] {
        assert_eq!(session_id(&store, &conversation(owner, agent, context)).await, None);
    }
    for (execution, is_left) in [(first, true), (last, false)] {
        let end = settlement(execution, Fence(0), Outcome::Cancelled);
        assert!(store.settle(end).await.unwrap());
        store.remove(execution).await.unwrap();
        assert_eq!(session_id(&store, &own_conversation).await.is_some(), is_left);
    }
    store.close().await;
    let files = fs::read_dir(folder.path()).unwrap().flatten().map(|entry| entry.path());
    let bytes: Vec<u8> = files.filter_map(|file| fs::read(file).ok()).flatten().collect();
    assert!(!bytes.windows(8).any(|part| part == b"ses-last"), "an id stands in the clear");
}

#[tokio::test]
async fn a_session_can_be_forgotten_and_needs_an_execution() {
    let folder = TempDir::new().unwrap();
    let store = Arc::new(open_store(folder.path()).await);
    let ledger: AnyLedger = store.clone();
    let (own_conversation, id) = (conversation(1, "one", "c"), SessionId::new("a").unwrap());
    let execution = accept_execution(&ledger).await;
    let session = Session {
        id,
        last_execution: execution,
        last_used_at: at_second(5),
        reported_counters: usage_counters(),
    };
    store.save_session(own_conversation.clone(), session.clone()).await.unwrap();
    assert_eq!(store.session(&own_conversation).await.unwrap(), Some(session.clone()));
    store.delete_session(own_conversation.clone()).await.unwrap();
    assert_eq!(store.session(&own_conversation).await.unwrap(), None);
    let unknown_execution = algonius_actors::model::id::ExecutionId::generate();
    store
        .save_session(
            own_conversation.clone(),
            Session { last_execution: unknown_execution, ..session },
        )
        .await
        .unwrap();
    assert_eq!(store.session(&own_conversation).await.unwrap(), None);
}

/// Returns the counters of a program.
fn usage_counters() -> BTreeMap<String, Number> {
    BTreeMap::from([("input_tokens".to_owned(), Number::from(7))])
}
