//! Query plans of lists: SQLite never sorts, and it uses an index for each named condition.

use algonius_actors::model::code::{Category, Code};
use algonius_actors::model::execution::{ExecutionState, Outcome};
use algonius_actors::model::id::{ContextId, ExecutionId, PrincipalId};
use algonius_actors::model::interaction::{InteractionFilter, InteractionState};
use uuid::Uuid;

use super::*;
use crate::conformance::default_agent_id;
use crate::engine::sql::SqlStatement;
use crate::ledger::interactions::interaction_list_query;
use crate::queries::listing;
use algonius_actors::model::execution::record::TriggerFilter;

type FilterFn = fn(ExecutionFilter) -> ExecutionFilter;

/// Filters, each with true if an index serves it.
const EXECUTION_FILTERS: [(FilterFn, bool); 17] = [
    (|filter| ExecutionFilter { agent: Some(default_agent_id()), ..filter }, true),
    (|filter| ExecutionFilter { owner: Some(PrincipalId(Uuid::nil())), ..filter }, true),
    (|filter| ExecutionFilter { owner_name: Some("ann".to_owned()), ..filter }, true),
    (|filter| ExecutionFilter { unfinished_only: true, ..filter }, true),
    (|filter| ExecutionFilter { state: Some(ExecutionState::Timeout), ..filter }, true),
    (|filter| ExecutionFilter { state: Some(ExecutionState::Failed), ..filter }, true),
    (|filter| ExecutionFilter { state: Some(ExecutionState::Waiting), ..filter }, true),
    (|filter| ExecutionFilter { outcome: Some(Outcome::Failed), ..filter }, true),
    (|filter| ExecutionFilter { code: Some(Code::Exit), ..filter }, true),
    (|filter| ExecutionFilter { schedule: Some("nightly".to_owned()), ..filter }, true),
    (
        |filter| ExecutionFilter {
            trigger: Some(TriggerFilter::HopsOf(ExecutionId::generate())),
            ..filter
        },
        true,
    ),
    (|filter| ExecutionFilter { context: Some(ContextId("c".to_owned())), ..filter }, true),
    (|filter| ExecutionFilter { before_id: Some(ExecutionId::generate()), ..filter }, true),
    // These queries read executions in the order of their ids until the page is full.
    (|filter| ExecutionFilter { category: Some(Category::System), ..filter }, false),
    (|filter| ExecutionFilter { agents: Some(vec![default_agent_id()]), ..filter }, false),
    (
        |filter| ExecutionFilter { trigger: Some(TriggerFilter::Kind("api".to_owned())), ..filter },
        false,
    ),
    (
        |filter| ExecutionFilter { since: Some(at_second(0)), until: Some(at_second(1)), ..filter },
        false,
    ),
];

async fn query_plan(store: &Store, query: &SqlStatement) -> String {
    let text = query.text();
    let mut explain = sql::statement(format!("EXPLAIN QUERY PLAN {text}"));
    for _ in 0..text.matches('$').count() {
        explain = explain.bind(None::<i64>);
    }
    let rows = explain.fetch_all(&store.readers).await.unwrap();
    rows.iter().map(|row| row.get("detail").unwrap()).collect::<Vec<&str>>().join("; ")
}

#[tokio::test]
async fn lists_use_an_index_and_no_sort() {
    let folder = TempDir::new().unwrap();
    let store = open_store(folder.path()).await;
    let page = ExecutionFilter { limit: 50, ..ExecutionFilter::default() };
    for (number, (narrow, uses_index)) in EXECUTION_FILTERS.iter().enumerate() {
        let single_plan = query_plan(&store, &listing::list_query(narrow(page.clone()))).await;
        assert!(!single_plan.contains("TEMP B-TREE"), "{single_plan}");
        assert_eq!(is_indexed(&single_plan), *uses_index, "{number}: {single_plan}");
        for (narrow_further, further_uses_index) in &EXECUTION_FILTERS {
            let is_replaced = narrow(page.clone()).trigger.is_some()
                && narrow_further(page.clone()).trigger.is_some();
            if is_replaced {
                continue; // Both filters are the trigger of the query.
            }
            let query = listing::list_query(narrow_further(narrow(page.clone())));
            let combined_plan = query_plan(&store, &query).await;
            assert!(!combined_plan.contains("TEMP B-TREE"), "{combined_plan}");
            let any_uses_index = *uses_index || *further_uses_index;
            // No list needs a sort, and each lookup by name uses an index
            assert_eq!(is_indexed(&combined_plan), any_uses_index, "{number}: {combined_plan}");
        }
    }
}

/// Returns true if the plan uses an index. The index of unfinished executions is small, so a full scan of it is
/// allowed.
fn is_indexed(plan: &str) -> bool {
    plan.contains("SEARCH executions") || plan.contains("executions_unfinished")
}

type InteractionFilterFn = fn(InteractionFilter) -> InteractionFilter;

/// Filters of interactions, each with a part of its plan: an index that holds few rows.
const INTERACTION_FILTERS: [(InteractionFilterFn, &str); 3] = [
    (
        |filter| InteractionFilter { execution: Some(ExecutionId::generate()), ..filter },
        "SEARCH interactions USING INDEX sqlite_autoindex_interactions_1 (id=?)",
    ),
    (
        |filter| InteractionFilter { state: Some(InteractionState::Open), ..filter },
        "interactions_open",
    ),
    (
        |filter| InteractionFilter { owner: Some(PrincipalId(Uuid::nil())), ..filter },
        "interactions_by_owner (owner=?)",
    ),
];

#[tokio::test]
async fn lists_of_interactions_read_few_rows() {
    let folder = TempDir::new().unwrap();
    let store = open_store(folder.path()).await;
    for (number, (narrow, expected)) in INTERACTION_FILTERS.iter().enumerate() {
        let plan =
            query_plan(&store, &interaction_list_query(&narrow(InteractionFilter::default())))
                .await;
        assert!(plan.contains(expected), "{plan}");
        // The execution is the narrowest filter, also with others.
        let (narrowest, expected) = &INTERACTION_FILTERS[0];
        let filter = narrowest(narrow(InteractionFilter::default()));
        let plan = query_plan(&store, &interaction_list_query(&filter)).await;
        assert!(plan.contains(expected), "{number}: {plan}");
    }
}
