//! Authentication: tokens and keys, stored as hashes and compared in constant time.

use std::collections::BTreeMap;

use algonius_actors::decide::access::lockout;
use algonius_actors::model::access::endpoint_config::CallerAuth;
use algonius_actors::model::access::principal::{Caller, NewToken, Right, Scope, Token};
use algonius_actors::model::agent::AgentSpec;
use algonius_actors::model::code::Code;
use algonius_actors::model::failure::Failure;
use algonius_actors::model::id::{AgentId, PrincipalId};
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use chrono::{DateTime, Utc};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use uuid::Uuid;

use super::request_client::is_forwarded;
use crate::serve::http::response::EarlyRefusal;

/// Minimum length of a token, in bytes.
pub const MIN_TOKEN_BYTES: usize = 32;

/// Name of the principal of callers without credentials.
pub const ANONYMOUS_PRINCIPAL_NAME: &str = "anonymous";

/// Reason for a failed authentication. Callers receive the same response for both reasons.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuthenticationError {
    /// The request has no credentials.
    Missing,
    /// The request has invalid credentials: unknown, expired, malformed, or more than one.
    Invalid,
}

impl From<AuthenticationError> for EarlyRefusal {
    fn from(error: AuthenticationError) -> Self {
        Failure::from(error).into()
    }
}

impl From<AuthenticationError> for Failure {
    fn from(_: AuthenticationError) -> Self {
        Self::new(Code::Unauthenticated, "valid credentials are required")
    }
}

/// Authentication of one agent, in addition to the service's own tokens.
#[derive(Debug, Clone, Default)]
struct AgentAuth {
    /// Header for the key of the agent.
    key_header: Option<HeaderName>,
    /// Caller without credentials, if the agent allows anonymous access.
    anonymous_caller: Option<Caller>,
}

/// Authenticator: all valid tokens and the authentication of each agent.
pub struct Authenticator {
    tokens: Vec<Token>,
    agents: BTreeMap<AgentId, AgentAuth>,
    /// Principals of the agents that allow anonymous access.
    anonymous_principals: Vec<PrincipalId>,
    /// Headers that may contain credentials for any agent.
    credential_header_names: Vec<HeaderName>,
}

/// Returns the anonymous principals: one for each agent that allows anonymous access. Nobody has the token of such a
/// principal, because the token consists of random bytes and has no text.
#[must_use]
pub fn anonymous_principal_tokens<'s>(
    specs: impl IntoIterator<Item = &'s AgentSpec>,
) -> Vec<NewToken> {
    let open_agents = specs.into_iter().filter(|spec| spec.endpoint_config.allows_anonymous);
    open_agents
        .map(|spec| NewToken {
            name: ANONYMOUS_PRINCIPAL_NAME.to_owned(),
            // Random bytes: a fixed value could be read in the source code.
            hash: Sha256::digest(
                [Uuid::new_v4().into_bytes(), Uuid::new_v4().into_bytes()].concat(),
            )
            .into(),
            scope: Scope {
                rights: vec![Right::Read, Right::Run],
                agents: Some(vec![spec.id.clone()]),
            },
            expires_at: None,
        })
        .collect()
}

impl Authenticator {
    /// Creates an authenticator with these tokens for these agents. The tokens in `anonymous_principal_tokens` are
    /// among `tokens`.
    #[must_use]
    pub fn new<'s>(
        tokens: Vec<Token>,
        specs: impl IntoIterator<Item = &'s AgentSpec>,
        anonymous_principal_tokens: &[NewToken],
    ) -> Self {
        let anonymous_caller = |id: &AgentId| {
            let is_principal_of_agent = |new_token: &&NewToken| {
                new_token.scope.agents.as_deref() == Some(std::slice::from_ref(id))
            };
            let hash = anonymous_principal_tokens.iter().find(is_principal_of_agent)?.hash;
            tokens.iter().find(|token| token.hash == hash).map(caller_of)
        };
        let to_auth = |spec: &AgentSpec| {
            let header = match &spec.endpoint_config.caller_auth {
                CallerAuth::ApiKeyHeader(name) => name.parse().ok(),
                CallerAuth::Bearer | CallerAuth::NoAuth => None,
            };
            (
                spec.id.clone(),
                AgentAuth { key_header: header, anonymous_caller: anonymous_caller(&spec.id) },
            )
        };
        let agents: BTreeMap<_, _> = specs.into_iter().map(to_auth).collect();
        let mut credential_header_names = vec![header::AUTHORIZATION];
        for name in agents.values().filter_map(|auth: &AgentAuth| auth.key_header.as_ref()) {
            if !credential_header_names.contains(name) {
                credential_header_names.push(name.clone());
            }
        }
        let anonymous_callers = agents.values().filter_map(|auth| auth.anonymous_caller.as_ref());
        let anonymous_principals = anonymous_callers.map(|caller| caller.principal).collect();
        Self { tokens, agents, anonymous_principals, credential_header_names }
    }

    /// Authenticates a caller, for an agent or for the service itself.
    ///
    /// # Errors
    /// Fails if the request has no valid credentials and anonymous access is not allowed.
    pub fn authenticate(
        &self,
        headers: &HeaderMap,
        agent: Option<&AgentId>,
        now: DateTime<Utc>,
    ) -> Result<Caller, AuthenticationError> {
        let auth = agent.and_then(|agent| self.agents.get(agent));
        let bearer = bearer_token(headers)?;
        let key = auth.and_then(|auth| auth.key_header.as_ref());
        let key = key.map_or(Ok(None), |name| single_header(headers, name))?;
        match (bearer, key) {
            // Two different credentials are two identities. Choosing one of them would make the order of checks a
            // rule of access.
            (Some(bearer), Some(key)) if bearer != key => Err(AuthenticationError::Invalid),
            (Some(text), _) | (None, Some(text)) => {
                self.find_caller(text, now).ok_or(AuthenticationError::Invalid)
            }
            (None, None) => {
                // A request through a proxy may come from another machine, so anonymous access does not apply.
                let anonymous_caller = auth.and_then(|auth| auth.anonymous_caller.clone());
                anonymous_caller
                    .filter(|_| !is_forwarded(headers))
                    .ok_or(AuthenticationError::Missing)
            }
        }
    }

    /// Returns true if the caller entered an agent that allows anonymous access, without credentials.
    pub(super) fn is_anonymous(&self, caller: &Caller) -> bool {
        self.anonymous_principals.contains(&caller.principal)
    }

    /// Checks that at least one agent would admit a request, whichever agent the request is for.
    ///
    /// # Errors
    /// Fails when no agent would admit the request.
    pub(super) fn check_access_to_some_agent(
        &self,
        headers: &HeaderMap,
        now: DateTime<Utc>,
    ) -> Result<(), AuthenticationError> {
        if self.find_caller_for_any_agent(headers, now).is_some() {
            return Ok(());
        }
        if self.credential_header_names.iter().any(|name| headers.contains_key(name)) {
            return Err(AuthenticationError::Invalid);
        }
        // A key or an open agent is checked again with the message, which alone names the agent over gRPC.
        let has_anonymous_agent = self.agents.values().any(|auth| auth.anonymous_caller.is_some());
        if has_anonymous_agent && !is_forwarded(headers) {
            Ok(())
        } else {
            Err(AuthenticationError::Missing)
        }
    }

    /// Returns the headers of a request that may contain credentials for any agent. The values are copies: a value
    /// of the request would keep the whole buffer of the connection in memory.
    pub fn credential_headers(&self, headers: &HeaderMap) -> HeaderMap {
        let mut credentials = HeaderMap::new();
        for name in &self.credential_header_names {
            for value in headers.get_all(name) {
                if let Ok(value) = HeaderValue::from_bytes(value.as_bytes()) {
                    credentials.append(name, value);
                }
            }
        }
        credentials
    }

    /// Digest of every credential that a request presents, in any header. The length before each value
    /// distinguishes two values from their concatenation.
    pub fn credential_digest(&self, headers: &HeaderMap) -> lockout::CredentialDigest {
        let mut digest = Sha256::new();
        for (index, name) in self.credential_header_names.iter().enumerate() {
            for value in headers.get_all(name) {
                // The number of the header is a part: the same text in another header is another credential.
                digest.update(index.to_le_bytes());
                digest.update(value.len().to_le_bytes());
                digest.update(value.as_bytes());
            }
        }
        lockout::CredentialDigest(digest.finalize().into())
    }

    /// Returns the caller whose credentials the request contains, for any agent; `None` if there are none.
    pub fn find_caller_for_any_agent(
        &self,
        headers: &HeaderMap,
        now: DateTime<Utc>,
    ) -> Option<Caller> {
        let bearer = bearer_token(headers).ok().flatten();
        // `Authorization` is read as a bearer token above, not as a key.
        let keys =
            self.credential_header_names.iter().filter(|name| *name != header::AUTHORIZATION);
        let keys = keys.filter_map(|name| single_header(headers, name).ok().flatten());
        bearer.into_iter().chain(keys).find_map(|text| self.find_caller(text, now))
    }

    /// Compares every token, so that the duration reveals nothing.
    fn find_caller(&self, credential: &str, now: DateTime<Utc>) -> Option<Caller> {
        let hash: [u8; 32] = Sha256::digest(credential.as_bytes()).into();
        let mut matching_token = None;
        for token in &self.tokens {
            let is_match: bool = token.hash.ct_eq(&hash).into();
            if is_match && token.expires_at.is_none_or(|expires| now < expires) {
                matching_token = Some(token);
            }
        }
        // Checked after the search, so that a short text takes as long as any other.
        matching_token.filter(|_| credential.len() >= MIN_TOKEN_BYTES).map(caller_of)
    }
}

fn caller_of(token: &Token) -> Caller {
    Caller {
        principal: token.principal,
        name: token.principal_name.clone(),
        scope: token.scope.clone(),
    }
}

/// Returns the token of the only `Authorization` header, if there is one.
fn bearer_token(headers: &HeaderMap) -> Result<Option<&str>, AuthenticationError> {
    let Some(value) = single_header(headers, &header::AUTHORIZATION)? else { return Ok(None) };
    match value.split_once(' ') {
        Some((scheme, text)) if scheme.eq_ignore_ascii_case("bearer") => Ok(Some(text.trim())),
        _ => Err(AuthenticationError::Invalid),
    }
}

/// Returns the only header with this name, if there is one.
fn single_header<'h>(
    headers: &'h HeaderMap,
    name: &HeaderName,
) -> Result<Option<&'h str>, AuthenticationError> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else { return Ok(None) };
    match (value.to_str(), values.next()) {
        (Ok(text), None) => Ok(Some(text)),
        (_, _) => Err(AuthenticationError::Invalid),
    }
}

#[cfg(test)]
mod tests;
