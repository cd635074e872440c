//! Query plans of lists: SQLite never sorts, and it uses an index for each named condition.

use algonius_actors::model::code::{Category, Code};
use algonius_actors::model::execution::{Outcome, State};
use algonius_actors::model::id::{ContextId, ExecutionId, PrincipalId};
use uuid::Uuid;

use super::*;
use crate::conformance::agent;
use crate::queries::listing;

type Narrow = fn(ExecutionFilter) -> ExecutionFilter;

/// Filters, each with true if an index serves it.
const FILTERS: [(Narrow, bool); 16] = [
    (|filter| ExecutionFilter { agent: Some(agent()), ..filter }, true),
    (|filter| ExecutionFilter { owner: Some(PrincipalId(Uuid::nil())), ..filter }, true),
    (|filter| ExecutionFilter { caller: Some("ann".to_owned()), ..filter }, true),
    (|filter| ExecutionFilter { unfinished: true, ..filter }, true),
    (|filter| ExecutionFilter { state: Some(State::Timeout), ..filter }, true),
    (|filter| ExecutionFilter { state: Some(State::Failed), ..filter }, true),
    (|filter| ExecutionFilter { state: Some(State::Waiting), ..filter }, true),
    (|filter| ExecutionFilter { outcome: Some(Outcome::Failed), ..filter }, true),
    (|filter| ExecutionFilter { code: Some(Code::Exit), ..filter }, true),
    (|filter| ExecutionFilter { schedule: Some("nightly".to_owned()), ..filter }, true),
    (|filter| ExecutionFilter { context: Some(ContextId("c".to_owned())), ..filter }, true),
    (|filter| ExecutionFilter { before: Some(ExecutionId::fresh()), ..filter }, true),
    // These queries read executions in the order of their ids until the page is full.
    (|filter| ExecutionFilter { category: Some(Category::System), ..filter }, false),
    (|filter| ExecutionFilter { agents: Some(vec![agent()]), ..filter }, false),
    (|filter| ExecutionFilter { trigger: Some("api".to_owned()), ..filter }, false),
    (|filter| ExecutionFilter { since: Some(second(0)), until: Some(second(1)), ..filter }, false),
];

async fn plan(store: &Store, filter: ExecutionFilter) -> String {
    let text = listing::query(filter).text().to_owned();
    let mut explain = sql::query(format!("EXPLAIN QUERY PLAN {text}"));
    for _ in 0..text.matches('$').count() {
        explain = explain.bind(None::<i64>);
    }
    let rows = explain.fetch_all(&store.readers).await.unwrap();
    rows.iter().map(|row| row.get("detail").unwrap()).collect::<Vec<&str>>().join("; ")
}

#[tokio::test]
async fn lists_use_an_index_and_no_sort() {
    let folder = TempDir::new().unwrap();
    let store = open(folder.path()).await;
    let page = ExecutionFilter { limit: 50, ..ExecutionFilter::default() };
    for (number, (first, is_found)) in FILTERS.iter().enumerate() {
        let alone = plan(&store, first(page.clone())).await;
        assert!(!alone.contains("TEMP B-TREE"), "{alone}");
        assert_eq!(is_indexed(&alone), *is_found, "{number}: {alone}");
        for (second, also_found) in &FILTERS {
            let both = plan(&store, second(first(page.clone()))).await;
            assert!(!both.contains("TEMP B-TREE"), "{both}");
            let is_found = *is_found || *also_found;
            // No list needs a sort, and each lookup by name uses an index
            assert_eq!(is_indexed(&both), is_found, "{number}: {both}");
        }
    }
}

/// Returns true if the plan uses an index. The index of unfinished executions is small, so a full scan of it is
/// allowed.
fn is_indexed(plan: &str) -> bool {
    plan.contains("SEARCH executions") || plan.contains("executions_unfinished")
}
