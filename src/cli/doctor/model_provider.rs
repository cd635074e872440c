//! Check of a cognitive agent: its model, its tools, and whether the provider can be reached.

use std::time::Duration;

use algonius_actors::model::agent::cognitive::CognitiveSpec;
use algonius_actors::model::agent::model_provider::ModelProvider;
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::finding::Finding;
use crate::config::ConfiguredAgent;
use crate::platform::http_client::parse_uri;

/// Time limit for a connection to a provider.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// Returns the finding about a cognitive agent. The check opens a connection to the provider of an enabled agent, and
/// sends nothing.
pub(super) async fn finding(
    agent: &ConfiguredAgent,
    spec: &CognitiveSpec,
    provider: &ModelProvider,
) -> Finding {
    let subject = format!("agent {}", agent.spec.id);
    let (model, url) = (&spec.model, &provider.base_url);
    if agent.spec.enabled
        && let Err(reason) = check_connection(url).await
    {
        let text = format!("the provider of `{model}` cannot be reached at {url}: {reason}");
        return Finding::warning(&subject, text, "start the provider, or correct its `base_url`");
    }
    let disabled_note = if agent.spec.enabled { "" } else { " (disabled)" };
    let tools: Vec<_> = spec.tools.iter().map(|tool| tool.name.as_str()).collect();
    let tools = match tools.as_slice() {
        [] => "no tools".to_owned(),
        names => format!("the tools {}", names.join(", ")),
    };
    Finding::good(subject, format!("uses `{model}` at {url}, with {tools}{disabled_note}"))
}

/// Opens a connection. Returns the reason if that fails.
async fn check_connection(url: &str) -> Result<(), String> {
    let uri = parse_uri(url).ok_or("its address is not valid")?;
    let host = uri.host().ok_or("the address has no host")?;
    let default_port = if uri.scheme_str() == Some("https") { 443 } else { 80 };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let connection = TcpStream::connect((host, uri.port_u16().unwrap_or(default_port)));
    match timeout(CONNECT_TIMEOUT, connection).await {
        Ok(Ok(_connection)) => Ok(()),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_elapsed) => Err(format!("no connection within {} s", CONNECT_TIMEOUT.as_secs())),
    }
}
