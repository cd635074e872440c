//! An agent's card as JSON, for readers of either version or of both.

use serde_json::{Value, json};

use super::v1::{Binding, Card, CardSecurity, CardSkill, Interface, Version};
use crate::wire::fields::Object;

/// Who is to read a card.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CardForm {
    /// Both: the fields of 1.0 and, beside them, those of 0.3.
    Hybrid,
    /// Readers of 1.0, which may be strict about fields they do not know.
    Pure1_0,
    /// Readers of 0.3.
    Only0_3,
}

/// The name of a security scheme on the card.
const BEARER: &str = "bearer";
const API_KEY: &str = "apiKey";

/// A card as JSON. Each form lists the ways in of its own version only.
#[must_use]
pub fn card(card: &Card, form: CardForm) -> Value {
    let (is_old, is_new) = match form {
        CardForm::Hybrid => (true, true),
        CardForm::Pure1_0 => (false, true),
        CardForm::Only0_3 => (true, false),
    };
    let mut shown = Object::of("name", card.name.as_str())
        .with("description", card.description.as_str())
        .with("version", card.version.as_str())
        .with("defaultInputModes", card.input_modes.clone())
        .with("defaultOutputModes", card.output_modes.clone())
        .with("skills", card.skills.iter().map(skill).collect::<Vec<_>>())
        .with("capabilities", capabilities(card, form))
        .some("securitySchemes", schemes(&card.security, is_old, is_new));
    if is_new {
        shown = with_1_0(shown, card);
    }
    if is_old {
        shown = with_0_3(shown, card);
    }
    shown.into()
}

fn skill(skill: &CardSkill) -> Value {
    let CardSkill { id, name, description, tags } = skill;
    json!({"id": id, "name": name, "description": description, "tags": tags})
}

fn capabilities(card: &Card, form: CardForm) -> Object {
    let extensions = card.extensions.iter().map(|(uri, description, is_required)| {
        json!({"uri": uri, "description": description, "required": is_required})
    });
    let said = Object::of("streaming", card.streaming)
        .with("pushNotifications", card.push)
        .listed("extensions", extensions.collect());
    let extended = |said: Object| said.with("extendedAgentCard", card.extended);
    let history = |said: Object| said.with("stateTransitionHistory", false);
    match form {
        CardForm::Hybrid => history(extended(said)),
        CardForm::Pure1_0 => extended(said),
        CardForm::Only0_3 => history(said),
    }
}

/// One scheme. On a card for both it is spelled in both ways at once, and readers of either find
/// theirs.
fn schemes(security: &CardSecurity, is_old: bool, is_new: bool) -> Option<Value> {
    let (name, old, new) = match security {
        CardSecurity::Bearer => (
            BEARER,
            json!({"type": "http", "scheme": "bearer"}),
            json!({"httpAuthSecurityScheme": {"scheme": "Bearer"}}),
        ),
        CardSecurity::ApiKey(header) => (
            API_KEY,
            json!({"type": "apiKey", "in": "header", "name": header}),
            json!({"apiKeySecurityScheme": {"location": "header", "name": header}}),
        ),
        CardSecurity::Nothing => return None,
    };
    let spellings = [(is_old, old), (is_new, new)];
    let mut scheme = serde_json::Map::new();
    for (is_wanted, spelling) in spellings {
        if let (true, Value::Object(fields)) = (is_wanted, spelling) {
            scheme.extend(fields);
        }
    }
    Some(Object::of(name, scheme).into())
}

const fn scheme_name(security: &CardSecurity) -> Option<&'static str> {
    match security {
        CardSecurity::Bearer => Some(BEARER),
        CardSecurity::ApiKey(_) => Some(API_KEY),
        CardSecurity::Nothing => None,
    }
}

fn with_1_0(shown: Object, card: &Card) -> Object {
    let interfaces = of_version(card, Version::V1_0).map(|way| {
        let Interface { url, binding, version: _, tenant } = way;
        Object::of("url", url.as_str())
            .with("protocolBinding", binding_name(*binding))
            .with("protocolVersion", "1.0")
            .some("tenant", tenant.as_deref())
    });
    let required =
        scheme_name(&card.security).map(|name| json!([{"schemes": {name: {"list": []}}}]));
    shown
        .with("supportedInterfaces", interfaces.collect::<Vec<_>>())
        .some("securityRequirements", required)
}

fn with_0_3(shown: Object, card: &Card) -> Object {
    let interfaces = of_version(card, Version::V0_3).map(|way| {
        Object::of("url", way.url.as_str()).with("transport", binding_name(way.binding))
    });
    let preferred = of_version(card, Version::V0_3).next();
    let required = scheme_name(&card.security).map(|name| json!([{name: []}]));
    shown
        .with("protocolVersion", "0.3.0")
        .some("url", preferred.map(|way| way.url.as_str()))
        .some("preferredTransport", preferred.map(|way| binding_name(way.binding)))
        .with("additionalInterfaces", interfaces.collect::<Vec<_>>())
        .some("security", required)
        .with("supportsAuthenticatedExtendedCard", card.extended)
}

fn of_version(card: &Card, version: Version) -> impl Iterator<Item = &Interface> {
    card.interfaces.iter().filter(move |way| way.version == version)
}

/// What both versions call a binding.
const fn binding_name(binding: Binding) -> &'static str {
    match binding {
        Binding::JsonRpc => "JSONRPC",
        Binding::HttpJson => "HTTP+JSON",
        Binding::Grpc => "GRPC",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(security: CardSecurity, form: CardForm) -> Value {
        let way = |url: &str, binding, version| Interface {
            url: url.to_owned(),
            binding,
            version,
            tenant: (version == Version::V1_0).then(|| "echo".to_owned()),
        };
        let echo = Card {
            name: "echo".to_owned(),
            description: "says it again".to_owned(),
            version: "1".to_owned(),
            interfaces: vec![
                way("http://a/v1", Binding::JsonRpc, Version::V0_3),
                way("http://a/v1", Binding::JsonRpc, Version::V1_0),
                way("http://a", Binding::HttpJson, Version::V0_3),
                way("a:1", Binding::Grpc, Version::V1_0),
            ],
            streaming: true,
            push: false,
            extended: true,
            extensions: vec![("https://x".to_owned(), "x".to_owned(), false)],
            input_modes: vec!["text/plain".to_owned()],
            output_modes: vec!["text/plain".to_owned()],
            skills: vec![CardSkill {
                id: "s".to_owned(),
                name: "s".to_owned(),
                description: "s".to_owned(),
                tags: vec!["t".to_owned()],
            }],
            security,
        };
        card(&echo, form)
    }

    fn names(card: &Value) -> Vec<&str> {
        card.as_object().expect("an object").keys().map(String::as_str).collect()
    }

    #[test]
    fn a_card_for_one_version_knows_no_field_of_the_other() {
        let new = shown(CardSecurity::Bearer, CardForm::Pure1_0);
        let old = shown(CardSecurity::Bearer, CardForm::Only0_3);
        let both = shown(CardSecurity::Bearer, CardForm::Hybrid);
        let only_old = [
            "url",
            "preferredTransport",
            "additionalInterfaces",
            "protocolVersion",
            "security",
            "supportsAuthenticatedExtendedCard",
        ];
        let only_new = ["supportedInterfaces", "securityRequirements"];
        for name in only_old {
            assert!(new.get(name).is_none() && names(&both).contains(&name), "{name}");
        }
        for name in only_new {
            assert!(old.get(name).is_none() && names(&both).contains(&name), "{name}");
        }
        assert_eq!(
            new["capabilities"],
            json!({"streaming": true, "pushNotifications": false, "extendedAgentCard": true,
                "extensions": [{"uri": "https://x", "description": "x", "required": false}]})
        );
        assert_eq!(old["capabilities"].get("extendedAgentCard"), None);
    }

    #[test]
    fn each_version_is_shown_its_own_ways_in_the_first_one_preferred() {
        let both = shown(CardSecurity::Nothing, CardForm::Hybrid);
        let new = |url: &str, binding: &str| {
            json!({"url": url, "protocolBinding": binding, "protocolVersion": "1.0",
                "tenant": "echo"})
        };
        assert_eq!(
            both["supportedInterfaces"],
            json!([new("http://a/v1", "JSONRPC"), new("a:1", "GRPC")])
        );
        assert_eq!(both["url"], "http://a/v1");
        assert_eq!(both["preferredTransport"], "JSONRPC");
        assert_eq!(
            both["additionalInterfaces"],
            json!([
                {"url": "http://a/v1", "transport": "JSONRPC"},
                {"url": "http://a", "transport": "HTTP+JSON"},
            ])
        );
        assert_eq!(both.get("securitySchemes"), None);
    }

    #[test]
    fn a_scheme_is_spelled_as_its_reader_spells_it() {
        let key = || CardSecurity::ApiKey("X-Key".to_owned());
        assert_eq!(
            shown(key(), CardForm::Pure1_0)["securitySchemes"],
            json!({"apiKey": {"apiKeySecurityScheme": {"location": "header", "name": "X-Key"}}})
        );
        assert_eq!(
            shown(CardSecurity::Bearer, CardForm::Hybrid)["securitySchemes"],
            json!({"bearer": {"type": "http", "scheme": "bearer",
                "httpAuthSecurityScheme": {"scheme": "Bearer"}}})
        );
        let old = shown(key(), CardForm::Only0_3);
        assert_eq!(
            old["securitySchemes"],
            json!({"apiKey": {"type": "apiKey", "in": "header", "name": "X-Key"}})
        );
        assert_eq!(old["security"], json!([{"apiKey": []}]));
    }
}
