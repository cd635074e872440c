//! Query plans of lists: SQLite never sorts, and it uses an index for each named condition.

use algonius_actors::model::code::{Category, Code};
use algonius_actors::model::execution::{Outcome, State};
use algonius_actors::model::id::{ContextId, ExecutionId, PrincipalId};
use uuid::Uuid;

use super::*;
use crate::conformance::agent;
use crate::queries::listing;

type Narrow = fn(Filter) -> Filter;

/// Filters, each with true if an index serves it.
const FILTERS: [(Narrow, bool); 16] = [
    (|filter| Filter { agent: Some(agent()), ..filter }, true),
    (|filter| Filter { owner: Some(PrincipalId(Uuid::nil())), ..filter }, true),
    (|filter| Filter { caller: Some("ann".to_owned()), ..filter }, true),
    (|filter| Filter { unfinished: true, ..filter }, true),
    (|filter| Filter { state: Some(State::Timeout), ..filter }, true),
    (|filter| Filter { state: Some(State::Failed), ..filter }, true),
    (|filter| Filter { state: Some(State::Waiting), ..filter }, true),
    (|filter| Filter { outcome: Some(Outcome::Failed), ..filter }, true),
    (|filter| Filter { code: Some(Code::Exit), ..filter }, true),
    (|filter| Filter { schedule: Some("nightly".to_owned()), ..filter }, true),
    (|filter| Filter { context: Some(ContextId("c".to_owned())), ..filter }, true),
    (|filter| Filter { before: Some(ExecutionId::fresh()), ..filter }, true),
    // These queries read executions in the order of their ids until the page is full.
    (|filter| Filter { category: Some(Category::System), ..filter }, false),
    (|filter| Filter { agents: Some(vec![agent()]), ..filter }, false),
    (|filter| Filter { trigger: Some("api".to_owned()), ..filter }, false),
    (|filter| Filter { since: Some(second(0)), until: Some(second(1)), ..filter }, false),
];

async fn plan(store: &Store, filter: Filter) -> String {
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
    let page = Filter { limit: 50, ..Filter::default() };
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
