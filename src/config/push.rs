//! `[push]`: where may be told about executions.

use std::net::IpAddr;
use std::time::Duration;

use ipnet::IpNet;

use super::section::Section;
use super::value::Bounds;

/// Where may be told about executions, and how long it is tried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Push {
    /// Addresses that may be told although they are not of the public internet, over plain HTTP
    /// too.
    pub allow: Vec<IpNet>,
    /// Whether plain HTTP does for all others.
    pub insecure_http: bool,
    /// How long one try may take.
    pub timeout: Duration,
    /// How long a notice is tried.
    pub max_age: Duration,
}

impl Default for Push {
    fn default() -> Self {
        let (timeout, max_age) = (Duration::from_secs(15), Duration::from_secs(86_400));
        Self { allow: Vec::new(), insecure_http: false, timeout, max_age }
    }
}

/// Reads `[push]`; nothing when it is switched off.
pub(super) fn read(mut section: Section<'_>) -> Option<Push> {
    let from = &mut section;
    let is_enabled = from.flag("enabled", true);
    let push = Push {
        allow: allow(from),
        insecure_http: from.flag("insecure_http", false),
        timeout: from.seconds("timeout", Bounds::new(0.1, 60.0, 15.0)),
        max_age: from.seconds("max_age", Bounds::new(1.0, 2_592_000.0, 86_400.0)),
    };
    section.finish();
    is_enabled.then_some(push)
}

/// The listed networks; a single address is the smallest of them.
fn allow(section: &mut Section<'_>) -> Vec<IpNet> {
    let reader = section.reader;
    let listed = section.texts("allow").unwrap_or_default().into_iter();
    let net = |text: super::Found<String>| {
        let single = || text.value.parse::<IpAddr>().map(IpNet::from);
        let net = text.value.parse::<IpNet>().or_else(|_not_a_net| single()).ok();
        if net.is_none() {
            let complaint = "must be addresses such as \"127.0.0.0/8\" or \"10.1.2.3\"";
            reader.error(&text.place, complaint);
        }
        net
    };
    listed.filter_map(net).collect()
}
