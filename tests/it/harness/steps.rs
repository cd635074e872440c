//! Steps of runs of cognitive agents.

use serde_json::Value;

use super::ServiceProcess;
use super::client::{completed_outcome, task_id, task_outcome};
use super::mock_model::{final_answer_turn, prompt_with_turns, turn_with_calls};

/// Returns the steps of a run.
pub(crate) async fn fetch_steps(service: &ServiceProcess, id: &str) -> Vec<Value> {
    let list = service.get(&format!("/api/v1/executions/{id}/steps")).await.json();
    list["steps"].as_array().unwrap().clone()
}

/// Calls tools one after the other, and returns the type and the text of the end of each call.
pub(crate) async fn run_tool_calls(
    service: &ServiceProcess,
    agent: &str,
    tool_calls: &[(&str, Value)],
) -> Vec<(String, String)> {
    let turns = tool_calls.iter().map(|call| turn_with_calls(std::slice::from_ref(call)));
    let turns: Vec<_> = turns.chain([final_answer_turn("done")]).collect();
    let task = service.send(agent, &prompt_with_turns("go", &turns)).await;
    assert_eq!(task_outcome(&task), completed_outcome("done"), "{task}");
    let steps = fetch_steps(service, &task_id(&task)).await;
    let call_ends = steps.iter().filter(|step| step["call"].is_number());
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut result_steps: Vec<_> =
        call_ends.map(|step| (text(&step["stepType"]), text(&step["text"]))).collect();
    assert_eq!(result_steps.pop(), Some(("observation".to_owned(), "done".to_owned())));
    result_steps
}

/// Returns the end of a call with this result.
pub(crate) fn observation_step(text: impl Into<String>) -> (String, String) {
    ("observation".to_owned(), text.into())
}

/// Returns the end of a call with this failure.
pub(crate) fn error_step(text: impl Into<String>) -> (String, String) {
    ("error".to_owned(), text.into())
}
