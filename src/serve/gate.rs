//! The gate before all paths: the host, the site, the address, and agents' own paths.
//!
//! `/health` and `/ready` are outside of it: they look at no credentials and tell nothing else, and
//! whoever watches
//! the service must not take a block of its address for a dead service.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use algonius_actors::model::agent::AgentSpec;
use algonius_actors::model::id::AgentId;
use axum::extract::{ConnectInfo, Request};
use axum::http::uri::PathAndQuery;
use axum::http::{HeaderMap, Uri};
use axum::response::{IntoResponse, Response};

use super::App;
use super::answer::Refused;
use super::grpc;
use super::peer::{self, Client};

/// The paths that agents have beside `/agents/<id>`.
pub type Aliases = BTreeMap<String, AgentId>;

/// The aliases of agents.
pub fn aliases<'s>(specs: impl IntoIterator<Item = &'s AgentSpec>) -> Aliases {
    let alias = |spec: &AgentSpec| Some((spec.exposure.base_path.clone()?, spec.id.clone()));
    specs.into_iter().filter_map(alias).collect()
}

/// Lets a request pass to the paths, with the one that it means; or refuses it.
pub(super) async fn pass(app: &App, mut request: Request) -> Result<Request, Response> {
    if matches!(request.uri().path(), "/health" | "/ready") {
        return Ok(request);
    }
    if let Err(failure) = app.hosts.check(&request) {
        return Err(refused(request.headers(), failure.into()));
    }
    let peer = request.extensions().get::<ConnectInfo<SocketAddr>>();
    let peer = peer.map(|ConnectInfo(address)| address.ip());
    let client = peer.map(|peer| peer::client(peer, request.headers(), &app.proxies));
    if let Some(rest) = app.lockouts.blocked(client.map(|Client(address)| address)).await {
        return Err(refused(request.headers(), Refused::locked_out(rest)));
    }
    if let Some(client) = client {
        request.extensions_mut().insert(client);
    }
    if let Some(uri) = renamed(request.uri(), &app.aliases) {
        *request.uri_mut() = uri;
    }
    Ok(request)
}

/// The refusal as who asks can read it.
fn refused(headers: &HeaderMap, refused: Refused) -> Response {
    grpc::refused(headers, &refused.failure).unwrap_or_else(|| refused.into_response())
}

/// The usual address for one that begins with an alias.
fn renamed(uri: &Uri, aliases: &Aliases) -> Option<Uri> {
    let (rest, id) = aliases.iter().find_map(|(alias, id)| {
        let rest = uri.path().strip_prefix(alias.as_str())?;
        (rest.is_empty() || rest.starts_with('/')).then_some((rest, id))
    })?;
    let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    let path = PathAndQuery::try_from(format!("/agents/{id}{rest}{query}")).ok()?;
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(path);
    Uri::from_parts(parts).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_alias_stands_for_the_path_of_its_agent() {
        let aliases = Aliases::from([("/bots/x".to_owned(), AgentId::new("echo").expect("an id"))]);
        let of = |path: &str| {
            renamed(&path.parse().expect("an address"), &aliases).map(|uri| uri.to_string())
        };
        assert_eq!(of("/bots/x/v1?a=b").as_deref(), Some("/agents/echo/v1?a=b"));
        assert_eq!(of("http://h/bots/x/v1/").as_deref(), Some("http://h/agents/echo/v1/"));
        assert_eq!(of("/bots/x").as_deref(), Some("/agents/echo"));
        assert_eq!(of("/bots/xy/v1"), None);
        assert_eq!(of("/agents/echo/v1"), None);
    }
}
