//! Agent cards as JSON, for readers of A2A 1.0, of 0.3 or of both.

use serde_json::{Value, json};

use super::v1::{
    Binding, Card, CardSecurity, Interface, ProtocolVersion, ProviderOrganization, Skill,
};
use crate::json_object::ObjectBuilder;

/// Version of the protocol for which a card is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CardFormat {
    /// Card for both versions: the fields of 1.0 and, beside them, those of 0.3.
    Hybrid,
    /// Card for readers of 1.0, which may reject unknown fields.
    Only1_0,
    /// Card for readers of 0.3.
    Only0_3,
}

/// Name of a security scheme on the card.
const BEARER_SCHEME: &str = "bearer";
const API_KEY_SCHEME: &str = "apiKey";

/// Returns a card as JSON. The list of 1.0 has every interface, those of 1.0 first, so that its clients can
/// choose 0.3; the list of 0.3 has only its own.
#[must_use]
pub fn card_json(card: &Card, format: CardFormat) -> Value {
    let (includes_0_3, includes_1_0) = match format {
        CardFormat::Hybrid => (true, true),
        CardFormat::Only1_0 => (false, true),
        CardFormat::Only0_3 => (true, false),
    };
    let mut object = ObjectBuilder::from_field("name", card.name.as_str())
        .with_field("description", card.description.as_str())
        .with_field("version", card.version.as_str())
        .with_field("defaultInputModes", card.input_modes.clone())
        .with_field("defaultOutputModes", card.output_modes.clone())
        .with_field("skills", card.skills.iter().map(skill_json).collect::<Vec<_>>())
        .with_field("capabilities", capabilities_json(card, format))
        .with_optional_field("provider", card.details.provider.as_ref().map(provider_json))
        .with_optional_field("documentationUrl", card.details.documentation_url.as_deref())
        .with_optional_field("iconUrl", card.details.icon_url.as_deref())
        .with_optional_field(
            "securitySchemes",
            security_schemes(&card.security, includes_0_3, includes_1_0),
        );
    if includes_1_0 {
        object = add_fields_of_1_0(object, card);
    }
    if includes_0_3 {
        object = add_fields_of_0_3(object, card);
    }
    object.into()
}

fn provider_json(provider: &ProviderOrganization) -> Value {
    let ProviderOrganization { organization, url } = provider;
    json!({"organization": organization, "url": url})
}

fn skill_json(skill: &Skill) -> Value {
    let Skill { id, name, description, tags, examples, input_modes, output_modes } = skill.clone();
    ObjectBuilder::from_field("id", id)
        .with_field("name", name)
        .with_field("description", description)
        .with_field("tags", tags)
        .with_non_empty_list("examples", examples)
        .with_non_empty_list("inputModes", input_modes)
        .with_non_empty_list("outputModes", output_modes)
        .into()
}

fn capabilities_json(card: &Card, format: CardFormat) -> ObjectBuilder {
    let extensions = card.capabilities.extensions.iter().map(|(uri, description, is_required)| {
        json!({"uri": uri, "description": description, "required": is_required})
    });
    let object = ObjectBuilder::from_field("streaming", card.capabilities.streaming)
        .with_field("pushNotifications", card.capabilities.push_notifications)
        .with_non_empty_list("extensions", extensions.collect());
    let with_extended_card = |object: ObjectBuilder| {
        object.with_field("extendedAgentCard", card.capabilities.has_extended_card)
    };
    let with_history_flag =
        |object: ObjectBuilder| object.with_field("stateTransitionHistory", false);
    match format {
        CardFormat::Hybrid => with_history_flag(with_extended_card(object)),
        CardFormat::Only1_0 => with_extended_card(object),
        CardFormat::Only0_3 => with_history_flag(object),
    }
}

/// Returns the one security scheme of a card. A card for both versions spells the scheme in both ways at once, so
/// that readers of either version find their own fields.
fn security_schemes(
    security: &CardSecurity,
    includes_0_3: bool,
    includes_1_0: bool,
) -> Option<Value> {
    let (name, scheme_0_3, scheme_1_0) = match security {
        CardSecurity::Bearer => (
            BEARER_SCHEME,
            json!({"type": "http", "scheme": "bearer"}),
            json!({"httpAuthSecurityScheme": {"scheme": "Bearer"}}),
        ),
        CardSecurity::ApiKey(header) => (
            API_KEY_SCHEME,
            json!({"type": "apiKey", "in": "header", "name": header}),
            json!({"apiKeySecurityScheme": {"location": "header", "name": header}}),
        ),
        CardSecurity::NoAuthentication => return None,
    };
    let spellings = [(includes_0_3, scheme_0_3), (includes_1_0, scheme_1_0)];
    let mut scheme = serde_json::Map::new();
    for (is_included, spelling) in spellings {
        if let (true, Value::Object(fields)) = (is_included, spelling) {
            scheme.extend(fields);
        }
    }
    Some(ObjectBuilder::from_field(name, scheme).into())
}

const fn scheme_name(security: &CardSecurity) -> Option<&'static str> {
    match security {
        CardSecurity::Bearer => Some(BEARER_SCHEME),
        CardSecurity::ApiKey(_) => Some(API_KEY_SCHEME),
        CardSecurity::NoAuthentication => None,
    }
}

fn add_fields_of_1_0(object: ObjectBuilder, card: &Card) -> ObjectBuilder {
    let ordered_interfaces = interfaces_of_version(card, ProtocolVersion::V1_0)
        .chain(interfaces_of_version(card, ProtocolVersion::V0_3));
    let interfaces = ordered_interfaces.map(|interface| {
        ObjectBuilder::from_field("url", interface.v1_interface_url())
            .with_field("protocolBinding", binding_name(interface.binding))
            .with_field("protocolVersion", interface.version.as_str())
            .with_optional_field("tenant", interface.tenant.as_deref())
    });
    let requirements =
        scheme_name(&card.security).map(|name| json!([{"schemes": {name: {"list": []}}}]));
    object
        .with_field("supportedInterfaces", interfaces.collect::<Vec<_>>())
        .with_optional_field("securityRequirements", requirements)
}

fn add_fields_of_0_3(object: ObjectBuilder, card: &Card) -> ObjectBuilder {
    let interfaces = interfaces_of_version(card, ProtocolVersion::V0_3).map(|interface| {
        ObjectBuilder::from_field("url", interface.url.as_str())
            .with_field("transport", binding_name(interface.binding))
    });
    // 0.3 has the preferred interface at the top, and recommends to repeat it in the list.
    let preferred = interfaces_of_version(card, ProtocolVersion::V0_3).next();
    let requirements = scheme_name(&card.security).map(|name| json!([{name: []}]));
    object
        .with_field("protocolVersion", "0.3.0")
        .with_optional_field("url", preferred.map(|interface| interface.url.as_str()))
        .with_optional_field(
            "preferredTransport",
            preferred.map(|interface| binding_name(interface.binding)),
        )
        .with_field("additionalInterfaces", interfaces.collect::<Vec<_>>())
        .with_optional_field("security", requirements)
        .with_field("supportsAuthenticatedExtendedCard", card.capabilities.has_extended_card)
}

fn interfaces_of_version(
    card: &Card,
    version: ProtocolVersion,
) -> impl Iterator<Item = &Interface> {
    card.interfaces.iter().filter(move |interface| interface.version == version)
}

/// Returns the name of a binding, which is the same in both versions.
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
    use crate::v1::CardCapabilities;
    use crate::v1::CardDetails;

    fn echo_card(security: CardSecurity, format: CardFormat) -> Value {
        let interface = |url: &str, binding, version| Interface {
            url: url.to_owned(),
            binding,
            version,
            tenant: (version == ProtocolVersion::V1_0).then(|| "echo".to_owned()),
        };
        let echo = Card {
            name: "echo".to_owned(),
            description: "says it again".to_owned(),
            version: "1".to_owned(),
            interfaces: vec![
                interface("http://a/v1", Binding::JsonRpc, ProtocolVersion::V0_3),
                interface("http://a/v1", Binding::JsonRpc, ProtocolVersion::V1_0),
                interface("http://a", Binding::HttpJson, ProtocolVersion::V0_3),
                interface("a:1", Binding::Grpc, ProtocolVersion::V1_0),
                interface("http://a:1", Binding::Grpc, ProtocolVersion::V0_3),
            ],
            capabilities: CardCapabilities {
                streaming: true,
                push_notifications: false,
                has_extended_card: true,
                extensions: vec![("https://x".to_owned(), "x".to_owned(), false)],
            },
            input_modes: vec!["text/plain".to_owned()],
            output_modes: vec!["text/plain".to_owned()],
            skills: vec![Skill {
                id: "s".to_owned(),
                name: "s".to_owned(),
                description: "s".to_owned(),
                tags: vec!["t".to_owned()],
                examples: vec!["do s".to_owned()],
                input_modes: vec!["image/*".to_owned()],
                output_modes: vec!["text/html".to_owned()],
            }],
            details: CardDetails {
                provider: Some(ProviderOrganization {
                    organization: "us".to_owned(),
                    url: "https://us".to_owned(),
                }),
                documentation_url: Some("https://us/docs".to_owned()),
                icon_url: Some("https://us/icon.png".to_owned()),
            },
            security,
        };
        card_json(&echo, format)
    }

    fn field_names(card: &Value) -> Vec<&str> {
        card.as_object().expect("an object").keys().map(String::as_str).collect()
    }

    #[test]
    fn a_card_for_one_version_has_no_field_of_the_other() {
        let card_1_0 = echo_card(CardSecurity::Bearer, CardFormat::Only1_0);
        let card_0_3 = echo_card(CardSecurity::Bearer, CardFormat::Only0_3);
        let hybrid_card = echo_card(CardSecurity::Bearer, CardFormat::Hybrid);
        let fields_only_in_0_3 = [
            "url",
            "preferredTransport",
            "additionalInterfaces",
            "protocolVersion",
            "security",
            "supportsAuthenticatedExtendedCard",
        ];
        let fields_only_in_1_0 = ["supportedInterfaces", "securityRequirements"];
        for name in fields_only_in_0_3 {
            assert!(
                card_1_0.get(name).is_none() && field_names(&hybrid_card).contains(&name),
                "{name}"
            );
        }
        for name in fields_only_in_1_0 {
            assert!(
                card_0_3.get(name).is_none() && field_names(&hybrid_card).contains(&name),
                "{name}"
            );
        }
        assert_eq!(
            card_1_0["capabilities"],
            json!({"streaming": true, "pushNotifications": false, "extendedAgentCard": true,
                "extensions": [{"uri": "https://x", "description": "x", "required": false}]})
        );
        assert_eq!(card_0_3["capabilities"].get("extendedAgentCard"), None);
    }

    #[test]
    fn a_hybrid_card_lists_interfaces_of_both_versions() {
        let hybrid_card = echo_card(CardSecurity::NoAuthentication, CardFormat::Hybrid);
        let interface_1_0 = |url: &str, binding: &str| {
            json!({"url": url, "protocolBinding": binding, "protocolVersion": "1.0",
                "tenant": "echo"})
        };
        let interface_0_3 = |url: &str, binding: &str| json!({"url": url, "protocolBinding": binding, "protocolVersion": "0.3"});
        let all = json!([
            interface_1_0("http://a/v1", "JSONRPC"),
            interface_1_0("a:1", "GRPC"),
            interface_0_3("http://a/v1", "JSONRPC"),
            interface_0_3("http://a", "HTTP+JSON"),
            interface_0_3("a:1", "GRPC"),
        ]);
        assert_eq!(hybrid_card["supportedInterfaces"], all);
        let card_1_0 = echo_card(CardSecurity::NoAuthentication, CardFormat::Only1_0);
        assert_eq!(card_1_0["supportedInterfaces"], all);
        assert_eq!(hybrid_card["url"], "http://a/v1");
        assert_eq!(hybrid_card["preferredTransport"], "JSONRPC");
        assert_eq!(
            hybrid_card["additionalInterfaces"],
            json!([
                {"url": "http://a/v1", "transport": "JSONRPC"},
                {"url": "http://a", "transport": "HTTP+JSON"},
                {"url": "http://a:1", "transport": "GRPC"},
            ])
        );
        assert_eq!(hybrid_card.get("securitySchemes"), None);
    }

    #[test]
    fn configured_card_details_are_on_every_form() {
        for format in [CardFormat::Hybrid, CardFormat::Only1_0, CardFormat::Only0_3] {
            let card = echo_card(CardSecurity::NoAuthentication, format);
            assert_eq!(card["provider"], json!({"organization": "us", "url": "https://us"}));
            assert_eq!(card["documentationUrl"], "https://us/docs");
            assert_eq!(card["iconUrl"], "https://us/icon.png");
            assert_eq!(
                card["skills"],
                json!([{"id": "s", "name": "s", "description": "s", "tags": ["t"],
                    "examples": ["do s"], "inputModes": ["image/*"], "outputModes": ["text/html"]}])
            );
        }
    }

    #[test]
    fn a_security_scheme_is_spelled_as_its_version_requires() {
        let key = || CardSecurity::ApiKey("X-Key".to_owned());
        assert_eq!(
            echo_card(key(), CardFormat::Only1_0)["securitySchemes"],
            json!({"apiKey": {"apiKeySecurityScheme": {"location": "header", "name": "X-Key"}}})
        );
        assert_eq!(
            echo_card(CardSecurity::Bearer, CardFormat::Hybrid)["securitySchemes"],
            json!({"bearer": {"type": "http", "scheme": "bearer",
                "httpAuthSecurityScheme": {"scheme": "Bearer"}}})
        );
        let card_0_3 = echo_card(key(), CardFormat::Only0_3);
        assert_eq!(
            card_0_3["securitySchemes"],
            json!({"apiKey": {"type": "apiKey", "in": "header", "name": "X-Key"}})
        );
        assert_eq!(card_0_3["security"], json!([{"apiKey": []}]));
    }
}
