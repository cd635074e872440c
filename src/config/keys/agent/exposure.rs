//! `[agents.<id>.a2a]` and `[agents.<id>.auth]`: exposure of an agent, and authentication of its callers.

use std::sync::Arc;

use algonius_actors::model::access::endpoint_config::{
    Binding, CallerAuth, CardDetails, EndpointConfig, MessageIdPolicy, ProtocolOperation,
    ProtocolVersion, ProviderOrganization, RateLimit,
};
use algonius_actors::model::access::principal::{NewToken, Right, Scope};
use algonius_actors::model::id::AgentId;
use sha2::{Digest, Sha256};

use super::card;
use crate::config::diagnostics::new_diagnostic;
use crate::config::keys::tokens;
use crate::config::table::{Positioned, RangeWithDefault, Section, read_keyword_list};

/// First path segments that belong to the service itself.
const RESERVED_PATH_SEGMENTS: [&str; 8] =
    ["agents", "api", "a2a", "status", "health", "ready", "metrics", "errors"];
/// Headers that cannot hold a key, because they have another meaning.
const RESERVED_HEADERS: [&str; 7] =
    ["authorization", "connection", "content-length", "content-type", "cookie", "host", "origin"];

/// Rules about message ids by keyword.
const MESSAGE_ID_POLICIES: [(&str, MessageIdPolicy); 2] =
    [("unique", MessageIdPolicy::Unique), ("reused", MessageIdPolicy::Reusable)];

/// Authentication settings of all agents that were read so far.
pub(crate) struct ExposureReadState {
    /// True if only this machine can reach the service.
    pub(crate) is_loopback: bool,
    /// Tokens that were read so far.
    pub(crate) tokens: Vec<NewToken>,
    /// Own paths of agents that were read so far.
    pub(crate) base_paths: Vec<String>,
    /// Default exposure, which most agents share.
    pub(crate) default_endpoint: Arc<EndpointConfig>,
}

impl ExposureReadState {
    /// Returns the settings before any agent is read. `provider` applies to every agent that names none.
    pub(crate) fn new(
        is_loopback: bool,
        tokens: Vec<NewToken>,
        provider: Option<ProviderOrganization>,
    ) -> Self {
        let details = CardDetails { provider, ..CardDetails::default() };
        let default_endpoint =
            Arc::new(EndpointConfig { card_details: details, ..EndpointConfig::default() });
        Self { is_loopback, tokens, base_paths: Vec::new(), default_endpoint }
    }
}

/// Reads the exposure of an agent.
pub(crate) fn read(
    agent: &mut Section<'_>,
    id: &AgentId,
    exposure_state: &mut ExposureReadState,
) -> Arc<EndpointConfig> {
    let mut section = agent.section("a2a");
    let table = &mut section;
    let default = Arc::clone(&exposure_state.default_endpoint);
    let bindings = read_keyword_list(table, "bindings", Binding::ALL, Binding::as_str);
    let endpoint_config = EndpointConfig {
        versions: read_keyword_list(
            table,
            "versions",
            ProtocolVersion::ALL,
            ProtocolVersion::as_str,
        ),
        card_bindings: card::read_card_bindings(table, &bindings),
        bindings,
        card_details: card::read_card_details(table, &default.card_details),
        base_path: read_base_path(table, id, exposure_state),
        operations: read_operations(table),
        input_modes: read_media_types(table, "input_modes")
            .unwrap_or_else(|| default.input_modes.clone()),
        output_modes: read_media_types(table, "output_modes")
            .unwrap_or_else(|| default.output_modes.clone()),
        rate_limit: read_rate_limit(table),
        message_id_policy: table
            .keyword("message_ids", &MESSAGE_ID_POLICIES)
            .map(|word| word.value)
            .unwrap_or_default(),
        ..EndpointConfig::default()
    };
    section.report_unknown_keys();
    let returns_raw_answers = agent.flag("unredacted_response", false);
    let stream_output = agent.flag("stream_output", true);
    let (caller_auth, allows_anonymous) =
        read_caller_auth(agent.section("auth"), id, exposure_state);
    let endpoint_config = EndpointConfig {
        caller_auth,
        allows_anonymous,
        returns_raw_answers,
        stream_output,
        ..endpoint_config
    };
    if endpoint_config == *default { default } else { Arc::new(endpoint_config) }
}

/// Returns the permitted operations: the listed methods without the disabled ones.
fn read_operations(section: &mut Section<'_>) -> Vec<ProtocolOperation> {
    let mut operations =
        read_keyword_list(section, "methods", ProtocolOperation::ALL, ProtocolOperation::as_str);
    for (key, disabled_operations) in [
        ("streaming", &[ProtocolOperation::Stream, ProtocolOperation::Subscribe][..]),
        ("push", &[ProtocolOperation::Push]),
        ("extended_card", &[ProtocolOperation::ExtendedCard]),
    ] {
        if !section.flag(key, true) {
            operations.retain(|operation| !disabled_operations.contains(operation));
        }
    }
    operations
}

/// Reads an alternative base path of the agent. It may be written with the `/v1` that follows it.
fn read_base_path(
    section: &mut Section<'_>,
    id: &AgentId,
    exposure_state: &mut ExposureReadState,
) -> Option<String> {
    let text = section.nonblank_text("base_path")?;
    let path = text.value.trim_end_matches('/');
    let path = path.strip_suffix("/v1").unwrap_or(path).to_owned();
    if path == format!("/agents/{id}") {
        return None;
    }
    let segments: Vec<_> = path.split('/').skip(1).collect();
    let is_valid_segment = |name: &&str| {
        let is_permitted = |letter: char| letter.is_ascii_alphanumeric() || "-_".contains(letter);
        !name.is_empty() && name.chars().all(is_permitted)
    };
    let is_within = |path: &str, other: &str| {
        path.strip_prefix(other).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let diagnostic = if !path.starts_with('/') || !segments.iter().all(is_valid_segment) {
        "must be a path of the characters A-Z a-z 0-9 _ -, such as \"/bots/x\""
    } else if segments.first().is_some_and(|first| RESERVED_PATH_SEGMENTS.contains(first)) {
        "begins like a path of the service itself"
    } else if exposure_state
        .base_paths
        .iter()
        .any(|other| is_within(&path, other) || is_within(other, &path))
    {
        "is, or lies within, the path of another agent"
    } else {
        exposure_state.base_paths.push(path.clone());
        return Some(path);
    };
    section.reader.report_error(&text.position, diagnostic);
    None
}

/// Reads media types; `*/*` is any.
pub(crate) fn read_media_types(
    section: &mut Section<'_>,
    key: &'static str,
) -> Option<Vec<String>> {
    let texts = section.text_list(key)?;
    let is_type_name = |part: &str| {
        let is_permitted =
            |letter: char| letter.is_ascii_alphanumeric() || "-+._*".contains(letter);
        !part.is_empty() && part.chars().all(is_permitted)
    };
    if texts.is_empty() {
        section
            .reader
            .report_error(&section.position.child(key).without_excerpt(), "must name one at least");
    }
    let valid = texts.into_iter().filter_map(|text| {
        let parts = text.value.split_once('/');
        if parts
            .is_some_and(|(main_type, subtype)| is_type_name(main_type) && is_type_name(subtype))
        {
            return Some(text.value.to_ascii_lowercase());
        }
        section.reader.report_error(&text.position, "must be a media type such as \"text/plain\"");
        None
    });
    Some(valid.collect())
}

/// Reads the rate limit of calls.
fn read_rate_limit(section: &mut Section<'_>) -> Option<RateLimit> {
    let is_given = section.has_key("rate_limit");
    let mut limit = section.section("rate_limit");
    let per_second = limit.number("requests_per_second", RangeWithDefault::new(0.001, 1e6, 10.0));
    let burst = limit.count("burst", RangeWithDefault::new(1, 1_000_000, 10));
    limit.report_unknown_keys();
    let burst = u32::try_from(burst).unwrap_or(u32::MAX);
    is_given.then_some(RateLimit { per_second, burst })
}

/// Kind of credential, as configured.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CredentialKind {
    Bearer,
    ApiKey,
    Nothing,
}

const CREDENTIAL_KINDS: [(&str, CredentialKind); 4] = [
    ("bearer", CredentialKind::Bearer),
    ("api_key", CredentialKind::ApiKey),
    ("none", CredentialKind::Nothing),
    ("bearer_token", CredentialKind::Bearer),
];

/// Reads `auth`: the kind of credential, and whether it is required.
fn read_caller_auth(
    mut section: Section<'_>,
    id: &AgentId,
    exposure_state: &mut ExposureReadState,
) -> (CallerAuth, bool) {
    let table = &mut section;
    let credential_kind = table
        .keyword("type", &CREDENTIAL_KINDS)
        .map_or(CredentialKind::Bearer, |found| found.value);
    let token_name = table.nonblank_text("name");
    if credential_kind == CredentialKind::ApiKey
        || table.has_key("token_env")
        || table.has_key("token_file")
    {
        add_own_token(table, id, token_name, exposure_state);
    }
    let header = read_api_key_header(table, credential_kind);
    let allows_anonymous = !table.flag("required", credential_kind != CredentialKind::Nothing);
    let is_insecure = table.flag("insecure", false);
    if allows_anonymous && !(is_insecure && exposure_state.is_loopback) {
        let diagnostic = new_diagnostic("admits every caller who can reach the service")
            .with_hint("this needs `insecure = true`, and a `server.listen` that is on loopback");
        table.reader.report_error(&table.position.clone().without_excerpt(), diagnostic);
    }
    if !allows_anonymous && credential_kind == CredentialKind::Nothing {
        table
            .reader
            .report_error(&table.position.child("required"), "cannot be with `type = \"none\"`");
    }
    section.report_unknown_keys();
    let caller_auth = match credential_kind {
        CredentialKind::Bearer => CallerAuth::Bearer,
        CredentialKind::ApiKey => CallerAuth::ApiKeyHeader(header),
        CredentialKind::Nothing => CallerAuth::NoAuth,
    };
    (caller_auth, allows_anonymous)
}

/// Reads the agent's own token: it is valid for this agent only, to read and to run.
fn add_own_token(
    section: &mut Section<'_>,
    id: &AgentId,
    configured_name: Option<Positioned<String>>,
    exposure_state: &mut ExposureReadState,
) {
    let position = section.position.clone().without_excerpt();
    let name = configured_name.map_or_else(|| format!("agent:{id}"), |name| name.value);
    let token_name = Positioned { value: name, position };
    let Some(text) = tokens::read_token_text(section, &token_name) else { return };
    // The hash is enough to recognize the token, so the text is not kept.
    let hash = Sha256::digest(text).into();
    if let Some(other) = exposure_state.tokens.iter().find(|other| other.hash == hash) {
        let diagnostic = format!("has the same text as the token `{}`", other.name);
        section.reader.report_error(&token_name.position, diagnostic);
    }
    let scope = Scope { rights: vec![Right::Read, Right::Run], agents: Some(vec![id.clone()]) };
    exposure_state.tokens.push(NewToken { name: token_name.value, hash, scope, expires_at: None });
}

/// Reads the header of the key.
fn read_api_key_header(section: &mut Section<'_>, credential_kind: CredentialKind) -> String {
    let default = "x-api-key".to_owned();
    let Some(text) = section.nonblank_text("header") else { return default };
    let name = text.value.to_ascii_lowercase();
    let is_permitted = |letter: char| letter.is_ascii_alphanumeric() || letter == '-';
    let diagnostic = if credential_kind != CredentialKind::ApiKey {
        "has a meaning with `type = \"api_key\"` only"
    } else if !name.chars().all(is_permitted) || RESERVED_HEADERS.contains(&name.as_str()) {
        "must be the name of a header of its own, such as \"X-API-Key\""
    } else {
        return name;
    };
    section.reader.report_error(&text.position, diagnostic);
    default
}
