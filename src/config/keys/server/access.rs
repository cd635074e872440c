//! Admission of requests: host names, origins, proxies, and `[lockout]`.

use std::net::IpAddr;

use algonius_actors::model::access::endpoint_config::LockoutSpec;
use ipnet::IpNet;

use crate::config::diagnostics::new_diagnostic;
use crate::config::table::{Positioned, RangeWithDefault, Section};

/// Admission rules of requests.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RequestAccessSettings {
    /// Further host names of the service, with or without a port; `*` is any.
    pub allowed_hosts: Vec<String>,
    /// Web origins whose pages may send requests.
    pub allowed_origins: Vec<String>,
    /// Proxies that are trusted to report a caller's address.
    pub trusted_proxies: Vec<IpNet>,
    /// URL for gRPC clients of 0.3; `{agent}` is the agent's id.
    pub grpc_url_0_3: Option<String>,
    /// URL for gRPC clients of 1.0; `{agent}` is the agent's id.
    pub grpc_url_1_0: Option<String>,
}

/// Limits for wrong credentials.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockoutSettings {
    /// Conditions of a block; `None` is never.
    pub spec: Option<LockoutSpec>,
    /// Addresses whose wrong credentials are not counted.
    pub exempt_networks: Vec<IpNet>,
}

/// Reads the admission keys of `[server]`.
pub(crate) fn read(section: &mut Section<'_>) -> RequestAccessSettings {
    let hosts = section.text_list("allowed_hosts").unwrap_or_default();
    let origins = section.text_list("allowed_origins").unwrap_or_default();
    RequestAccessSettings {
        allowed_hosts: validate_and_lowercase(
            section,
            hosts,
            is_host,
            "must be a name such as \"agents.lan\"",
        ),
        allowed_origins: validate_and_lowercase(
            section,
            origins,
            is_origin,
            "must be a site such as \"https://console.example.org\"",
        ),
        trusted_proxies: read_networks(section, "trusted_proxies"),
        grpc_url_0_3: section.nonblank_text("grpc_url_0_3").map(|text| text.value),
        grpc_url_1_0: section.nonblank_text("grpc_url_1_0").map(|text| text.value),
    }
}

/// Reads `[lockout]`.
pub(crate) fn read_lockout(mut section: Section<'_>) -> LockoutSettings {
    let LockoutSpec { max_failures: failures, window, block_duration: block } =
        LockoutSpec::default();
    let is_enabled = section.flag("enabled", true);
    let failures = section.count("failures", RangeWithDefault::new(1, 1000, u64::from(failures)));
    let time_bounds = |default: f64| RangeWithDefault::new(0.1, 604_800.0, default);
    let spec = LockoutSpec {
        max_failures: u32::try_from(failures).unwrap_or(u32::MAX),
        window: section.duration("window", time_bounds(window.as_secs_f64())),
        block_duration: section.duration("block", time_bounds(block.as_secs_f64())),
    };
    let exempt_networks = read_networks(&mut section, "exempt");
    section.report_unknown_keys();
    LockoutSettings { spec: is_enabled.then_some(spec), exempt_networks }
}

/// Returns the valid texts of a list in lower case, and reports the others.
fn validate_and_lowercase(
    section: &Section<'_>,
    texts: Vec<Positioned<String>>,
    is_valid: fn(&str) -> bool,
    diagnostic: &str,
) -> Vec<String> {
    let valid = texts.into_iter().filter_map(|text| {
        if is_valid(&text.value) {
            return Some(text.value.to_ascii_lowercase());
        }
        section.reader.report_error(&text.position, diagnostic);
        None
    });
    valid.collect()
}

fn is_host(text: &str) -> bool {
    let is_permitted = |letter: char| letter.is_ascii_alphanumeric() || "-_.:[]*".contains(letter);
    !text.is_empty() && text.chars().all(is_permitted) && (text == "*" || !text.contains('*'))
}

fn is_origin(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    let host = ["https://", "http://"].iter().find_map(|scheme| text.strip_prefix(scheme));
    host.is_some_and(|host| is_host(host) && host != "*")
}

/// Reads addresses and networks.
fn read_networks(section: &mut Section<'_>, key: &'static str) -> Vec<IpNet> {
    let texts = section.text_list(key).unwrap_or_default();
    let networks = texts.into_iter().filter_map(|text| {
        let network = parse_network(&text.value);
        if network.is_none() {
            let diagnostic =
                new_diagnostic("must be an address or a network").with_hint("write `10.0.0.0/8`");
            section.reader.report_error(&text.position, diagnostic);
        }
        network
    });
    networks.collect()
}

fn parse_network(text: &str) -> Option<IpNet> {
    text.parse().ok().or_else(|| text.parse::<IpAddr>().ok().map(IpNet::from))
}
