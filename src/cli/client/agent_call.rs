//! JSON-RPC calls to agents.

use hyper::Method;
use hyper::body::Incoming;
use serde_json::{Value, json};

use super::error_response::take_rpc_result;
use super::percent_encoding::percent_encode;
use super::service_client::{RequestHeader, ServiceClient, into_event_stream};
use crate::cli::error::CliError;
use crate::config::nearest_word;
use crate::wire::api::{AgentList, ErrorBody};

impl ServiceClient {
    /// Makes one JSON-RPC call to an agent.
    pub(crate) async fn call_rpc(
        &self,
        agent: &str,
        method: &str,
        params: Value,
    ) -> Result<Value, CliError> {
        let (path, body) = rpc_path_and_body(agent, method, &params);
        let result = self.call(Method::POST, &path, Some(body)).await.and_then(take_rpc_result);
        match result {
            Err(error) => Err(self.add_similar_agent_hint(error, agent).await),
            result => result,
        }
    }

    /// Makes one JSON-RPC call to an agent whose response is a stream of events.
    pub(crate) async fn open_rpc_stream(
        &self,
        agent: &str,
        (method, params): (&str, Value),
        headers: &[RequestHeader],
    ) -> Result<Incoming, CliError> {
        let (path, body) = rpc_path_and_body(agent, method, &params);
        let opened = into_event_stream(
            self.send_with_headers(Method::POST, &path, Some(body), headers).await?,
        )
        .await;
        match opened {
            Err(error) => Err(self.add_similar_agent_hint(error, agent).await),
            opened => opened,
        }
    }

    /// Adds the name of a similar agent to the error of an unknown agent.
    pub(crate) async fn add_similar_agent_hint(&self, error: CliError, agent: &str) -> CliError {
        let CliError::RequestRefused(error_body) = error else { return error };
        if error_body.code != "agent-unknown" {
            return CliError::RequestRefused(error_body);
        }
        let suggestion = Box::pin(similar_agent_hint(self, agent)).await;
        let hint = suggestion.map_or(error_body.hint.clone(), |suggestion| {
            format!("{suggestion} {}", error_body.hint)
        });
        CliError::RequestRefused(ErrorBody { hint, ..error_body })
    }
}

/// Returns the path and the document of one JSON-RPC call.
fn rpc_path_and_body(agent: &str, method: &str, params: &Value) -> (String, Value) {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    (format!("/agents/{}/v1", percent_encode(agent)), body)
}

/// Returns an addition to the hint about an unknown agent: a similar agent.
pub(crate) async fn similar_agent_hint(client: &ServiceClient, id: &str) -> Option<String> {
    let list: AgentList = client.get("/api/v1/agents").await.ok()?;
    let known_ids: Vec<_> = list.agents.iter().map(|agent| agent.id.as_str()).collect();
    if known_ids.contains(&id) {
        return None;
    }
    nearest_word(id, &known_ids).map(|nearest_id| format!("did you mean `{nearest_id}`?"))
}
