//! `[agents.<id>.remote]`: address, protocol and credentials of an A2A agent of another service.

use std::net::IpAddr;

use algonius_actors::model::access::endpoint_config::ProtocolVersion;
use algonius_actors::model::agent::AgentKind;
use algonius_actors::model::agent::remote::{RemoteBinding, RemoteSpec};
use algonius_actors::model::push::Secret;
use hyper::Uri;

use crate::config::diagnostics::{Severity, from_message};
use crate::config::table::secret::{VARIABLE_NOT_SET, is_open_to_others};
use crate::config::table::{Section, Spanned};

/// Bindings by keyword.
const BINDINGS: [(&str, RemoteBinding); 2] =
    [("jsonrpc", RemoteBinding::JsonRpc), ("http+json", RemoteBinding::HttpJson)];
/// Versions by keyword.
const VERSIONS: [(&str, ProtocolVersion); 2] =
    [("1.0", ProtocolVersion::V1_0), ("0.3", ProtocolVersion::V0_3)];

/// Reads the section of a remote agent. In an agent of another kind, the section is a fault. A token that is not there
/// has the severity `missing_severity`.
pub(crate) fn read(
    agent: &mut Section<'_>,
    kind: AgentKind,
    missing_severity: Severity,
) -> Option<RemoteSpec> {
    let is_remote = kind == AgentKind::Remote;
    if agent.has("remote") && !is_remote {
        let position = agent.position.below("remote").hidden();
        agent.reader.error(&position, "has a meaning with `kind = \"remote\"` only");
    }
    let mut section = agent.section("remote");
    let table = &mut section;
    let allows_http = table.flag("insecure_http", false);
    let url = table.nonblank("url");
    let version = table.keyword("version", &VERSIONS).map(|word| word.value);
    let binding = table.keyword("binding", &BINDINGS).map(|word| word.value);
    let token = token(table, missing_severity);
    if url.is_none() && is_remote && !table.has("url") {
        table.reader.error(&table.position.below("url").hidden(), "is needed");
    }
    let url = url.and_then(|url| checked_url(table, url, allows_http)).filter(|_| is_remote);
    section.finish();
    let (version, binding) =
        (version.unwrap_or(ProtocolVersion::V1_0), binding.unwrap_or_default());
    Some(RemoteSpec { url: url?, token, version, binding })
}

/// Returns the URL without a slash at its end. Credentials are sent to it, so it needs TLS unless it is on this
/// machine.
fn checked_url(section: &Section<'_>, url: Spanned<String>, allows_http: bool) -> Option<String> {
    let parsed: Option<Uri> = url.value.parse().ok();
    let host = parsed.as_ref().and_then(Uri::host);
    let scheme = parsed.as_ref().and_then(Uri::scheme_str);
    let has_user = parsed.as_ref().and_then(Uri::authority).is_some_and(|it| has_user(it.as_str()));
    let diagnostic = match (scheme, host) {
        (Some("http" | "https"), Some(_)) if has_user => {
            from_message("must not hold a name or password").hint("use `token_file` or `token_env`")
        }
        (Some("http" | "https"), Some(_)) if url.value.contains(['?', '#']) => {
            from_message("must have neither a query nor a fragment")
        }
        (Some("http"), Some(host)) if !allows_http && !is_loopback(host) => {
            from_message("must begin with `https://`: the token and the messages would be readable")
                .hint("`insecure_http = true` permits it within a trusted network")
        }
        (Some("http" | "https"), Some(_)) => {
            return Some(url.value.trim_end_matches('/').to_owned());
        }
        _ => from_message("must be an address such as \"https://agents.example.org/agents/x/v1\""),
    };
    section.reader.error(&url.position.hidden(), diagnostic);
    None
}

fn has_user(authority: &str) -> bool {
    authority.contains('@')
}

fn is_loopback(host: &str) -> bool {
    let bare_host = host.trim_start_matches('[').trim_end_matches(']');
    let is_local = |address: IpAddr| address.to_canonical().is_loopback();
    bare_host.parse().map_or(bare_host.eq_ignore_ascii_case("localhost"), is_local)
}

/// Reads the token from one of two sources, and registers it for redaction. A source that is not there has the severity
/// `missing_severity`.
fn token(section: &mut Section<'_>, missing_severity: Severity) -> Option<Secret> {
    let reader = section.reader;
    if let Some(inline) = section.entry("token") {
        let diagnostic =
            from_message("a token is not written into the configuration, which is read by many")
                .hint("use `token_file` or `token_env`");
        reader.error(&inline.position.hidden(), diagnostic);
    }
    let (token_text, position) =
        match (section.nonblank("token_env"), section.nonblank("token_file")) {
            (None, None) => return None,
            (Some(_), Some(file)) => {
                reader.error(&file.position.hidden(), "give one of `token_env`, `token_file`");
                return None;
            }
            (None, Some(file)) => (token_file(section, &file), file.position),
            (Some(name), None) => {
                (reader.env(&name.value).ok_or(VARIABLE_NOT_SET.to_owned()), name.position)
            }
        };
    let text = match token_text {
        Ok(text) => text.trim().to_owned(),
        Err(message) => {
            reader.record(missing_severity, &position, from_message(message));
            return None;
        }
    };
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        reader.error(&position.hidden(), "the token must be of visible ASCII characters");
        return None;
    }
    reader.register_secret(&text);
    Some(Secret(text))
}

/// Returns the text of a token file; a file that other users may read causes a warning.
fn token_file(section: &Section<'_>, file: &Spanned<String>) -> Result<String, String> {
    let path = section.reader.resolve(&file.value);
    let text = section.reader.read_secret_file(&path);
    if text.is_ok() && is_open_to_others(&path) {
        let diagnostic = from_message("others may read this file").hint("chmod 600 it");
        section.reader.warning(&file.position, diagnostic);
    }
    text.map_err(|error| format!("cannot be read: {error}"))
}
