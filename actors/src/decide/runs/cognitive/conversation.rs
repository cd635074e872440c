//! Conversation with the model: the messages and the tools of the next request, by the steps of the run.

use serde_json::json;

use super::arguments::input_schema;
use super::{CognitiveRun, RunStep};
use crate::model::agent::cognitive::{ANSWER_ARGUMENT, CognitiveSpec, FINAL_ANSWER_CALL, ToolSpec};
use crate::model::completion::{
    CompletionRequest, ModelMessage, ModelToolCall, OfferedTool, ToolDefinitions,
};
use crate::model::execution::step::StepType;

/// Instructions for each model.
const SYSTEM_TEXT: &str = "You answer a request by calling tools. Each of your replies must call at least one tool. \
     The result of each call follows. When you have the answer, call `final_answer` as the only call of your reply. \
     If a call fails, its error follows instead of a result: do not invent a result.";

/// Returns the request for the next reply of the model. `mcp_definitions` are the definitions of the tools of MCP
/// servers.
#[must_use]
pub fn completion_request(
    run: &CognitiveRun,
    (spec, mcp_definitions): (&CognitiveSpec, &ToolDefinitions),
    input: &str,
) -> CompletionRequest {
    CompletionRequest {
        model: spec.model.clone(),
        temperature: spec.temperature,
        messages: messages(run.steps(), &spec.instructions, input),
        tools: offered_tools(spec, mcp_definitions),
    }
}

/// Returns the tools of an agent, and last the one that gives the answer.
fn offered_tools(spec: &CognitiveSpec, mcp_definitions: &ToolDefinitions) -> Vec<OfferedTool> {
    let tools = spec.tools.iter().map(|tool| offered_tool(tool, mcp_definitions));
    let answer = json!({"description": "The answer to the request: a text, or any JSON value."});
    let final_answer = OfferedTool {
        name: FINAL_ANSWER_CALL.to_owned(),
        description: "Gives the answer to the request, and ends the work.".to_owned(),
        parameters: json!({
            "type": "object",
            "properties": {ANSWER_ARGUMENT: answer},
            "required": [ANSWER_ARGUMENT],
            "additionalProperties": false,
        }),
    };
    tools.chain([final_answer]).collect()
}

fn offered_tool(tool: &ToolSpec, mcp_definitions: &ToolDefinitions) -> OfferedTool {
    let ToolSpec { name, description, inputs, .. } = tool;
    let mcp_definition = mcp_definitions.get(name);
    let parameters = match (inputs, mcp_definition) {
        (Some(inputs), _) => input_schema(inputs),
        (None, Some(definition)) => definition.parameters.clone(),
        // The call will report why the server does not answer.
        (None, None) => json!({"type": "object"}),
    };
    let server_description = || mcp_definition.map(|definition| definition.description.clone());
    let description = match description.as_str() {
        "" => server_description().unwrap_or_default(),
        configured => configured.to_owned(),
    };
    OfferedTool { name: name.clone(), description, parameters }
}

fn messages(steps: &[RunStep], instructions: &str, input: &str) -> Vec<ModelMessage> {
    let system = match instructions {
        "" => SYSTEM_TEXT.to_owned(),
        instructions => format!("{SYSTEM_TEXT}\n\n{instructions}"),
    };
    let mut messages = vec![ModelMessage::System(system), ModelMessage::User(input.to_owned())];
    for turn in steps.chunk_by(|step, next| step.record.turn == next.record.turn) {
        add_turn(turn, &mut messages);
    }
    messages
}

/// Adds the messages of one turn: the reply of the model, and the results of its calls or the error about it.
fn add_turn(turn: &[RunStep], messages: &mut Vec<ModelMessage>) {
    let of_type = |step_type| turn.iter().filter(move |step| step.record.step_type == step_type);
    let text = of_type(StepType::Thought).map(|step| step.text.clone()).collect::<String>();
    let calls: Vec<_> = of_type(StepType::ToolCall)
        .map(|step| ModelToolCall {
            id: call_id(step.record.number),
            tool: step.record.tool.clone().unwrap_or_default(),
            arguments: step.text.clone(),
        })
        .collect();
    if !text.is_empty() || !calls.is_empty() {
        messages.push(ModelMessage::Assistant { text, calls });
    }
    for step in turn {
        let text = match step.record.step_type {
            StepType::Observation => step.text.clone(),
            StepType::Error => format!("Error: {}", step.text),
            StepType::Thought | StepType::ToolCall => continue,
        };
        messages.push(match step.record.call {
            Some(call) => ModelMessage::ToolResult { call_id: call_id(call), text },
            None => ModelMessage::User(text),
        });
    }
}

/// Returns the id in the conversation of the call that is this step. The run does not store the ids of the provider:
/// after a restart, they would refer to nothing.
fn call_id(step_number: u32) -> String {
    format!("call-{step_number}")
}
