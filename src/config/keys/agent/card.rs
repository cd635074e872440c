//! Card-only settings: its listed bindings, the provider of the agent, and the documentation.

use algonius_actors::model::access::endpoint_config::{Binding, CardDetails, ProviderOrganization};

use crate::config::diagnostics::new_diagnostic;
use crate::config::table::{Section, read_keyword_list};

/// Schemes of URLs that a browser opens.
const SCHEMES: [&str; 2] = ["https://", "http://"];

/// Reads `card_bindings`: the bindings that an agent's card lists; all of them by default.
pub(crate) fn bindings(section: &mut Section<'_>, offered: &[Binding]) -> Vec<Binding> {
    const KEY: &str = "card_bindings";
    let is_given = section.has(KEY);
    let configured = read_keyword_list(section, KEY, Binding::ALL, Binding::as_str);
    if !is_given {
        return offered.to_vec();
    }
    for binding in configured.iter().filter(|binding| !offered.contains(binding)) {
        let diagnostic =
            new_diagnostic(format!("lists `{}`, which `bindings` leaves out", binding.as_str()))
                .with_hint("a card can list only what the agent is served over");
        section.reader.error(&section.position.below(KEY).unprintable(), diagnostic);
    }
    configured
}

/// Reads the details of a card; missing ones are taken from `default`.
pub(crate) fn details(section: &mut Section<'_>, default: &CardDetails) -> CardDetails {
    CardDetails {
        provider: provider(section).or_else(|| default.provider.clone()),
        documentation_url: url(section, "documentation_url"),
        icon_url: url(section, "icon_url"),
    }
}

/// Reads `provider`; the protocol requires both of its fields.
pub(crate) fn provider(section: &mut Section<'_>) -> Option<ProviderOrganization> {
    let is_given = section.has("provider");
    let mut provider = section.section("provider");
    let organization = provider.nonblank("organization").map(|text| text.value);
    let url = url(&mut provider, "url");
    if is_given {
        for key in ["organization", "url"].into_iter().filter(|key| !provider.has(key)) {
            provider.reader.error(&provider.position.below(key).unprintable(), "is needed");
        }
    }
    provider.finish();
    Some(ProviderOrganization { organization: organization?, url: url? })
}

/// Reads the examples of a skill.
pub(crate) fn examples(section: &mut Section<'_>) -> Vec<String> {
    let texts = section.texts("examples").unwrap_or_default();
    for blank in texts.iter().filter(|text| text.value.trim().is_empty()) {
        section.reader.error(&blank.position, "must not be empty");
    }
    texts.into_iter().map(|text| text.value).collect()
}

/// Reads a URL that every reader of a card may open.
fn url(section: &mut Section<'_>, key: &'static str) -> Option<String> {
    let text = section.nonblank(key)?;
    let rest = SCHEMES.iter().find_map(|scheme| text.value.strip_prefix(scheme));
    let authority = rest.and_then(|rest| rest.split(['/', '?', '#']).next()).unwrap_or_default();
    if authority.contains('@') {
        // A card is public.
        section.reader.error(&text.position.unprintable(), "must not hold a name or password");
        return None;
    }
    let is_plain = text.value.chars().all(|letter| !letter.is_whitespace() && !letter.is_control());
    if authority.is_empty() || !is_plain {
        let diagnostic = "must be an address such as \"https://example.org/agents\"";
        section.reader.error(&text.position, diagnostic);
        return None;
    }
    Some(text.value)
}
