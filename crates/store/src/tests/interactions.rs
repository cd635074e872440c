//! Tests of interactions: both implementations conform, and no raw answer reaches a file.

use algonius_actors::model::id::PrincipalId;
use algonius_actors::model::interaction::{AnswerSource, InteractionEnd, InteractionId};
use algonius_actors::model::permission::{DecisionFilter, PermissionDecision, PermissionVerdict};
use algonius_actors::ports::interaction_store::InteractionStore;
use algonius_actors::testing::MemoryLedger;
use chrono::TimeDelta;
use uuid::Uuid;

use super::*;
use crate::conformance::default_agent_id;
use crate::conformance::interactions::{
    InteractionPorts, answered_end, interactions_conformance, permission_request, text_answer,
};
use crate::engine::encryption::{KeyPurpose, StoreCipher};

/// Answer that no file may contain.
const SECRET: &str = "hunter2-is-my-key";

mod sqlite {
    use super::*;

    interactions_conformance!(open_ports);

    async fn open_ports() -> (InteractionPorts, TempDir) {
        let folder = TempDir::new().unwrap();
        let store = Arc::new(open_store(folder.path()).await);
        (interaction_ports(&store), folder)
    }
}

mod memory {
    use super::*;

    interactions_conformance!(open_ports);

    async fn open_ports() -> (InteractionPorts, ()) {
        let memory = Arc::new(MemoryLedger::default());
        let ports = InteractionPorts {
            ledger: memory.clone(),
            history: memory.clone(),
            interactions: memory,
        };
        (ports, ())
    }
}

fn interaction_ports(store: &Arc<Store>) -> InteractionPorts {
    InteractionPorts { ledger: store.clone(), history: store.clone(), interactions: store.clone() }
}

/// Returns true if a file of the data directory contains a text.
fn is_on_disk(folder: &Path, text: &str) -> bool {
    let files = fs::read_dir(folder.join("data")).unwrap().flatten().map(|entry| entry.path());
    let mut contents = files.filter_map(|file| fs::read(file).ok());
    contents.any(|bytes| bytes.windows(text.len()).any(|part| part == text.as_bytes()))
}

#[tokio::test]
async fn no_file_contains_a_raw_answer() {
    let folder = TempDir::new().unwrap();
    let store = Arc::new(open_store(folder.path()).await);
    let ports = interaction_ports(&store);
    let (id, fence) = ports.running_execution().await;
    let interaction = ports.open(permission_request(id, "1", 5), fence).await;
    let end = answered_end(text_answer(SECRET), 6);
    let redacted_end = answered_end(text_answer("the answer is redacted"), 6);
    ports.interactions.close(interaction.id, end.clone(), redacted_end).await.unwrap();
    assert!(is_on_disk(folder.path(), "the answer is redacted"));
    assert!(!is_on_disk(folder.path(), SECRET), "the log contains the answer");
    Store::close(&store).await;
    assert!(!is_on_disk(folder.path(), SECRET), "the database contains the answer");

    // The raw answer survives a restart, until its delivery.
    let reopened = open_store(folder.path()).await;
    let stored = reopened.interaction(interaction.id).await.unwrap().unwrap();
    assert_eq!(stored.end, Some(end));
    reopened.record_answer_delivery(interaction.id, at_second(7)).await.unwrap();
    assert!(!is_on_disk(folder.path(), SECRET), "the delivery wrote the answer");
    let sealed_count_query =
        "SELECT count(*) FROM interactions WHERE sealed IS NOT NULL".to_owned();
    assert_eq!(reopened.writer.submit(NumberStatement(sealed_count_query)).await.unwrap(), 0);
}

/// Opens an interaction, and closes it with an answer that redaction changes.
async fn close_with_secret(store: &Arc<Store>) -> (InteractionId, InteractionEnd) {
    let ports = interaction_ports(store);
    let (id, fence) = ports.running_execution().await;
    let interaction = ports.open(permission_request(id, "1", 5), fence).await;
    let (end, redacted_end) =
        (answered_end(text_answer(SECRET), 6), answered_end(text_answer("***"), 6));
    ports.interactions.close(interaction.id, end.clone(), redacted_end).await.unwrap();
    (interaction.id, end)
}

/// The key is not in the ledger, so a copy of the ledger is of no use.
#[tokio::test]
async fn a_raw_answer_does_not_open_without_the_key_of_inputs() {
    let folder = TempDir::new().unwrap();
    let store = Arc::new(open_store(folder.path()).await);
    let (id, end) = close_with_secret(&store).await;
    Store::close(&store).await;
    let sealer = Arc::new(ScriptedSealer::default());
    sealer.lose_key();
    let reopened =
        Store::open(&folder.path().join("data"), Durability::ProcessCrash).await.unwrap();
    for has_sealer in [false, true] {
        if has_sealer {
            reopened.set_answer_sealer(sealer.clone());
        }
        let stored_end = reopened.interaction(id).await.unwrap().unwrap().end.unwrap();
        assert_eq!((stored_end.state, stored_end.answer.value), (end.state, None), "not redacted");
    }
    sealer.restore_key();
    let stored = reopened.interaction(id).await.unwrap().unwrap();
    assert_eq!(stored.end, Some(end));
}

/// An update must not lose an answer that waits for its agent.
#[tokio::test]
async fn an_answer_that_an_earlier_release_sealed_opens() {
    let folder = TempDir::new().unwrap();
    let store = Arc::new(open_store(folder.path()).await);
    let (id, end) = close_with_secret(&store).await;
    let cipher = StoreCipher::new(&store.instance().key, KeyPurpose::EarlierAnswers);
    let text = crate::engine::row_codec::to_json(&end).unwrap();
    let sealed = cipher.seal(id.0.as_bytes(), text.as_bytes()).unwrap();
    let digits: String = sealed.iter().map(|byte| format!("{byte:02x}")).collect();
    let statement = format!("UPDATE interactions SET sealed = x'{digits}' RETURNING 1");
    store.writer.submit(NumberStatement(statement)).await.unwrap();
    let stored = store.interaction(id).await.unwrap().unwrap();
    assert_eq!(stored.end, Some(end));
}

#[tokio::test]
async fn an_answer_opens_only_for_its_interaction() {
    let folder = TempDir::new().unwrap();
    let store = Arc::new(open_store(folder.path()).await);
    let ports = interaction_ports(&store);
    let (id, fence) = ports.running_execution().await;
    for (wire, answer) in [("1", "the first"), ("2", "the second")] {
        let interaction = ports.open(permission_request(id, wire, 5), fence).await;
        let (end, redacted_end) =
            (answered_end(text_answer(answer), 6), answered_end(text_answer("***"), 6));
        ports.interactions.close(interaction.id, end, redacted_end).await.unwrap();
    }
    let move_statement = "UPDATE interactions SET sealed = (SELECT sealed FROM interactions WHERE wire = '2') \
                 WHERE wire = '1' RETURNING 1";
    store.writer.submit(NumberStatement(move_statement.to_owned())).await.unwrap();
    let interactions = store.interactions(Default::default()).await.unwrap();
    let [second, first] = [interactions[0].id, interactions[1].id];
    assert!(matches!(store.interaction(first).await, Err(LedgerError::Unreadable { .. })));
    assert!(store.interaction(second).await.is_ok());
}

#[tokio::test]
async fn an_old_decision_goes_when_a_later_one_is_recorded() {
    let folder = TempDir::new().unwrap();
    let store = open_store(folder.path()).await;
    let decision = |days: i64| PermissionDecision {
        at: at_second(0) + TimeDelta::days(days),
        agent: default_agent_id(),
        owner: PrincipalId(Uuid::nil()),
        execution: algonius_actors::model::id::ExecutionId::generate(),
        attempt_id: AttemptId::FIRST,
        interaction: Some(InteractionId::generate()),
        tool: "Bash".to_owned(),
        tool_call_digest: "d".to_owned(),
        verdict: PermissionVerdict::Deny,
        source: AnswerSource::Timeout,
        waited_ms: 7,
    };
    let numbers = async || {
        let all = store.decisions(DecisionFilter::default()).await.unwrap();
        all.iter().map(|(number, _)| *number).collect::<Vec<_>>()
    };
    for days in [0, 1, 2, 365] {
        store.record_decision(decision(days)).await.unwrap();
    }
    assert_eq!(numbers().await, [1, 2, 3, 4]);
    store.record_decision(decision(367)).await.unwrap();
    assert_eq!(numbers().await, [3, 4, 5]);
    // A number is never given again, and a wrong clock removes two decisions at most.
    store.record_decision(decision(36_500)).await.unwrap();
    assert_eq!(numbers().await, [5, 6]);
}

#[tokio::test]
async fn a_settlement_without_interactions_reads_no_row_of_them() {
    let folder = TempDir::new().unwrap();
    let store = open_store(folder.path()).await;
    let explain = "EXPLAIN QUERY PLAN UPDATE interactions SET sealed = NULL \
                   WHERE execution = x'00' AND sealed IS NOT NULL";
    let rows = sql::statement(explain).fetch_all(&store.readers).await.unwrap();
    let plan: Vec<&str> = rows.iter().map(|row| row.get("detail").unwrap()).collect();
    assert!(plan[0].contains("interactions_sealed"), "{plan:?}");
}
