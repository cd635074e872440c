//! `[push]`: permitted targets of push notifications.

use std::net::IpAddr;
use std::time::Duration;

use ipnet::IpNet;

use crate::config::table::{ConfigKey, Flag, Positioned, RangeWithDefault, Seconds, Section};
use crate::platform::tls::CertificateAuthorities;

/// Permitted targets of push notifications, and their delivery limits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PushSettings {
    /// Networks that are permitted although they are not of the public internet, also over plain HTTP.
    pub allowed_networks: Vec<IpNet>,
    /// True if plain HTTP is permitted for all other targets.
    pub allows_http: bool,
    /// Time limit of one attempt.
    pub timeout: Duration,
    /// Time for which a notification is retried.
    pub max_retry_duration: Duration,
    /// Trusted certificate authorities in addition to the built-in ones.
    pub certificate_authorities: CertificateAuthorities,
}

const ENABLED: ConfigKey<Flag> = ConfigKey::flag("enabled", true, "");
const INSECURE_HTTP: ConfigKey<Flag> =
    ConfigKey::flag("insecure_http", false, "true: permits plain HTTP for all addresses");
const TIMEOUT: ConfigKey<Seconds> =
    ConfigKey::seconds("timeout", RangeWithDefault::new(0.1, 60.0, 15.0), "for one delivery");
const MAX_AGE: ConfigKey<Seconds> = ConfigKey::seconds(
    "max_age",
    RangeWithDefault::new(1.0, 2_592_000.0, 86_400.0),
    "a failed delivery is retried up to 20 times, and no longer than this",
);

impl Default for PushSettings {
    fn default() -> Self {
        Self {
            allowed_networks: Vec::new(),
            allows_http: INSECURE_HTTP.default(),
            timeout: TIMEOUT.default(),
            max_retry_duration: MAX_AGE.default(),
            certificate_authorities: CertificateAuthorities::default(),
        }
    }
}

/// Reads `[push]`; `None` if it is disabled.
pub(crate) fn read(mut section: Section<'_>) -> Option<PushSettings> {
    let table = &mut section;
    let is_enabled = ENABLED.read(table);
    let push = PushSettings {
        allowed_networks: read_allowed_networks(table),
        allows_http: INSECURE_HTTP.read(table),
        timeout: TIMEOUT.read(table),
        max_retry_duration: MAX_AGE.read(table),
        certificate_authorities: read_certificate_authorities(table),
    };
    section.report_unknown_keys();
    is_enabled.then_some(push)
}

/// Reads `ca_file`: certificates of authorities in a PEM file.
pub(crate) fn read_certificate_authorities(section: &mut Section<'_>) -> CertificateAuthorities {
    let Some(file) = section.nonblank_text("ca_file") else {
        return CertificateAuthorities::default();
    };
    let (reader, path) = (section.reader, section.reader.resolve_path(&file.value));
    reader.add_referenced_file(path.clone());
    CertificateAuthorities::read(&path).unwrap_or_else(|error| {
        reader.report_error(&file.position, error.to_string());
        CertificateAuthorities::default()
    })
}

/// Reads the listed networks; a single address is the smallest network.
pub(crate) fn read_allowed_networks(section: &mut Section<'_>) -> Vec<IpNet> {
    let reader = section.reader;
    let configured = section.text_list("allow").unwrap_or_default().into_iter();
    let net = |text: Positioned<String>| {
        let single = || text.value.parse::<IpAddr>().map(IpNet::from);
        let net = text.value.parse::<IpNet>().or_else(|_not_a_net| single()).ok();
        if net.is_none() {
            let diagnostic = "must be addresses such as \"127.0.0.0/8\" or \"10.1.2.3\"";
            reader.report_error(&text.position, diagnostic);
        }
        net
    };
    configured.filter_map(net).collect()
}
