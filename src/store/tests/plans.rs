//! How SQLite reads a listing: never by sorting, and from an index wherever something is named.

use algonius_actors::model::code::{Category, Code};
use algonius_actors::model::execution::{Outcome, State};
use algonius_actors::model::id::{ContextId, ExecutionId, PrincipalId};
use uuid::Uuid;

use super::*;
use crate::store::conformance::agent;
use crate::store::listing;

type Narrow = fn(Filter) -> Filter;

/// What may be named, and whether an index finds it.
const FILTERS: [(Narrow, bool); 14] = [
    (|filter| Filter { agent: Some(agent()), ..filter }, true),
    (|filter| Filter { owner: Some(PrincipalId(Uuid::nil())), ..filter }, true),
    (|filter| Filter { caller: Some("ann".to_owned()), ..filter }, true),
    (|filter| Filter { unfinished: true, ..filter }, true),
    (|filter| Filter { state: Some(State::Timeout), ..filter }, true),
    (|filter| Filter { outcome: Some(Outcome::Failed), ..filter }, true),
    (|filter| Filter { code: Some(Code::Exit), ..filter }, true),
    (|filter| Filter { schedule: Some("nightly".to_owned()), ..filter }, true),
    (|filter| Filter { context: Some(ContextId("c".to_owned())), ..filter }, true),
    (|filter| Filter { before: Some(ExecutionId::fresh()), ..filter }, true),
    // These are read in the order of the ids until the page is full.
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
async fn no_listing_is_sorted_and_what_is_named_is_found_by_an_index() {
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
            assert_eq!(is_indexed(&both), is_found, "{number}: {both}");
        }
    }
}

/// The index of what has not ended is small: it may be read from end to end.
fn is_indexed(plan: &str) -> bool {
    plan.contains("SEARCH executions") || plan.contains("executions_unfinished")
}
