//! Who may enter: tokens and keys, known by their hashes, compared in constant time.

use std::collections::BTreeMap;
use std::net::IpAddr;

use algonius_actors::model::agent::AgentSpec;
use algonius_actors::model::code::Code;
use algonius_actors::model::exposure::Credential;
use algonius_actors::model::failure::Failure;
use algonius_actors::model::id::AgentId;
use algonius_actors::model::principal::{Caller, Right, Scope, Token, TokenSeed};
use axum::extract::{FromRequestParts, RawPathParams};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use chrono::{DateTime, Utc};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use uuid::Uuid;

use super::App;
use super::answer::Refused;
use super::peer::{Client, is_forwarded};

/// The shortest token there is, in characters.
pub const SHORTEST: usize = 32;

/// The name of who comes without credentials.
pub const ANONYMOUS: &str = "anonymous";

/// Why somebody is not let in. Callers are told the same for both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rejected {
    /// There are no credentials.
    Missing,
    /// There are credentials, and they are not good: unknown, expired, malformed, or too many.
    Wrong,
}

impl From<Rejected> for Failure {
    fn from(_: Rejected) -> Self {
        Self::new(Code::Unauthenticated, "valid credentials are required")
    }
}

/// What holds at the doors of one agent beside the service's own tokens.
#[derive(Debug, Clone, Default)]
struct Door {
    /// Where its key may stand.
    header: Option<HeaderName>,
    /// Who comes without credentials, if anybody may.
    nobody: Option<Caller>,
}

/// Knows every token that counts, and the doors of every agent.
pub struct Guard {
    tokens: Vec<Token>,
    doors: BTreeMap<AgentId, Door>,
    /// Where credentials may stand, at whichever door.
    headers: Vec<HeaderName>,
}

/// Those who come without credentials: a principal for each agent that lets them in. Nobody has
/// its token, which is of random bytes and has no text.
#[must_use]
pub fn nobodies<'s>(specs: impl IntoIterator<Item = &'s AgentSpec>) -> Vec<TokenSeed> {
    let open = specs.into_iter().filter(|spec| spec.exposure.open);
    open.map(|spec| TokenSeed {
        name: ANONYMOUS.to_owned(),
        hash: Sha256::digest([Uuid::new_v4().into_bytes(), Uuid::new_v4().into_bytes()].concat())
            .into(),
        scope: Scope { rights: vec![Right::Read, Right::Run], agents: Some(vec![spec.id.clone()]) },
        expires: None,
    })
    .collect()
}

impl Guard {
    /// A guard who knows these tokens, at the doors of these agents. `nobodies` are among the
    /// tokens.
    #[must_use]
    pub fn new<'s>(
        tokens: Vec<Token>,
        specs: impl IntoIterator<Item = &'s AgentSpec>,
        nobodies: &[TokenSeed],
    ) -> Self {
        let nobody = |id: &AgentId| {
            let is_of =
                |seed: &&TokenSeed| seed.scope.agents.as_deref() == Some(std::slice::from_ref(id));
            let hash = nobodies.iter().find(is_of)?.hash;
            tokens.iter().find(|token| token.hash == hash).map(caller)
        };
        let door = |spec: &AgentSpec| {
            let header = match &spec.exposure.credential {
                Credential::ApiKey(name) => name.parse().ok(),
                Credential::Bearer | Credential::Nothing => None,
            };
            (spec.id.clone(), Door { header, nobody: nobody(&spec.id) })
        };
        let doors: BTreeMap<_, _> = specs.into_iter().map(door).collect();
        let mut headers = vec![header::AUTHORIZATION];
        for name in doors.values().filter_map(|door: &Door| door.header.as_ref()) {
            if !headers.contains(name) {
                headers.push(name.clone());
            }
        }
        Self { tokens, doors, headers }
    }

    /// Finds out who asks, at the door of an agent or at one of the service.
    ///
    /// # Errors
    /// When nobody is let in like this.
    pub fn admit(
        &self,
        headers: &HeaderMap,
        agent: Option<&AgentId>,
        now: DateTime<Utc>,
    ) -> Result<Caller, Rejected> {
        let door = agent.and_then(|agent| self.doors.get(agent));
        let bearer = bearer(headers)?;
        let key = door.and_then(|door| door.header.as_ref());
        let key = key.map_or(Ok(None), |name| only(headers, name))?;
        match (bearer, key) {
            (Some(bearer), Some(key)) if bearer != key => Err(Rejected::Wrong),
            (Some(text), _) | (None, Some(text)) => self.find(text, now).ok_or(Rejected::Wrong),
            (None, None) => {
                // A proxy speaks for people of other machines.
                let nobody = door.and_then(|door| door.nobody.clone());
                nobody.filter(|_| !is_forwarded(headers)).ok_or(Rejected::Missing)
            }
        }
    }

    /// The headers of a request in which credentials may stand, at whichever door. They are copies:
    /// a value of the request keeps the whole buffer that was read from the connection.
    pub fn credentials(&self, headers: &HeaderMap) -> HeaderMap {
        let mut credentials = HeaderMap::new();
        for name in &self.headers {
            for value in headers.get_all(name) {
                if let Ok(value) = HeaderValue::from_bytes(value.as_bytes()) {
                    credentials.append(name, value);
                }
            }
        }
        credentials
    }

    /// Whom the credentials of a request stand for, at whichever door; nobody where there are none.
    pub fn standing(&self, headers: &HeaderMap, now: DateTime<Utc>) -> Option<Caller> {
        let bearer = bearer(headers).ok().flatten();
        let keys = self.headers.iter().filter(|name| *name != header::AUTHORIZATION);
        let keys = keys.filter_map(|name| only(headers, name).ok().flatten());
        bearer.into_iter().chain(keys).find_map(|text| self.find(text, now))
    }

    /// Looks at every token, so that the time it takes tells nothing.
    fn find(&self, text: &str, now: DateTime<Utc>) -> Option<Caller> {
        let hash: [u8; 32] = Sha256::digest(text.as_bytes()).into();
        let mut found = None;
        for token in &self.tokens {
            let is_it: bool = token.hash.ct_eq(&hash).into();
            if is_it && token.expires.is_none_or(|expires| now < expires) {
                found = Some(token);
            }
        }
        found.filter(|_| text.len() >= SHORTEST).map(caller)
    }
}

fn caller(token: &Token) -> Caller {
    Caller { principal: token.principal, name: token.name.clone(), scope: token.scope.clone() }
}

/// The token of the only `Authorization` header, if there is one.
fn bearer(headers: &HeaderMap) -> Result<Option<&str>, Rejected> {
    let Some(value) = only(headers, &header::AUTHORIZATION)? else { return Ok(None) };
    match value.split_once(' ') {
        Some((scheme, text)) if scheme.eq_ignore_ascii_case("bearer") => Ok(Some(text.trim())),
        _ => Err(Rejected::Wrong),
    }
}

/// The only header of a name, if there is one.
fn only<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Result<Option<&'h str>, Rejected> {
    let mut all = headers.get_all(name).iter();
    let Some(first) = all.next() else { return Ok(None) };
    match (first.to_str(), all.next()) {
        (Ok(text), None) => Ok(Some(text)),
        (_, _) => Err(Rejected::Wrong),
    }
}

/// Lets a request in: every way in comes through here. Wrong credentials count against `client`.
///
/// # Errors
/// `unauthenticated`, with one answer for every cause, or `locked-out`.
pub async fn enter(
    app: &App,
    client: Option<IpAddr>,
    headers: &HeaderMap,
    agent: Option<&AgentId>,
) -> Result<Caller, Refused> {
    let now = app.gateway.now();
    app.lockouts.attempt(client, || app.guard.admit(headers, agent, now)).await
}

/// Lets the request of these parts in, at the door of the agent that its path names.
///
/// # Errors
/// As [`enter`].
pub async fn enter_by(parts: &mut Parts, app: &App) -> Result<(Caller, Option<AgentId>), Refused> {
    let params = RawPathParams::from_request_parts(parts, app).await.ok();
    let named = params.as_ref().and_then(|params| {
        let named = params.iter().find(|(name, _)| *name == "agent")?;
        AgentId::new(named.1).ok().filter(|id| app.agents.contains_key(id))
    });
    let client = parts.extensions.get().map(|Client(address)| *address);
    let caller = enter(app, client, &parts.headers, named.as_ref()).await?;
    Ok((caller, named))
}

/// An authenticated caller, as a handler asks for one.
pub struct Who(pub Caller);

impl Who {
    /// Lets the caller on if its token allows this.
    ///
    /// # Errors
    /// `forbidden`.
    pub fn may(self, right: Right, agent: Option<&AgentId>) -> Result<Caller, Failure> {
        if self.0.scope.allows(right, agent) {
            Ok(self.0)
        } else {
            Err(Failure::new(Code::Forbidden, "the token does not allow this"))
        }
    }
}

impl FromRequestParts<App> for Who {
    type Rejection = Refused;

    /// A call to an agent also counts against its rate; of those only who may enter.
    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Refused> {
        let (caller, agent) = enter_by(parts, app).await?;
        let spec = agent.and_then(|agent| app.agents.get(&agent));
        if let Some(spec) = spec.filter(|_| parts.uri.path().starts_with("/agents/")) {
            app.rates.count(spec).await?;
        }
        Ok(Self(caller))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::spec;
    use super::*;
    use algonius_actors::model::exposure::Exposure;
    use algonius_actors::model::id::PrincipalId;

    const TEXT: &str = "0123456789abcdef0123456789abcdef";

    /// A guard who knows `TEXT`, before a plain agent, one with a key, and an open one.
    fn guard(expires: Option<&str>) -> Guard {
        let expires = expires.map(|text| text.parse().expect("a time"));
        let token = |seed: TokenSeed| Token {
            principal: PrincipalId(Uuid::nil()),
            name: seed.name,
            hash: seed.hash,
            scope: seed.scope,
            expires: seed.expires,
        };
        let exposure = |credential, open| Exposure { credential, open, ..Exposure::default() };
        let specs = [
            spec("plain", Exposure::default()),
            spec("keyed", exposure(Credential::ApiKey("x-api-key".to_owned()), false)),
            spec("open", exposure(Credential::Nothing, true)),
        ];
        let nobodies = nobodies(&specs);
        let scope = Scope { rights: vec![Right::Read], agents: None };
        let ann =
            TokenSeed { name: "ann".to_owned(), hash: Sha256::digest(TEXT).into(), scope, expires };
        let tokens = nobodies.iter().cloned().chain([ann]).map(token).collect();
        Guard::new(tokens, &specs, &nobodies)
    }

    fn answer(
        agent: &str,
        lines: &[(&str, &str)],
        expires: Option<&str>,
    ) -> Result<String, Rejected> {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            let name: HeaderName = name.parse().expect("a name");
            headers.append(name, HeaderValue::from_str(value).expect("a header"));
        }
        let now = "2030-01-01T00:00:00Z".parse().expect("a time");
        let agent = AgentId::new(agent).ok();
        guard(expires).admit(&headers, agent.as_ref(), now).map(|caller| caller.name)
    }

    fn admitted(values: &[&str], expires: Option<&str>) -> bool {
        let lines: Vec<_> = values.iter().map(|value| ("authorization", *value)).collect();
        answer("plain", &lines, expires).is_ok()
    }

    #[test]
    fn exactly_one_header_with_a_known_token_of_32_characters_is_let_in() {
        assert!(admitted(&[&format!("Bearer {TEXT}")], None));
        assert!(admitted(&[&format!("bearer {TEXT}")], None));
        for values in [
            vec![],
            vec![TEXT.to_owned()],
            vec![format!("Basic {TEXT}")],
            vec![format!("Bearer {}", TEXT.replacen('0', "", 1))],
            vec![format!("Bearer {TEXT}0")],
            vec![format!("Bearer {TEXT}"), format!("Bearer {TEXT}")],
        ] {
            let values: Vec<_> = values.iter().map(String::as_str).collect();
            assert!(!admitted(&values, None), "{values:?}");
        }
    }

    #[test]
    fn an_expired_token_is_like_an_unknown_one() {
        let header = format!("Bearer {TEXT}");
        assert!(admitted(&[&header], Some("2030-01-01T00:00:01Z")));
        assert!(!admitted(&[&header], Some("2030-01-01T00:00:00Z")));
    }

    #[test]
    fn a_key_counts_at_the_doors_of_its_agent_and_there_is_one_credential() {
        let (bearer, other) = (format!("Bearer {TEXT}"), format!("Bearer {TEXT}0"));
        let key = ("X-API-Key", TEXT);
        let ann = Ok("ann".to_owned());
        assert_eq!(answer("keyed", &[key], None), ann);
        assert_eq!(answer("keyed", &[("authorization", &bearer)], None), ann);
        assert_eq!(answer("keyed", &[("authorization", &bearer), key], None), ann);
        let wrong = Err(Rejected::Wrong);
        assert_eq!(answer("keyed", &[("authorization", &other), key], None), wrong);
        assert_eq!(answer("keyed", &[key, key], None), wrong);
        assert_eq!(answer("keyed", &[("X-API-Key", "x")], None), wrong);
        assert_eq!(answer("plain", &[key], None), Err(Rejected::Missing));
        assert_eq!(answer("unknown", &[key], None), Err(Rejected::Missing));
    }

    #[test]
    fn nobody_enters_where_nobody_may_and_wrong_credentials_are_never_overlooked() {
        assert_eq!(answer("open", &[], None), Ok("anonymous".to_owned()));
        assert_eq!(answer("open", &[("authorization", "Bearer x")], None), Err(Rejected::Wrong));
        assert_eq!(answer("open", &[("x-forwarded-for", "::1")], None), Err(Rejected::Missing));
        assert_eq!(answer("plain", &[], None), Err(Rejected::Missing));
    }
}
