//! Card-only settings: its listed bindings, the provider of the agent, and the documentation.

use algonius_actors::model::access::endpoint_config::{Binding, CardDetails, ProviderOrganization};

use crate::config::diagnostics::new_diagnostic;
use crate::config::table::{Section, read_keyword_list};

/// Schemes of URLs that a browser opens.
const SCHEMES: [&str; 2] = ["https://", "http://"];

/// Reads `card_bindings`: the bindings that an agent's card lists; all of them by default.
pub(crate) fn read_card_bindings(
    section: &mut Section<'_>,
    served_bindings: &[Binding],
) -> Vec<Binding> {
    const KEY: &str = "card_bindings";
    let is_given = section.has_key(KEY);
    let configured = read_keyword_list(section, KEY, Binding::ALL, Binding::as_str);
    if !is_given {
        return served_bindings.to_vec();
    }
    for binding in configured.iter().filter(|binding| !served_bindings.contains(binding)) {
        let diagnostic =
            new_diagnostic(format!("lists `{}`, which `bindings` leaves out", binding.as_str()))
                .with_hint("a card can list only what the agent is served over");
        section.reader.report_error(&section.position.child(KEY).without_excerpt(), diagnostic);
    }
    configured
}

/// Reads the details of a card; missing ones are taken from `default`.
pub(crate) fn read_card_details(section: &mut Section<'_>, default: &CardDetails) -> CardDetails {
    CardDetails {
        provider: read_provider(section).or_else(|| default.provider.clone()),
        documentation_url: read_url(section, "documentation_url"),
        icon_url: read_url(section, "icon_url"),
    }
}

/// Reads `provider`; the protocol requires both of its fields.
pub(crate) fn read_provider(section: &mut Section<'_>) -> Option<ProviderOrganization> {
    let is_given = section.has_key("provider");
    let mut provider = section.section("provider");
    let organization = provider.nonblank_text("organization").map(|text| text.value);
    let url = read_url(&mut provider, "url");
    if is_given {
        for key in ["organization", "url"].into_iter().filter(|key| !provider.has_key(key)) {
            provider
                .reader
                .report_error(&provider.position.child(key).without_excerpt(), "is needed");
        }
    }
    provider.report_unknown_keys();
    Some(ProviderOrganization { organization: organization?, url: url? })
}

/// Reads the examples of a skill.
pub(crate) fn read_examples(section: &mut Section<'_>) -> Vec<String> {
    let texts = section.text_list("examples").unwrap_or_default();
    for blank in texts.iter().filter(|text| text.value.trim().is_empty()) {
        section.reader.report_error(&blank.position, "must not be empty");
    }
    texts.into_iter().map(|text| text.value).collect()
}

/// Reads a URL that every reader of a card may open.
fn read_url(section: &mut Section<'_>, key: &'static str) -> Option<String> {
    let text = section.nonblank_text(key)?;
    let rest = SCHEMES.iter().find_map(|scheme| text.value.strip_prefix(scheme));
    let authority = rest.and_then(|rest| rest.split(['/', '?', '#']).next()).unwrap_or_default();
    if authority.contains('@') {
        // A card is public.
        section
            .reader
            .report_error(&text.position.without_excerpt(), "must not hold a name or password");
        return None;
    }
    let is_plain = text.value.chars().all(|letter| !letter.is_whitespace() && !letter.is_control());
    if authority.is_empty() || !is_plain {
        let diagnostic = "must be an address such as \"https://example.org/agents\"";
        section.reader.report_error(&text.position, diagnostic);
        return None;
    }
    Some(text.value)
}
