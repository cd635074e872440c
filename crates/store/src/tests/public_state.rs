//! Tests that the rule for the public state gives the same result in Rust and in SQL, in every case.

use algonius_actors::model::code::{Category, Code};
use algonius_actors::model::execution::record::{ExecutionPageQuery, ExecutionRecord, PublicState};
use algonius_actors::model::execution::{ExecutionState, Interruption, Outcome};

use serde_json::json;

use super::*;
use crate::conformance::paging::all_executions_query;

/// Copies an execution into every combination of these values, with few different times, so that many are equal.
const INSERT_EXECUTION_VARIANTS: &str = "
    INSERT INTO executions
        (id, agent, owner, message, request_key, digest, context, origin, access, params, turn,
         attempt, fence, replayable, accepted_at, last_event, started_at, state, outcome, failure,
         answered, interruption, parked, asks, changed_at, ended_at)
    SELECT randomblob(16), agent, owner, message, randomblob(32), digest, context, origin, access,
        params, turn, attempt, fence, replayable, accepted_at, last_event, started_at,
        states.value, outcomes.value, failures.value, answers.value, interruptions.value, parks.value,
        asks.value,
        abs(random() % 50), iif(random() % 2, abs(random() % 50), NULL)
    FROM executions, json_each($1) AS states, json_each($2) AS outcomes, json_each($3) AS failures,
        json_each($4) AS interruptions, json_each($5) AS answers, json_each($6) AS parks,
        json_each($7) AS asks
    WHERE asks.value = 0 OR parks.value IS NULL";

/// Never deferred; deferred after the present attempt; deferred after another attempt.
const DEFERRALS: &str = r#"[null, {"until":"2026-01-01T00:00:00Z","times":1,"attempt":1},
    {"until":"2026-01-01T00:00:00Z","times":1,"attempt":7}]"#;

/// Inserts executions with every state, outcome and failure.
struct InsertExecutionVariants {
    /// Inserts each of them with every interruption, answer, deferral and number of open interactions too. No filter of
    /// the history depends on these.
    varies_waiting_columns: bool,
}

#[async_trait]
impl WriteCommand for InsertExecutionVariants {
    type WriteOutput = ();

    async fn apply(&self, connection: &mut DatabaseConnection) -> sql::Result<()> {
        let states: Vec<_> = ExecutionState::ALL.iter().map(|state| state.as_str()).collect();
        let outcomes = [
            None,
            Some(Outcome::Completed),
            Some(Outcome::Failed),
            Some(Outcome::Timeout),
            Some(Outcome::Cancelled),
        ];
        let failure = |code: &Code| json!({ "code": code.as_str(), "message": "it went wrong" });
        let mut failures: Vec<_> = Code::ALL.iter().map(failure).collect();
        failures.push(json!(null));
        let interruptions =
            json!([null, Interruption::InputRequired, Interruption::AuthRequired]).to_string();
        let waiting_column_values = match self.varies_waiting_columns {
            true => [&interruptions, "[0, 1]", DEFERRALS, "[0, 2]"],
            false => ["[null]", "[0]", "[null]", "[0]"],
        };
        let [interruptions, answers, deferrals, open_interactions] = waiting_column_values;
        sql::statement(INSERT_EXECUTION_VARIANTS)
            .bind(json!(states).to_string())
            .bind(json!(outcomes).to_string())
            .bind(json!(failures).to_string())
            .bind(interruptions.to_owned())
            .bind(answers)
            .bind(deferrals)
            .bind(open_interactions)
            .execute(connection)
            .await?;
        Ok(())
    }
}

#[tokio::test]
async fn sql_and_rust_agree_on_the_public_state_and_its_time() {
    let folder = TempDir::new().unwrap();
    let store = Arc::new(open_store(folder.path()).await);
    accept_execution(&(store.clone() as AnyLedger)).await;
    store.writer.submit(InsertExecutionVariants { varies_waiting_columns: true }).await.unwrap();
    let mut records = store.executions(ExecutionFilter::default()).await.unwrap();
    assert_eq!(
        records.len(),
        1 + ExecutionState::ALL.len() * 5 * (Code::ALL.len() + 1) * 2 * 3 * (3 + 1)
    );
    records.sort_by_key(|record| std::cmp::Reverse((record.status_changed_at(), record.id)));

    let full_page = store
        .execution_page(ExecutionPageQuery { limit: u32::MAX, ..all_executions_query() })
        .await
        .unwrap();
    assert!(full_page.records == records, "the orders differ");
    for public_state in PublicState::ALL {
        let query = ExecutionPageQuery {
            public_state: Some(*public_state),
            limit: u32::MAX,
            ..all_executions_query()
        };
        let page = store.execution_page(query).await.unwrap();
        let expected: Vec<&ExecutionRecord> =
            records.iter().filter(|record| record.public_state() == *public_state).collect();
        assert_eq!(page.total, expected.len() as u64);
        let difference =
            page.records.iter().zip(expected).find(|(actual, expected)| actual != expected);
        assert_eq!(difference, None, "{public_state:?}");
    }
}

#[tokio::test]
async fn sql_and_rust_agree_on_history_filters() {
    let folder = TempDir::new().unwrap();
    let store = Arc::new(open_store(folder.path()).await);
    accept_execution(&(store.clone() as AnyLedger)).await;
    store.writer.submit(InsertExecutionVariants { varies_waiting_columns: false }).await.unwrap();
    let records = store.executions(ExecutionFilter::default()).await.unwrap();
    assert_eq!(records.len(), 1 + ExecutionState::ALL.len() * 5 * (Code::ALL.len() + 1));
    let states = ExecutionState::ALL
        .iter()
        .map(|it| ExecutionFilter { state: Some(*it), ..ExecutionFilter::default() });
    let outcomes = Outcome::ALL
        .iter()
        .map(|it| ExecutionFilter { outcome: Some(*it), ..ExecutionFilter::default() });
    let codes = Code::ALL
        .iter()
        .map(|it| ExecutionFilter { code: Some(*it), ..ExecutionFilter::default() });
    let categories = Category::ALL
        .iter()
        .map(|it| ExecutionFilter { category: Some(*it), ..ExecutionFilter::default() });
    for filter in states.chain(outcomes).chain(codes).chain(categories) {
        let found = store.executions(filter.clone()).await.unwrap();
        let expected: Vec<&ExecutionRecord> =
            records.iter().filter(|it| filter.matches(it)).collect();
        assert!(found.iter().eq(expected), "{filter:?}");
    }
}
