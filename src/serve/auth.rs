//! Who may enter: bearer tokens, known by their hashes, compared in constant time.

use algonius_actors::model::code::Code;
use algonius_actors::model::failure::Failure;
use algonius_actors::model::id::AgentId;
use algonius_actors::model::principal::{Caller, Right, Token};
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use chrono::{DateTime, Utc};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::App;
use super::answer::Problem;

/// The shortest token there is, in characters.
pub const SHORTEST: usize = 32;

/// Knows every token that counts.
pub struct Guard {
    tokens: Vec<Token>,
}

impl Guard {
    /// A guard who knows these.
    #[must_use]
    pub const fn new(tokens: Vec<Token>) -> Self {
        Self { tokens }
    }

    /// Finds out who asks. Every cause of a refusal gives the same answer.
    ///
    /// # Errors
    /// `unauthenticated`.
    pub fn admit(&self, headers: &HeaderMap, now: DateTime<Utc>) -> Result<Caller, Failure> {
        bearer(headers)
            .and_then(|text| self.find(text, now))
            .ok_or_else(|| Failure::new(Code::Unauthenticated, "a valid bearer token is required"))
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
        found.map(|token| Caller {
            principal: token.principal,
            name: token.name.clone(),
            scope: token.scope.clone(),
        })
    }
}

/// The token of the one `Authorization` header there must be.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let mut all = headers.get_all(header::AUTHORIZATION).iter();
    let value = all.next()?.to_str().ok()?;
    if all.next().is_some() {
        return None;
    }
    let (scheme, text) = value.split_once(' ')?;
    let text = text.trim();
    (scheme.eq_ignore_ascii_case("bearer") && text.len() >= SHORTEST).then_some(text)
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
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let now = app.gateway.now();
        app.guard.admit(&parts.headers, now).map(Self).map_err(Problem)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use algonius_actors::model::id::PrincipalId;
    use algonius_actors::model::principal::Scope;
    use axum::http::HeaderValue;
    use uuid::Uuid;

    const TEXT: &str = "0123456789abcdef0123456789abcdef";

    fn admitted(values: &[&str], expires: Option<&str>) -> bool {
        let expires = expires.map(|text| text.parse().expect("a time"));
        let scope = Scope { rights: vec![Right::Read], agents: None };
        let (principal, name) = (PrincipalId(Uuid::nil()), "ann".to_owned());
        let hash = Sha256::digest(TEXT).into();
        let guard = Guard::new(vec![Token { principal, name, hash, scope, expires }]);
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(header::AUTHORIZATION, HeaderValue::from_str(value).expect("a header"));
        }
        guard.admit(&headers, "2030-01-01T00:00:00Z".parse().expect("a time")).is_ok()
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
}
