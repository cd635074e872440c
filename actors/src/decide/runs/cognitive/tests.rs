//! Tests of the decisions of a cognitive agent's run.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::Arc;

use proptest::prelude::*;
use serde_json::Value;

use super::conversation::completion_request;
use super::reply::{
    MAX_CALLS_PER_REPLY, steps_of_reply, steps_of_unusable_response, truncate_result,
};
use super::*;
use crate::model::agent::cognitive::{
    CognitiveLayer, CognitiveSpec, InputType, ModelReference, ToolHandler, ToolInput, ToolSpec,
};
use crate::model::completion::{
    ModelMessage, ModelReply, RequestedToolCall, ToolDefinition, ToolDefinitions,
};

fn tool(name: &str, idempotent: bool, inputs: &[(&str, InputType, bool)]) -> Arc<ToolSpec> {
    let input = |(name, input_type, optional): &(&str, InputType, bool)| {
        let description = "Something.".to_owned();
        let (input_type, optional) = (*input_type, *optional);
        ((*name).to_owned(), ToolInput { input_type, description, optional })
    };
    Arc::new(ToolSpec {
        name: name.to_owned(),
        description: String::new(),
        inputs: Some(inputs.iter().map(input).collect::<BTreeMap<_, _>>()),
        idempotent,
        timeout: Duration::from_secs(1),
        handler: ToolHandler::Clock,
    })
}

fn spec() -> CognitiveSpec {
    let inputs = [("count", InputType::Integer, false), ("note", InputType::String, true)];
    CognitiveSpec {
        layer: CognitiveLayer::Abstract,
        model: ModelReference { provider: "p".to_owned(), name: "m".to_owned() },
        instructions: "Be short.".to_owned(),
        temperature: 0.0,
        max_steps: NonZeroU32::MIN,
        tools: vec![tool("look", true, &[]), tool("push", false, &inputs)],
        backends: Vec::new(),
    }
}

fn run(max_steps: u32) -> CognitiveRun {
    CognitiveRun::new(StepPlan { model: "p/m".to_owned(), max_steps })
}

fn reply(calls: &[(&str, &str)]) -> ModelReply {
    let call = |(tool, arguments): &(&str, &str)| RequestedToolCall {
        tool: (*tool).to_owned(),
        arguments: (*arguments).to_owned(),
    };
    ModelReply { calls: calls.iter().map(call).collect(), ..ModelReply::default() }
}

fn text_reply(text: &str) -> ModelReply {
    ModelReply { text: text.to_owned(), ..ModelReply::default() }
}

/// Returns the steps of a reply in the first turn, each as `type: text`.
fn steps(reply: ModelReply) -> Vec<String> {
    let steps = steps_of_reply(&run(9), &spec(), 1, reply);
    steps.iter().map(|step| format!("{}: {}", step.record.step_type.as_str(), step.text)).collect()
}

/// Returns the reason why a reply is refused, or an empty text.
fn refusal_reason(reply: ModelReply) -> String {
    let steps = steps_of_reply(&run(9), &spec(), 1, reply);
    let calls = steps.iter().filter(|step| step.record.step_type == StepType::ToolCall).count();
    let error = steps.iter().find(|step| step.record.step_type == StepType::Error);
    assert_eq!(error.is_some(), calls == 0, "no call of a refused reply is sent");
    error.map(|error| error.text.clone()).unwrap_or_default()
}

#[test]
fn a_reply_is_a_thought_and_its_calls_in_order() {
    let text_and_calls = ModelReply {
        text: "hm".to_owned(),
        ..reply(&[("look", ""), ("push", r#"{"count": 2, "note": null}"#)])
    };
    assert_eq!(
        steps(text_and_calls),
        ["thought: hm", "tool-call: {}", r#"tool-call: {"count":2,"note":null}"#]
    );
    assert_eq!(
        steps(reply(&[("final_answer", r#"{"answer": {"a": 1}}"#)])),
        [r#"tool-call: {"answer":{"a":1}}"#, r#"observation: {"a":1}"#]
    );
}

#[test]
fn a_call_may_be_written_as_text() {
    for form in [
        r#"{"name": "look", "arguments": {}}"#,
        "```json\n{\"name\": \"look\", \"arguments\": {}}\n```",
        "```\n{\"name\": \"look\", \"arguments\": {}}```",
    ] {
        assert_eq!(steps(text_reply(form)), ["tool-call: {}"], "{form}");
    }
    for other in [r#"{"name": "look"}"#, r#"{"name":"look","arguments":{},"x":1}"#, "look {}"] {
        assert!(
            refusal_reason(text_reply(other)).starts_with("The reply calls no tool"),
            "{other}"
        );
    }
}

#[test]
fn a_reply_with_a_wrong_call_sends_none() {
    let cases = [
        (reply(&[("fly", "{}")]), "There is no tool `fly`"),
        (reply(&[("look", "{}"), ("fly", "{}")]), "There is no tool `fly`"),
        (reply(&[("look", "[]")]), "The arguments of `look` are not a JSON object"),
        (reply(&[("look", r#"{"a": 1}"#)]), "wrong: the tool has no arguments"),
        (reply(&[("push", "{}")]), "wrong: `count` is needed"),
        (reply(&[("push", r#"{"count": 1.5}"#)]), "`count` must be of the type integer"),
        (reply(&[("push", r#"{"count": 1, "b": 1}"#)]), "no arguments other than `count`, `note`"),
        (reply(&[("look", "{}"), ("final_answer", r#"{"answer": 1}"#)]), "must be the only call"),
        (reply(&[("final_answer", "{}")]), "needs `answer`, and nothing else"),
        (reply(&[("final_answer", r#"{"answer": null}"#)]), "needs `answer`"),
        (reply(&[("look", "{}"); MAX_CALLS_PER_REPLY + 1]), "has 17 calls; 16 are the most"),
    ];
    for (reply, reason) in cases {
        let refusal = refusal_reason(reply);
        assert!(refusal.contains(reason), "{refusal} instead of {reason}");
        assert!(refusal.ends_with("The tools are: `look`, `push`, `final_answer`."), "{refusal}");
    }
    let long = format!(r#"{{"count": 1, "note": "{}"}}"#, "x".repeat(256 << 10));
    assert!(refusal_reason(reply(&[("push", &long)])).contains("longer than 262144 bytes"));
    assert_eq!(refusal_reason(reply(&[("look", "{}"); MAX_CALLS_PER_REPLY])), "");
}

#[test]
fn a_name_of_the_model_cannot_break_the_line() {
    let name = "a`b\u{1b}[2J\n".to_owned() + &"x".repeat(1000);
    let refusal = refusal_reason(reply(&[(&name, "{}")]));
    let displayed = format!("ab[2J{}", "x".repeat(59));
    let tools = "`look`, `push`, `final_answer`";
    let expected =
        format!("There is no tool `{displayed}`. No call was made. The tools are: {tools}.");
    assert_eq!(refusal, expected);
}

#[test]
fn a_reply_that_cannot_be_used_is_one_error() {
    let cut_off_reply = ModelReply { is_cut_off: true, ..reply(&[("look", "{}")]) };
    for unusable in
        [text_reply(""), text_reply(" \n"), cut_off_reply, text_reply(&"x".repeat((1 << 20) + 1))]
    {
        let steps = steps_of_reply(&run(9), &spec(), 1, unusable);
        let causes: Vec<_> = steps.iter().map(|step| step.record.cause).collect();
        assert_eq!(causes, [Some(StepErrorCause::UnusableReply)]);
    }
}

#[test]
fn only_unusable_replies_in_a_row_end_the_run() {
    let mut run = run(20);
    for turn in [1, 2] {
        run.apply(steps_of_unusable_response(&run, turn, "is no JSON"));
    }
    run.apply(steps_of_reply(&run, &spec(), 3, text_reply("words")));
    for turn in [4, 5, 6] {
        assert_eq!(run.next_action(), CognitiveAction::RequestReply(turn));
        run.apply(steps_of_unusable_response(&run, turn, "is no JSON"));
    }
    assert_eq!(run.next_action(), CognitiveAction::FailUnusableReplies);
}

#[test]
fn a_restored_run_repeats_only_calls_that_may_be_repeated() {
    let mut interrupted_run = run(9);
    let calls = [("push", r#"{"count":1}"#), ("look", "{}"), ("push", r#"{"count":2}"#)];
    interrupted_run.apply(steps_of_reply(&interrupted_run, &spec(), 1, reply(&calls)));
    let restore_run =
        |run: &CognitiveRun| CognitiveRun::restore(run.plan().clone(), run.steps().to_vec());
    let mut restored_run = restore_run(&interrupted_run);
    let CognitiveAction::RecordUnknownOutcome(call) = restored_run.next_action() else {
        panic!("{restored_run:?}")
    };
    assert_eq!(call.record.number, 1);
    let end_step = restored_run.unknown_outcome_step(&call.record);
    assert_eq!(
        (end_step.record.call, end_step.record.cause),
        (Some(1), Some(StepErrorCause::Interrupted))
    );
    restored_run.apply(vec![end_step]);
    // The calls after the interrupted one were never sent.
    assert!(
        matches!(restored_run.next_action(), CognitiveAction::Call(call) if call.record.number == 2)
    );
    let mut restored_again = restore_run(&restored_run);
    assert!(
        matches!(restored_again.next_action(), CognitiveAction::Call(call) if call.record.number == 2)
    );
    let CognitiveAction::Call(call) = restored_again.next_action() else {
        panic!("{restored_again:?}")
    };
    let end_step =
        restored_again.call_end_step(&call.record, Ok("seen".to_owned()), Duration::from_millis(3));
    restored_again.apply(vec![end_step]);
    assert!(
        matches!(restored_again.next_action(), CognitiveAction::Call(call) if call.record.number == 3)
    );
}

#[test]
fn the_conversation_shows_each_reply_with_its_results() {
    let mut run = run(9);
    run.apply(steps_of_reply(&run, &spec(), 1, text_reply("words")));
    run.apply(steps_of_reply(&run, &spec(), 2, reply(&[("look", "{}")])));
    let CognitiveAction::Call(call) = run.next_action() else { panic!("{run:?}") };
    let end_step = run.call_end_step(&call.record, Err("dark".to_owned()), Duration::ZERO);
    run.apply(vec![end_step]);
    run.apply(steps_of_unusable_response(&run, 3, "is empty"));
    let request = completion_request(&run, (&spec(), &ToolDefinitions::new()), "input");
    let [system, user, words, error, call, result, unusable] = request.messages.as_slice() else {
        panic!("{:?}", request.messages)
    };
    assert!(matches!(system, ModelMessage::System(text) if text.ends_with("\n\nBe short.")));
    assert_eq!(*user, ModelMessage::User("input".to_owned()));
    assert!(
        matches!(words, ModelMessage::Assistant { text, calls } if text == "words" && calls.is_empty())
    );
    assert!(matches!(error, ModelMessage::User(text) if text.contains("calls no tool")));
    let ModelMessage::Assistant { calls, .. } = call else { panic!("{call:?}") };
    assert_eq!((calls[0].id.as_str(), calls[0].tool.as_str()), ("call-3", "look"));
    let expected =
        ModelMessage::ToolResult { call_id: "call-3".to_owned(), text: "Error: dark".to_owned() };
    assert_eq!(*result, expected);
    assert!(matches!(unusable, ModelMessage::User(text) if text.contains("is empty")));
    let names: Vec<_> = request.tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["look", "push", "final_answer"]);
    let push = &request.tools[1].parameters;
    assert_eq!(push["required"], serde_json::json!(["count"]));
    assert_eq!(push["properties"]["count"]["type"], "integer");
}

#[test]
fn a_server_defines_the_tools_without_inputs() {
    let server_tool = |name: &str, description: &str| {
        let handler = ToolHandler::Mcp;
        let description = description.to_owned();
        let tool = tool(name, false, &[]);
        Arc::new(ToolSpec { inputs: None, description, handler, ..(*tool).clone() })
    };
    let tools = vec![server_tool("a", ""), server_tool("b", "Of the file."), server_tool("c", "")];
    let spec = CognitiveSpec { tools, ..spec() };
    let parameters = serde_json::json!({"type": "object", "properties": {"x": {}}});
    let definition =
        ToolDefinition { description: "Of the server.".to_owned(), parameters: parameters.clone() };
    let definitions = ["a", "b"].map(|name| (name.to_owned(), definition.clone()));
    let request =
        completion_request(&run(9), (&spec, &ToolDefinitions::from(definitions)), "input");
    let offered: Vec<_> =
        request.tools.iter().map(|it| (it.description.as_str(), &it.parameters)).take(3).collect();
    let any_object = serde_json::json!({"type": "object"});
    let expected =
        [("Of the server.", &parameters), ("Of the file.", &parameters), ("", &any_object)];
    assert_eq!(offered, expected);
    // The server checks the arguments.
    let steps = steps_of_reply(&run(9), &spec, 1, reply(&[("a", r#"{"unknown": 1}"#)]));
    assert_eq!(steps.last().unwrap().record.step_type, StepType::ToolCall);
}

#[test]
fn a_run_with_too_much_text_sends_no_further_request() {
    let mut run = run(50);
    let long = "x".repeat((256 << 10) - 100);
    let arguments = format!(r#"{{"count":1,"note":"{long}"}}"#);
    let mut turn = 1;
    while run.next_action() == CognitiveAction::RequestReply(turn) {
        assert!(turn < 4, "{turn}");
        run.apply(steps_of_reply(
            &run,
            &spec(),
            turn,
            reply(&[("push", arguments.as_str()); MAX_CALLS_PER_REPLY]),
        ));
        while let CognitiveAction::Call(call) = run.next_action() {
            let end_step = run.call_end_step(&call.record, Ok(String::new()), Duration::ZERO);
            run.apply(vec![end_step]);
        }
        turn += 1;
    }
    assert_eq!(run.next_action(), CognitiveAction::FailTextTooLong);
}

#[test]
fn a_long_result_keeps_its_head_and_its_tail() {
    let long = format!("head{}tail", "é".repeat(50_000));
    let short = truncate_result(long);
    assert!(short.len() < (20 << 10) + 100, "{}", short.len());
    assert!(short.starts_with("head") && short.ends_with("tail") && short.contains("dropped"));
    assert_eq!(truncate_result("x".repeat(20 << 10)).len(), 20 << 10);
}

/// Reply of a model that may do anything.
fn any_reply() -> impl Strategy<Value = ModelReply> {
    let names = prop::sample::select(vec!["look", "push", "final_answer", "fly", ""]);
    let arguments = prop::sample::select(vec![
        "",
        "{}",
        "[]",
        "{",
        r#"{"count":1}"#,
        r#"{"answer":"x"}"#,
        r#"{"answer":""}"#,
    ]);
    let calls = prop::collection::vec((names, arguments), 0..4);
    (calls, "[a-z ]{0,3}", any::<bool>()).prop_map(|(calls, text, is_cut_off)| ModelReply {
        text,
        is_cut_off: is_cut_off && calls.len() > 2,
        ..reply(&calls)
    })
}

proptest! {
    /// Whatever the model returns and wherever a crash interrupts the run: it ends, its numbers have no gap, each call
    /// has one end, and no call that must not be repeated is sent twice.
    #[test]
    fn each_run_ends(
        replies in prop::collection::vec(any_reply(), 1..8),
        crashes in prop::collection::vec(0_u8..4, 1..60),
    ) {
        let (mut run, mut sent_call_counts) = (run(6), BTreeMap::<u32, u32>::new());
        let (mut replies, mut crashes) = (replies.into_iter().cycle(), crashes.into_iter().chain(std::iter::repeat(1)));
        for _ in 0..400 {
            let is_interrupted = crashes.next().unwrap_or_default() == 0;
            let steps = match run.next_action() {
                CognitiveAction::RequestReply(_) if is_interrupted => None,
                CognitiveAction::RequestReply(turn) => {
                    Some(steps_of_reply(&run, &spec(), turn, replies.next().unwrap_or_default()))
                }
                CognitiveAction::Call(call) => {
                    *sent_call_counts.entry(call.record.number).or_default() += 1;
                    if is_interrupted { None } else {
                        Some(vec![run.call_end_step(&call.record, Ok("ok".to_owned()), Duration::ZERO)])
                    }
                }
                CognitiveAction::RecordUnknownOutcome(call) => Some(vec![run.unknown_outcome_step(&call.record)]),
                _ => break,
            };
            match steps {
                Some(steps) => run.apply(steps),
                None => run = CognitiveRun::restore(run.plan().clone(), run.steps().to_vec()),
            }
        }
        let is_ended = matches!(
            run.next_action(),
            CognitiveAction::Finish(_) | CognitiveAction::FailTurnsExhausted | CognitiveAction::FailUnusableReplies
        );
        prop_assert!(is_ended, "{run:?}");
        for (step, number) in run.steps().iter().zip(1..) {
            prop_assert_eq!(step.record.number, number);
            prop_assert!(step.record.turn <= 6);
            if step.record.step_type == StepType::ToolCall {
                let ends = run.steps().iter().filter(|end| end.record.call == Some(number)).count();
                prop_assert_eq!(ends, 1);
                let count = sent_call_counts.get(&number).copied().unwrap_or_default();
                prop_assert!(step.record.idempotent || count <= 1);
                prop_assert!(serde_json::from_str::<Value>(&step.text).is_ok());
            }
        }
    }
}
