//! Checks before routing: the host and the origin; then the address of the client and the aliases of agents.
//!
//! `/health` and `/ready` bypass these checks: they reveal nothing, and a monitor that reaches the service
//! by another host name must not mistake a refusal for a failed service. Pages about errors bypass them too: one of
//! them explains the refusal of a host name.

use algonius_a2a::problem::ERROR_PAGES_PATH;
use algonius_actors::model::failure::Failure;
use axum::extract::Request;
use axum::http::header::HOST;
use axum::http::uri::PathAndQuery;
use axum::http::{HeaderMap, HeaderValue, Uri};
use axum::response::{IntoResponse, Response};

use crate::serve::AppState;
use crate::serve::a2a::grpc;
use crate::serve::agent_directory::{PathAliases, strip_alias};
use crate::serve::auth::request_client::{self, RequestClient};
use crate::serve::http::connections::ClientConnection;
use crate::serve::http::response::ProblemBody;

/// Passes a request on to the router, with an alias replaced by the usual path, or refuses the request.
pub(super) fn check_and_rewrite_request(
    app: &AppState,
    mut request: Request,
    connection: ClientConnection,
) -> Result<Request, Box<Response>> {
    let path = request.uri().path();
    if matches!(path, "/health" | "/ready" | "/errors") || path.starts_with(ERROR_PAGES_PATH) {
        return Ok(request);
    }
    if let Err(failure) = app.access_control.host_policy.check_host_and_origin(&request) {
        return Err(refusal_response(request.headers(), failure));
    }
    // Cards repeat the host, so it is copied only after the check above has accepted it.
    if app.public_addresses.depends_on_host() {
        copy_host_to_header(&mut request);
    }
    let address = request_client::client_ip(
        connection.address().ip(),
        request.headers(),
        &app.access_control.trusted_proxies,
    );
    request.extensions_mut().insert(RequestClient { address, connection });
    if let Some(uri) = resolve_alias(request.uri(), &app.agents.aliases) {
        *request.uri_mut() = uri;
    }
    Ok(request)
}

/// Copies the host of HTTP/2, which is a part of the address, to the header that HTTP/1.1 uses.
fn copy_host_to_header(request: &mut Request) {
    let parsed_host = request.uri().authority().map(|host| HeaderValue::from_str(host.as_str()));
    if let Some(Ok(host)) = parsed_host {
        request.headers_mut().insert(HOST, host);
    }
}

/// Returns the refusal in the protocol of the request.
fn refusal_response(headers: &HeaderMap, failure: Failure) -> Box<Response> {
    let grpc_refusal = grpc::refusal_response(headers, &failure);
    Box::new(grpc_refusal.unwrap_or_else(|| ProblemBody(failure).into_response()))
}

/// Returns the usual address for an address that starts with an alias.
fn resolve_alias(uri: &Uri, aliases: &PathAliases) -> Option<Uri> {
    let (subpath, id) = strip_alias(uri.path(), aliases)?;
    let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    let path = PathAndQuery::try_from(format!("/agents/{id}{subpath}{query}")).ok()?;
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(path);
    Uri::from_parts(parts).ok()
}

#[cfg(test)]
mod tests {
    use algonius_actors::model::id::AgentId;

    use super::*;

    #[test]
    fn an_alias_resolves_to_the_path_of_its_agent() {
        let aliases =
            PathAliases::from([("/bots/x".to_owned(), AgentId::new("echo").expect("an id"))]);
        let resolved = |path: &str| {
            resolve_alias(&path.parse().expect("an address"), &aliases).map(|uri| uri.to_string())
        };
        assert_eq!(resolved("/bots/x/v1?a=b").as_deref(), Some("/agents/echo/v1?a=b"));
        assert_eq!(resolved("http://h/bots/x/v1/").as_deref(), Some("http://h/agents/echo/v1/"));
        assert_eq!(resolved("/bots/x").as_deref(), Some("/agents/echo"));
        assert_eq!(resolved("/bots/xy/v1"), None);
        assert_eq!(resolved("/agents/echo/v1"), None);
    }
}
