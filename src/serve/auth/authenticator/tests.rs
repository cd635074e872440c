//! Tests of the authenticator with credentials, keys of agents and open agents.

use algonius_actors::model::access::endpoint_config::Exposure;
use algonius_actors::model::id::PrincipalId;

use super::*;
use crate::serve::tests::spec;

const TEXT: &str = "0123456789abcdef0123456789abcdef";

/// Returns an authenticator that accepts `TEXT`, with a plain agent, one with a key, and an open one.
fn guard(expires: Option<&str>) -> Authenticator {
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
    let anonymous_principals = anonymous_principals(&specs);
    let scope = Scope { rights: vec![Right::Read], agents: None };
    let ann =
        TokenSeed { name: "ann".to_owned(), hash: Sha256::digest(TEXT).into(), scope, expires };
    let tokens = anonymous_principals.iter().cloned().chain([ann]).map(token).collect();
    Authenticator::new(tokens, &specs, &anonymous_principals)
}

fn answer(agent: &str, lines: &[(&str, &str)], expires: Option<&str>) -> Result<String, Rejected> {
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
fn only_one_header_with_a_known_token_is_accepted() {
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
fn an_expired_token_is_treated_as_unknown() {
    let header = format!("Bearer {TEXT}");
    assert!(admitted(&[&header], Some("2030-01-01T00:00:01Z")));
    assert!(!admitted(&[&header], Some("2030-01-01T00:00:00Z")));
}

#[test]
fn a_key_works_for_its_agent_and_only_one_credential_counts() {
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
fn anonymous_access_never_hides_a_wrong_credential() {
    assert_eq!(answer("open", &[], None), Ok("anonymous".to_owned()));
    assert_eq!(answer("open", &[("authorization", "Bearer x")], None), Err(Rejected::Wrong));
    assert_eq!(answer("open", &[("x-forwarded-for", "::1")], None), Err(Rejected::Missing));
    assert_eq!(answer("plain", &[], None), Err(Rejected::Missing));
}
