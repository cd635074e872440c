//! Steps of runs of cognitive agents.

use serde_json::Value;

use super::Service;
use super::client::{completed_with, id, outcome};
use super::mock_model::{calls, directed, final_answer};

/// Returns the steps of a run.
pub(crate) async fn steps(service: &Service, id: &str) -> Vec<Value> {
    let list = service.get(&format!("/api/v1/executions/{id}/steps")).await.json();
    list["steps"].as_array().unwrap().clone()
}

/// Calls tools one after the other, and returns the type and the text of the end of each call.
pub(crate) async fn ends_of_calls(
    service: &Service,
    agent: &str,
    list: &[(&str, Value)],
) -> Vec<(String, String)> {
    let turns = list.iter().map(|call| calls(std::slice::from_ref(call)));
    let turns: Vec<_> = turns.chain([final_answer("done")]).collect();
    let task = service.send(agent, &directed("go", &turns)).await;
    assert_eq!(outcome(&task), completed_with("done"), "{task}");
    let steps = steps(service, &id(&task)).await;
    let ends = steps.iter().filter(|step| step["call"].is_number());
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut ends: Vec<_> =
        ends.map(|step| (text(&step["stepType"]), text(&step["text"]))).collect();
    assert_eq!(ends.pop(), Some(("observation".to_owned(), "done".to_owned())));
    ends
}

/// Returns the end of a call with this result.
pub(crate) fn observation(text: impl Into<String>) -> (String, String) {
    ("observation".to_owned(), text.into())
}

/// Returns the end of a call with this failure.
pub(crate) fn error(text: impl Into<String>) -> (String, String) {
    ("error".to_owned(), text.into())
}
