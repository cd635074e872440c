//! Tests of the authenticator with credentials, keys of agents and open agents.

use algonius_actors::model::access::endpoint_config::EndpointConfig;
use algonius_actors::model::id::PrincipalId;

use super::*;
use crate::serve::tests::agent_spec;

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// Returns an authenticator that accepts `TOKEN`, with a plain agent, one with a key, and an open one.
fn authenticator(expires: Option<&str>) -> Authenticator {
    let expires = expires.map(|text| text.parse().expect("a time"));
    let token = |new_token: NewToken| Token {
        principal: PrincipalId(Uuid::nil()),
        principal_name: new_token.name,
        hash: new_token.hash,
        scope: new_token.scope,
        expires_at: new_token.expires_at,
    };
    let endpoint = |caller_auth, allows_anonymous| EndpointConfig {
        caller_auth,
        allows_anonymous,
        ..EndpointConfig::default()
    };
    let specs = [
        agent_spec("plain", EndpointConfig::default()),
        agent_spec("keyed", endpoint(CallerAuth::ApiKeyHeader("x-api-key".to_owned()), false)),
        agent_spec("open", endpoint(CallerAuth::NoAuth, true)),
    ];
    let anonymous_principals = anonymous_principal_tokens(&specs);
    let scope = Scope { rights: vec![Right::Read], agents: None };
    let ann = NewToken {
        name: "ann".to_owned(),
        hash: Sha256::digest(TOKEN).into(),
        scope,
        expires_at: expires,
    };
    let tokens = anonymous_principals.iter().cloned().chain([ann]).map(token).collect();
    Authenticator::new(tokens, &specs, &anonymous_principals)
}

fn authenticate(
    agent: &str,
    header_fields: &[(&str, &str)],
    expires: Option<&str>,
) -> Result<String, AuthenticationError> {
    let mut headers = HeaderMap::new();
    for (name, value) in header_fields {
        let name: HeaderName = name.parse().expect("a name");
        headers.append(name, HeaderValue::from_str(value).expect("a header"));
    }
    let now = "2030-01-01T00:00:00Z".parse().expect("a time");
    let agent = AgentId::new(agent).ok();
    authenticator(expires).authenticate(&headers, agent.as_ref(), now).map(|caller| caller.name)
}

fn is_authenticated(values: &[&str], expires: Option<&str>) -> bool {
    let header_fields: Vec<_> = values.iter().map(|value| ("authorization", *value)).collect();
    authenticate("plain", &header_fields, expires).is_ok()
}

#[test]
fn only_one_header_with_a_known_token_is_accepted() {
    assert!(is_authenticated(&[&format!("Bearer {TOKEN}")], None));
    assert!(is_authenticated(&[&format!("bearer {TOKEN}")], None));
    for values in [
        vec![],
        vec![TOKEN.to_owned()],
        vec![format!("Basic {TOKEN}")],
        vec![format!("Bearer {}", TOKEN.replacen('0', "", 1))],
        vec![format!("Bearer {TOKEN}0")],
        vec![format!("Bearer {TOKEN}"), format!("Bearer {TOKEN}")],
    ] {
        let values: Vec<_> = values.iter().map(String::as_str).collect();
        assert!(!is_authenticated(&values, None), "{values:?}");
    }
}

#[test]
fn an_expired_token_is_treated_as_unknown() {
    let header = format!("Bearer {TOKEN}");
    assert!(is_authenticated(&[&header], Some("2030-01-01T00:00:01Z")));
    assert!(!is_authenticated(&[&header], Some("2030-01-01T00:00:00Z")));
}

#[test]
fn a_key_works_for_its_agent_and_only_one_credential_counts() {
    let (bearer, wrong_bearer) = (format!("Bearer {TOKEN}"), format!("Bearer {TOKEN}0"));
    let key = ("X-API-Key", TOKEN);
    let ann = Ok("ann".to_owned());
    assert_eq!(authenticate("keyed", &[key], None), ann);
    assert_eq!(authenticate("keyed", &[("authorization", &bearer)], None), ann);
    assert_eq!(authenticate("keyed", &[("authorization", &bearer), key], None), ann);
    let wrong = Err(AuthenticationError::Invalid);
    assert_eq!(authenticate("keyed", &[("authorization", &wrong_bearer), key], None), wrong);
    assert_eq!(authenticate("keyed", &[key, key], None), wrong);
    assert_eq!(authenticate("keyed", &[("X-API-Key", "x")], None), wrong);
    assert_eq!(authenticate("plain", &[key], None), Err(AuthenticationError::Missing));
    assert_eq!(authenticate("unknown", &[key], None), Err(AuthenticationError::Missing));
}

#[test]
fn anonymous_access_never_hides_a_wrong_credential() {
    assert_eq!(authenticate("open", &[], None), Ok("anonymous".to_owned()));
    assert_eq!(
        authenticate("open", &[("authorization", "Bearer x")], None),
        Err(AuthenticationError::Invalid)
    );
    assert_eq!(
        authenticate("open", &[("x-forwarded-for", "::1")], None),
        Err(AuthenticationError::Missing)
    );
    assert_eq!(authenticate("plain", &[], None), Err(AuthenticationError::Missing));
}
