//! `algonius tasks show --steps`: the steps of a cognitive agent's run.

use algonius_actors::model::execution::step::{StepRecord, StepType};

use crate::cli::client::ServiceClient;
use crate::cli::error::CliError;
use crate::cli::output::CliOutput;
use crate::platform::terminal_text;
use crate::wire::api::steps::{CallState, StepEntry, StepList};

/// Shows the steps of a task.
pub(crate) async fn show_steps(
    client: &ServiceClient,
    id: &str,
    out: &CliOutput,
) -> Result<(), CliError> {
    let mut list = StepList { steps: Vec::new(), next: None };
    let mut after = Some(0);
    while let Some(number) = after {
        let path = format!("/api/v1/executions/{id}/steps?after={number}");
        let page: StepList = client.get(&path).await?;
        after = page.next;
        list.steps.extend(page.steps);
    }
    if out.is_json() {
        out.print_json(&list);
        return Ok(());
    }
    for step in &list.steps {
        out.print_line(&step_line(step));
    }
    if list.steps.is_empty() {
        out.print_note("this task has no steps: its agent is not cognitive, or has not started");
    }
    Ok(())
}

/// Returns a step as one line: the model and the tools choose the text, and a line break in it would look like another
/// step.
fn step_line(step: &StepEntry) -> String {
    let StepRecord { number, turn, step_type, tool, call, duration_ms, .. } = &step.row;
    let subject = match (step_type, tool) {
        (StepType::Thought, _) => "thought".to_owned(),
        (StepType::ToolCall, Some(tool)) => format!("call {tool}"),
        (StepType::Observation, Some(tool)) => format!("result of {tool}"),
        (StepType::Error, Some(tool)) => format!("error of {tool}"),
        (step_type, None) => step_type.as_str().to_owned(),
    };
    let call = call.map(|call| format!(" ({call})")).unwrap_or_default();
    let state = match step.state {
        Some(CallState::Started) => ", no end",
        Some(CallState::Unknown) => ", outcome unknown",
        Some(CallState::Done) | None => "",
    };
    let duration = duration_ms.map(|duration| format!(", {duration} ms")).unwrap_or_default();
    let text = terminal_text::escape_showing_line_breaks(&step.text);
    let truncation_mark =
        if step.range.to - step.range.from > step.text.len() as u64 { " …" } else { "" };
    format!("{number:>4}  turn {turn}  {subject}{call}{state}{duration}: {text}{truncation_mark}")
}
