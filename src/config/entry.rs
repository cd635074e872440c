//! Who is let in at all: names, sites, proxies, and `[lockout]`.

use std::net::IpAddr;

use algonius_actors::model::exposure::LockoutSpec;
use ipnet::IpNet;

use super::fault::said;
use super::reader::Found;
use super::section::Section;
use super::value::Bounds;

/// Which requests are looked at.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Entry {
    /// Further names of the service, with or without a port; `*` is any.
    pub allowed_hosts: Vec<String>,
    /// Sites whose pages may ask.
    pub allowed_origins: Vec<String>,
    /// Proxies whose word about a caller's address counts.
    pub trusted_proxies: Vec<IpNet>,
    /// Where gRPC clients of 0.3 connect; `{agent}` is the agent's id.
    pub grpc_url_0_3: Option<String>,
    /// Where gRPC clients of 1.0 connect; `{agent}` is the agent's id.
    pub grpc_url_1_0: Option<String>,
}

/// What becomes of an address that shows wrong credentials.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lockout {
    /// When it is blocked; `None` is never.
    pub spec: Option<LockoutSpec>,
    /// Addresses that are never blocked.
    pub exempt: Vec<IpNet>,
}

/// Reads the keys of `[server]` that say who is let in.
pub(super) fn read(section: &mut Section<'_>) -> Entry {
    let hosts = section.texts("allowed_hosts").unwrap_or_default();
    let origins = section.texts("allowed_origins").unwrap_or_default();
    Entry {
        allowed_hosts: kept(section, hosts, is_host, "must be a name such as \"agents.lan\""),
        allowed_origins: kept(
            section,
            origins,
            is_origin,
            "must be a site such as \"https://console.example.org\"",
        ),
        trusted_proxies: networks(section, "trusted_proxies"),
        grpc_url_0_3: section.nonblank("grpc_url_0_3").map(|text| text.value),
        grpc_url_1_0: section.nonblank("grpc_url_1_0").map(|text| text.value),
    }
}

/// Reads `[lockout]`.
pub(super) fn lockout(mut section: Section<'_>) -> Lockout {
    let LockoutSpec { failures, window, block } = LockoutSpec::default();
    let is_on = section.flag("enabled", true);
    let failures = section.count("failures", Bounds::new(1, 1000, u64::from(failures)));
    let time = |default: f64| Bounds::new(0.1, 604_800.0, default);
    let spec = LockoutSpec {
        failures: u32::try_from(failures).unwrap_or(u32::MAX),
        window: section.seconds("window", time(window.as_secs_f64())),
        block: section.seconds("block", time(block.as_secs_f64())),
    };
    let exempt = networks(&mut section, "exempt");
    section.finish();
    Lockout { spec: is_on.then_some(spec), exempt }
}

/// The texts of a list that are what they should be.
fn kept(
    section: &Section<'_>,
    texts: Vec<Found<String>>,
    fits: fn(&str) -> bool,
    complaint: &str,
) -> Vec<String> {
    let sound = texts.into_iter().filter_map(|text| {
        if fits(&text.value) {
            return Some(text.value.to_ascii_lowercase());
        }
        section.reader.error(&text.place, complaint);
        None
    });
    sound.collect()
}

fn is_host(text: &str) -> bool {
    let known = |letter: char| letter.is_ascii_alphanumeric() || "-_.:[]*".contains(letter);
    !text.is_empty() && text.chars().all(known) && (text == "*" || !text.contains('*'))
}

fn is_origin(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    let host = ["https://", "http://"].iter().find_map(|scheme| text.strip_prefix(scheme));
    host.is_some_and(|host| is_host(host) && host != "*")
}

/// Addresses and networks.
fn networks(section: &mut Section<'_>, key: &'static str) -> Vec<IpNet> {
    let texts = section.texts(key).unwrap_or_default();
    let networks = texts.into_iter().filter_map(|text| {
        let network = network(&text.value);
        if network.is_none() {
            let complaint = said("must be an address or a network").hint("write `10.0.0.0/8`");
            section.reader.error(&text.place, complaint);
        }
        network
    });
    networks.collect()
}

fn network(text: &str) -> Option<IpNet> {
    text.parse().ok().or_else(|| text.parse::<IpAddr>().ok().map(IpNet::from))
}
