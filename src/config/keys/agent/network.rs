//! `network_env`: variables of the service for network access, its proxies and certificate authorities.

use std::path::{Path, PathBuf};

use algonius_actors::model::program::{EnvVariable, ProgramSpec, VariableSecrecy};
use algonius_redact::Redactor;

use crate::config::diagnostics::new_diagnostic;
use crate::config::table::Section;
use crate::config::table::secret::is_redactable;

/// Variables that name a proxy. Libraries disagree about their case.
const PROXY_VARIABLES: [&str; 8] = [
    "HTTPS_PROXY",
    "https_proxy",
    "HTTP_PROXY",
    "http_proxy",
    "ALL_PROXY",
    "all_proxy",
    "NO_PROXY",
    "no_proxy",
];
/// Variables that name certificates of authorities, as a file or a folder.
const CA_VARIABLES: [&str; 5] = [
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
];

/// Variables of the service that agents with a network get unless the configuration disables that.
pub const NETWORK_VARIABLES: [&str; 13] = [
    PROXY_VARIABLES[0],
    PROXY_VARIABLES[1],
    PROXY_VARIABLES[2],
    PROXY_VARIABLES[3],
    PROXY_VARIABLES[4],
    PROXY_VARIABLES[5],
    PROXY_VARIABLES[6],
    PROXY_VARIABLES[7],
    CA_VARIABLES[0],
    CA_VARIABLES[1],
    CA_VARIABLES[2],
    CA_VARIABLES[3],
    CA_VARIABLES[4],
];

/// Sets the variables that the configuration does not set itself. A program without a network needs none, and a proxy
/// URL may contain a password.
pub(crate) fn set_network_variables(section: &mut Section<'_>, program: Option<&mut ProgramSpec>) {
    let is_enabled = section.flag("network_env", true);
    let Some(program) = program else { return };
    if is_enabled && program.sandbox.allows_network {
        for name in NETWORK_VARIABLES {
            let Some(value) = section.reader.env(name) else { continue };
            // An empty list of certificate authorities would refuse every connection.
            if value.is_empty() && CA_VARIABLES.contains(&name) {
                continue;
            }
            if !program.env.contains_key(name) && !value.contains('\0') {
                let variable = EnvVariable { value, secrecy: VariableSecrecy::Plain };
                program.env.insert(name.to_owned(), variable);
            }
        }
    }
    for name in PROXY_VARIABLES {
        if let Some(proxy) = program.env.get_mut(name) {
            register_proxy_password(section, name, proxy);
        }
    }
    for name in CA_VARIABLES {
        if let Some(path) = program.env.get(name).filter(|path| !path.value.is_empty()) {
            warn_if_unreadable(section, name, Path::new(&path.value), &program.sandbox.hidden);
        }
    }
}

/// Registers the password of a proxy for redaction, both encoded and decoded.
fn register_proxy_password(section: &Section<'_>, name: &str, proxy: &mut EnvVariable) {
    let Some(login) = userinfo(&proxy.value) else { return };
    let password = login.split_once(':').map_or(login, |(_, password)| password).to_owned();
    proxy.secrecy = VariableSecrecy::Secret;
    if !is_redactable(&password) {
        let min = Redactor::MIN_VALUE_CHARS;
        let diagnostic = format!(
            "the password in {name} has fewer than {min} characters and is not redacted in \
             the output"
        );
        let position = section.position.child("network_env").without_excerpt();
        return section.reader.report_warning(&position, new_diagnostic(diagnostic));
    }
    section.reader.register_secret(&password);
    // A program may print the password in either form.
    let decoded = percent_decode(&password);
    section.reader.register_secret(&decoded);
}

/// Returns the part before the host of a URL: `user:password`.
fn userinfo(address: &str) -> Option<&str> {
    let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or(rest);
    authority.rsplit_once('@').map(|(login, _)| login).filter(|login| !login.is_empty())
}

/// Decodes percent-encoded text.
fn percent_decode(text: &str) -> String {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let Some((first, after)) = rest.split_first() {
        let code = after.get(..2).filter(|_| *first == b'%');
        let code = code.and_then(|code| str::from_utf8(code).ok());
        match code.and_then(|code| u8::from_str_radix(code, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = after.get(2..).unwrap_or_default();
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Warns about certificates that the program cannot read: its connections would fail one by one.
fn warn_if_unreadable(section: &Section<'_>, name: &str, path: &Path, hidden: &[PathBuf]) {
    let position = section.position.child("network_env").without_excerpt();
    let warn = |reason: &str| {
        let diagnostic = new_diagnostic(format!("{name} names {}, {reason}", path.display()))
            .with_hint("correct the variable of the service, or set `network_env = false`");
        section.reader.report_warning(&position, diagnostic);
    };
    if !path.exists() {
        return warn("which does not exist");
    }
    let real_path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let is_hidden =
        |hidden: &PathBuf| hidden.canonicalize().is_ok_and(|hidden| real_path.starts_with(hidden));
    if hidden.iter().any(is_hidden) {
        warn("which `sandbox.hidden` hides from the agent");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_login_of_a_proxy_is_found_and_decoded() {
        for (address, expected) in [
            ("http://ann:pa55word@proxy:3128", Some("ann:pa55word")),
            ("http://ann:p@55@proxy:3128/", Some("ann:p@55")),
            ("ann:pa55word@proxy", Some("ann:pa55word")),
            ("http://token@proxy", Some("token")),
            ("http://proxy:3128/@x", None),
            ("socks5://proxy:1080", None),
        ] {
            assert_eq!(userinfo(address), expected, "{address}");
        }
        assert_eq!(percent_decode("p%40ss%2Fw%"), "p@ss/w%");
        assert_eq!(percent_decode("100%zz"), "100%zz");
    }
}
