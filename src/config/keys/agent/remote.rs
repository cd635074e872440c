//! `[agents.<id>.remote]`: address, protocol and credentials of an A2A agent of another service.

use algonius_actors::model::access::endpoint_config::ProtocolVersion;
use algonius_actors::model::agent::AgentKind;
use algonius_actors::model::agent::remote::{RemoteBinding, RemoteSpec};

use crate::config::diagnostics::Severity;
use crate::config::table::Section;
use crate::config::table::address::{UrlFaultTexts, validate_service_url};
use crate::config::table::credential::{CredentialKeys, read_credential};

/// Bindings by keyword.
const BINDINGS: [(&str, RemoteBinding); 2] =
    [("jsonrpc", RemoteBinding::JsonRpc), ("http+json", RemoteBinding::HttpJson)];
/// Versions by keyword.
const VERSIONS: [(&str, ProtocolVersion); 2] =
    [("1.0", ProtocolVersion::V1_0), ("0.3", ProtocolVersion::V0_3)];

/// Keys of the token.
const TOKEN_SETTING_KEYS: CredentialKeys =
    CredentialKeys { inline: "token", env: "token_env", file: "token_file", noun: "token" };
/// Texts of the faults of the URL.
const URL_FAULT_TEXTS: UrlFaultTexts = UrlFaultTexts {
    credential_hint: "use `token_file` or `token_env`",
    no_tls_reason: "the token and the messages would be readable",
    example: "https://agents.example.org/agents/x/v1",
};

/// Reads the section of a remote agent. In an agent of another kind, the section is a fault. A token that is not there
/// has the severity `machine_fault_severity`.
pub(crate) fn read(
    agent: &mut Section<'_>,
    kind: AgentKind,
    machine_fault_severity: Severity,
) -> Option<RemoteSpec> {
    let is_remote = kind == AgentKind::Remote;
    if agent.has_key("remote") && !is_remote {
        let position = agent.position.child("remote").without_excerpt();
        agent.reader.report_error(&position, "has a meaning with `kind = \"remote\"` only");
    }
    let mut section = agent.section("remote");
    let table = &mut section;
    let allows_http = table.flag("insecure_http", false);
    let url = table.nonblank_text("url");
    let version = table.keyword("version", &VERSIONS).map(|word| word.value);
    let binding = table.keyword("binding", &BINDINGS).map(|word| word.value);
    let token = read_credential(table, &TOKEN_SETTING_KEYS, machine_fault_severity);
    if is_remote {
        table.report_if_missing("url");
    }
    let url = url.and_then(|url| validate_service_url(table, url, allows_http, &URL_FAULT_TEXTS));
    let url = url.filter(|_| is_remote);
    section.report_unknown_keys();
    let (version, binding) =
        (version.unwrap_or(ProtocolVersion::V1_0), binding.unwrap_or_default());
    Some(RemoteSpec { url: url?, token, version, binding })
}
