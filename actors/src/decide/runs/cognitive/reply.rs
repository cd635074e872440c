//! Reply of a model: the steps that it causes.

use serde_json::{Map, Value, json};

use super::arguments::check_arguments;
use super::{CognitiveRun, RunStep};
use crate::decide::output::truncation::{HeadAndTailLimits, truncate_to_tail, truncation_marker};
use crate::model::agent::cognitive::{ANSWER_ARGUMENT, CognitiveSpec, FINAL_ANSWER_CALL};
use crate::model::completion::{ModelReply, RequestedToolCall};
use crate::model::execution::step::{StepErrorCause, StepRecord, StepType};

/// Greatest number of calls in a reply.
pub const MAX_CALLS_PER_REPLY: usize = 16;
/// Greatest length of a reply's text and of an answer, in bytes.
const MAX_TEXT_BYTES: usize = 1 << 20;
/// Greatest length of the arguments of one call, in bytes.
const MAX_ARGUMENT_BYTES: usize = 256 << 10;
/// Greatest length of a result in the record and in the conversation, in bytes.
const MAX_RESULT_BYTES: usize = 20 << 10;
/// Greatest number of characters of a tool's name in an error.
const MAX_NAME_CHARS: usize = 64;

/// Call that may be sent.
struct AllowedCall {
    tool: String,
    arguments: Map<String, Value>,
    idempotent: bool,
}

/// Returns the steps of a reply for a turn.
#[must_use]
pub fn steps_of_reply(
    run: &CognitiveRun,
    spec: &CognitiveSpec,
    turn: u32,
    reply: ModelReply,
) -> Vec<RunStep> {
    let mut step_builder =
        ReplyStepBuilder { turn, next_number: run.next_step_number(), steps: Vec::new() };
    let ModelReply { text, calls, is_cut_off, .. } = reply;
    if text.len() > MAX_TEXT_BYTES {
        return step_builder.finish_unusable("is longer than 1 MiB");
    }
    if is_cut_off {
        return step_builder.finish_unusable("was cut off at the greatest length of a reply");
    }
    let text_call = if calls.is_empty() { parse_text_call(&text) } else { None };
    let is_text_a_call = text_call.is_some();
    let calls = text_call.map_or(calls, |call| vec![call]);
    if text.trim().is_empty() && calls.is_empty() {
        return step_builder.finish_unusable("is empty");
    }
    let checked_calls = check_calls(spec, &calls);
    // The error refers to the calls, so the conversation must contain them.
    let thought = match &checked_calls {
        Ok(_) if is_text_a_call => String::new(),
        Err(_) if !is_text_a_call => text_with_calls(text, &calls),
        Ok(_) | Err(_) => text,
    };
    if !thought.trim().is_empty() {
        step_builder.add(StepType::Thought, |record| record, thought);
    }
    match checked_calls {
        Ok(calls) => step_builder.finish_with_calls(calls),
        Err(reason) => step_builder.finish_refused(&reason, spec),
    }
}

/// Returns the steps of a response of the provider that is no reply.
#[must_use]
pub fn steps_of_unusable_response(run: &CognitiveRun, turn: u32, reason: &str) -> Vec<RunStep> {
    ReplyStepBuilder { turn, next_number: run.next_step_number(), steps: Vec::new() }
        .finish_unusable(reason)
}

/// Returns the text of a reply, followed by its calls in the form in which a text may contain a call.
fn text_with_calls(mut text: String, calls: &[RequestedToolCall]) -> String {
    for RequestedToolCall { tool, arguments } in calls.iter().take(MAX_CALLS_PER_REPLY) {
        let arguments = truncate_result(arguments.clone());
        let call = json!({"name": sanitized_name(tool), "arguments": arguments});
        text.push_str(&format!("\n{call}"));
    }
    text.trim_start().to_owned()
}

/// Returns a text of at most 20 KiB as it is, and the head and the tail of a longer one.
#[must_use]
pub fn truncate_result(mut text: String) -> String {
    if text.len() <= MAX_RESULT_BYTES {
        return text;
    }
    let limits = HeadAndTailLimits { head: MAX_RESULT_BYTES / 2, tail: MAX_RESULT_BYTES / 2 };
    let mut tail = text.split_off(text.floor_char_boundary(limits.head));
    let dropped = truncate_to_tail(&mut tail, limits.tail);
    text + &truncation_marker(dropped) + &tail
}

/// Steps of one reply, as they are written.
struct ReplyStepBuilder {
    turn: u32,
    next_number: u32,
    steps: Vec<RunStep>,
}

impl ReplyStepBuilder {
    /// Adds a step, and returns its number.
    fn add(
        &mut self,
        step_type: StepType,
        fill: impl FnOnce(StepRecord) -> StepRecord,
        text: String,
    ) -> u32 {
        let number = self.next_number;
        self.next_number += 1;
        self.steps
            .push(RunStep { record: fill(StepRecord::new(number, self.turn, step_type)), text });
        number
    }

    fn finish_with_calls(mut self, calls: Vec<AllowedCall>) -> Vec<RunStep> {
        for AllowedCall { tool, arguments, idempotent } in calls {
            let answer = (tool == FINAL_ANSWER_CALL).then(|| answer_text(&arguments));
            let arguments = Value::Object(arguments).to_string();
            let name = Some(tool.clone());
            let number = self.add(
                StepType::ToolCall,
                |record| StepRecord { tool: name, idempotent, ..record },
                arguments,
            );
            if let Some(answer) = answer {
                let (tool, call) = (Some(tool), Some(number));
                self.add(
                    StepType::Observation,
                    |record| StepRecord { tool, call, ..record },
                    answer,
                );
            }
        }
        self.steps
    }

    fn finish_unusable(mut self, reason: &str) -> Vec<RunStep> {
        let cause = Some(StepErrorCause::UnusableReply);
        let text = format!("the last reply could not be used: it {reason}");
        self.add(StepType::Error, |record| StepRecord { cause, ..record }, text);
        self.steps
    }

    fn finish_refused(mut self, reason: &str, spec: &CognitiveSpec) -> Vec<RunStep> {
        let cause = Some(StepErrorCause::RefusedReply);
        let names = spec.tools.iter().map(|tool| tool.name.as_str()).chain([FINAL_ANSWER_CALL]);
        let names: Vec<_> = names.map(|name| format!("`{name}`")).collect();
        let text = format!("{reason}. No call was made. The tools are: {}.", names.join(", "));
        self.add(StepType::Error, |record| StepRecord { cause, ..record }, text);
        self.steps
    }
}

/// Returns the answer as text: a text as it is, any other value as JSON.
fn answer_text(arguments: &Map<String, Value>) -> String {
    match arguments.get(ANSWER_ARGUMENT) {
        Some(Value::String(text)) => text.clone(),
        Some(value) => value.to_string(),
        None => String::new(),
    }
}

/// Checks the calls of a reply. A reply with one call that is not allowed causes no call at all.
///
/// # Errors
/// The reason as a sentence without a full stop.
fn check_calls(
    spec: &CognitiveSpec,
    calls: &[RequestedToolCall],
) -> Result<Vec<AllowedCall>, String> {
    if calls.is_empty() {
        return Err(format!(
            "The reply calls no tool. Call a tool, or give the answer with `{FINAL_ANSWER_CALL}`"
        ));
    }
    if calls.len() > MAX_CALLS_PER_REPLY {
        return Err(format!(
            "The reply has {} calls; {MAX_CALLS_PER_REPLY} are the most",
            calls.len()
        ));
    }
    let is_final = |call: &RequestedToolCall| call.tool == FINAL_ANSWER_CALL;
    if calls.len() > 1 && calls.iter().any(is_final) {
        return Err(format!("`{FINAL_ANSWER_CALL}` must be the only call of a reply"));
    }
    calls.iter().map(|call| check_call(spec, call)).collect()
}

fn check_call(spec: &CognitiveSpec, call: &RequestedToolCall) -> Result<AllowedCall, String> {
    let RequestedToolCall { tool: name, arguments } = call;
    let limit = if name == FINAL_ANSWER_CALL { MAX_TEXT_BYTES } else { MAX_ARGUMENT_BYTES };
    if arguments.len() > limit {
        return Err(format!(
            "The arguments of `{}` are longer than {limit} bytes",
            sanitized_name(name)
        ));
    }
    let not_an_object_reason =
        || format!("The arguments of `{}` are not a JSON object", sanitized_name(name));
    // Some models send no text for a call without arguments.
    let arguments = if arguments.trim().is_empty() { "{}" } else { arguments };
    let parsed: Map<String, Value> =
        serde_json::from_str(arguments).map_err(|_syntax| not_an_object_reason())?;
    if name == FINAL_ANSWER_CALL {
        let has_answer = parsed.get(ANSWER_ARGUMENT).is_some_and(|answer| !answer.is_null());
        if !has_answer || parsed.len() > 1 {
            return Err(format!(
                "`{FINAL_ANSWER_CALL}` needs `{ANSWER_ARGUMENT}`, and nothing else"
            ));
        }
        return Ok(AllowedCall { tool: name.clone(), arguments: parsed, idempotent: true });
    }
    let Some(tool) = spec.tool(name) else {
        return Err(format!("There is no tool `{}`", sanitized_name(name)));
    };
    check_arguments(tool, &parsed)
        .map_err(|reason| format!("The arguments of `{name}` are wrong: {reason}"))?;
    Ok(AllowedCall { tool: name.clone(), arguments: parsed, idempotent: tool.idempotent })
}

/// Returns a name that the model has written, without control characters and of bounded length.
fn sanitized_name(name: &str) -> String {
    name.chars().filter(|c| !c.is_control() && *c != '`').take(MAX_NAME_CHARS).collect()
}

/// Returns the call that a text consists of: a JSON object with `name` and `arguments`, also in a code
/// block of Markdown. Models that were not trained for calls write them so.
fn parse_text_call(text: &str) -> Option<RequestedToolCall> {
    let text = text.trim();
    let inner = text.strip_prefix("```").and_then(|rest| rest.strip_suffix("```"));
    let json = inner.map_or(text, |inner| inner.strip_prefix("json").unwrap_or(inner));
    let mut call: Map<String, Value> = serde_json::from_str(json.trim()).ok()?;
    let Some(Value::String(tool)) = call.remove("name") else { return None };
    let arguments = call.remove("arguments")?;
    let arguments = if call.is_empty() { arguments.to_string() } else { return None };
    Some(RequestedToolCall { tool, arguments })
}
