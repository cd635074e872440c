//! Scripted model and tools of cognitive agents. They outlive a process of the service, as the real ones do.

use std::collections::{BTreeMap, HashMap};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::watch;
use tokio::time::sleep;

use super::fixtures::agent_spec;
use crate::model::agent::cognitive::{
    CognitiveLayer, CognitiveSpec, InputType, ModelReference, ToolHandler, ToolInput, ToolSpec,
};
use crate::model::agent::{AgentSpec, RetrySpec, WorkerSpec};
use crate::model::completion::{
    CompletionRequest, ModelMessage, ModelReply, RequestedToolCall, ToolDefinitions,
};
use crate::model::observation::telemetry_events::TokenCounts;
use crate::ports::completion::{CompletionClient, CompletionError};
use crate::ports::tools::{TextRedactor, ToolExecutor, ToolInvocation, ToolStopReceiver};

/// Time of a reply.
const REPLY_DELAY: Duration = Duration::from_secs(10);
/// Time of a call.
const CALL_DURATION: Duration = Duration::from_secs(10);

/// Scripted result of a turn.
pub type ScriptedReply = Result<ModelReply, CompletionError>;

/// Scripted model and tools.
#[derive(Default)]
pub struct ScriptedModelAndTools(watch::Sender<CognitionState>);

#[derive(Default)]
struct CognitionState {
    replies: HashMap<String, Vec<ScriptedReply>>,
    tool_results: HashMap<String, Result<String, String>>,
    requests: Vec<CompletionRequest>,
    started_calls: Vec<String>,
    unfinished_call_count: usize,
}

impl CognitionState {
    /// Returns the reply of a turn; the last one serves all later turns. A failure of the provider happens once: the
    /// next request of the same turn has the next reply.
    fn reply_of_turn(&mut self, input: &str, turn: usize) -> Option<ScriptedReply> {
        let replies = self.replies.get_mut(input)?;
        let turn = turn.min(replies.len().checked_sub(1)?);
        match replies.get(turn)? {
            Err(CompletionError::Failed(_)) => Some(replies.remove(turn)),
            reply => Some(reply.clone()),
        }
    }
}

impl ScriptedModelAndTools {
    /// Scripts the replies to this input, one for each turn.
    pub fn script_replies(&self, input: &str, replies: impl IntoIterator<Item = ScriptedReply>) {
        let replies = replies.into_iter().collect();
        self.0.send_modify(|state| _ = state.replies.insert(input.to_owned(), replies));
    }

    /// Scripts the result of a tool; without a script, a tool returns its arguments.
    pub fn script_tool(&self, name: &str, result: Result<&str, &str>) {
        let result = result.map(str::to_owned).map_err(str::to_owned);
        self.0.send_modify(|state| _ = state.tool_results.insert(name.to_owned(), result));
    }

    /// Returns the requests to the model so far.
    pub fn requests(&self) -> Vec<CompletionRequest> {
        self.0.borrow().requests.clone()
    }

    /// Returns the effects of calls so far: the name of the tool and its arguments.
    pub fn started_calls(&self) -> Vec<String> {
        self.0.borrow().started_calls.clone()
    }

    /// Returns the number of calls that have not returned. A call whose future was dropped never returns.
    pub fn unfinished_call_count(&self) -> usize {
        self.0.borrow().unfinished_call_count
    }
}

#[async_trait]
impl CompletionClient for ScriptedModelAndTools {
    async fn complete(&self, request: CompletionRequest) -> Result<ModelReply, CompletionError> {
        let turn = reply_count(&request.messages);
        let input = match request.messages.get(1) {
            Some(ModelMessage::User(input)) => input.clone(),
            _ => String::new(),
        };
        self.0.send_modify(|state| state.requests.push(request));
        sleep(REPLY_DELAY).await;
        let mut reply = None;
        self.0.send_modify(|state| reply = state.reply_of_turn(&input, turn));
        reply.unwrap_or_else(|| Ok(ModelReply::default()))
    }
}

#[async_trait]
impl ToolExecutor for ScriptedModelAndTools {
    async fn mcp_tool_definitions(&self, _: &[Arc<ToolSpec>], _: &TextRedactor) -> ToolDefinitions {
        ToolDefinitions::new()
    }

    async fn call(
        &self,
        call: ToolInvocation,
        mut stop: ToolStopReceiver,
    ) -> Result<String, String> {
        let ToolInvocation { tool, arguments, .. } = call;
        let text = serde_json::Value::Object(arguments).to_string();
        let call_text = format!("{} {text}", tool.name);
        self.0.send_modify(|state| {
            state.started_calls.push(call_text);
            state.unfinished_call_count += 1;
        });
        let work = async {
            sleep(CALL_DURATION).await;
            self.0.borrow().tool_results.get(&tool.name).cloned().unwrap_or(Ok(text))
        };
        let result = stop.run_until_stopped(work).await;
        // The end of a process takes time too.
        tokio::task::yield_now().await;
        self.0.send_modify(|state| state.unfinished_call_count -= 1);
        result
    }
}

/// Returns the number of replies in a conversation. The error about a reply follows the reply, if the reply is part of
/// the conversation.
fn reply_count(messages: &[ModelMessage]) -> usize {
    let is_reply = |message: &ModelMessage| matches!(message, ModelMessage::Assistant { .. });
    let is_error = |message: &ModelMessage| matches!(message, ModelMessage::User(_));
    let replies = messages.iter().filter(|message| is_reply(message)).count();
    let pairs = messages.iter().skip(1).zip(messages.iter().skip(2));
    let errors_without_reply =
        pairs.filter(|(message, next)| is_error(next) && !is_reply(message)).count();
    replies + errors_without_reply
}

/// Returns a reply with these calls: names and arguments.
///
/// # Errors
/// Never.
pub fn reply_with_calls(calls: &[(&str, &str)]) -> ScriptedReply {
    let call = |(tool, arguments): &(&str, &str)| RequestedToolCall {
        tool: (*tool).to_owned(),
        arguments: (*arguments).to_owned(),
    };
    let tokens = Some(TokenCounts { input: 100, output: 10 });
    let calls = calls.iter().map(call).collect();
    Ok(ModelReply { text: String::new(), calls, tokens, is_cut_off: false })
}

/// Returns a reply that is a text.
///
/// # Errors
/// Never.
pub fn text_reply(text: &str) -> ScriptedReply {
    Ok(ModelReply { text: text.to_owned(), ..ModelReply::default() })
}

/// Returns a cognitive agent with two tools: `look` may be repeated, `push` must not. Both have the optional input
/// `at`.
#[must_use]
pub fn cognitive_spec(id: &str, max_steps: u32) -> AgentSpec {
    let cognitive = CognitiveSpec {
        layer: CognitiveLayer::Perceptual,
        model: ModelReference { provider: "scripted".to_owned(), name: "model".to_owned() },
        instructions: String::new(),
        temperature: CognitiveSpec::DEFAULT_TEMPERATURE,
        max_steps: NonZeroU32::new(max_steps).unwrap_or(NonZeroU32::MIN),
        tools: vec![scripted_tool("look", true), scripted_tool("push", false)],
        backends: Vec::new(),
    };
    AgentSpec {
        worker: WorkerSpec::Cognitive(Arc::new(cognitive)),
        retry: RetrySpec { max_retries: 0, ..RetrySpec::default() },
        ..agent_spec(id)
    }
}

fn scripted_tool(name: &str, idempotent: bool) -> Arc<ToolSpec> {
    let input = ToolInput {
        input_type: InputType::String,
        description: "Place.".to_owned(),
        optional: true,
    };
    Arc::new(ToolSpec {
        name: name.to_owned(),
        description: "Does something.".to_owned(),
        inputs: Some(BTreeMap::from([("at".to_owned(), input)])),
        idempotent,
        timeout: Duration::from_secs(60),
        handler: ToolHandler::Clock,
    })
}
