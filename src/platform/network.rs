//! Detection of a route to other networks, from the routing tables. Nothing is sent.

use std::fs;

/// Flag of a route that can be used.
const ROUTE_UP: u32 = 0x1;
/// Flag of a route that rejects its packets.
const ROUTE_REJECT: u32 = 0x200;
/// Variables that name a proxy, which may be reached without a default route.
const PROXY_URL_VARIABLES: [&str; 6] =
    ["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"];

/// Returns true if a default route exists or a proxy is configured. Unknown counts as true: a wrong warning would
/// mislead.
pub(crate) fn has_route_or_proxy() -> bool {
    let is_set = |name: &&str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    if PROXY_URL_VARIABLES.iter().any(is_set) {
        return true;
    }
    match (fs::read_to_string("/proc/net/route"), fs::read_to_string("/proc/net/ipv6_route")) {
        (Ok(ipv4_routes), Ok(ipv6_routes)) => {
            ipv4_routes.lines().any(is_default_route)
                || ipv6_routes.lines().any(is_default_ipv6_route)
        }
        // A kernel without IPv6 has no such table.
        (Ok(ipv4_routes), Err(_)) => ipv4_routes.lines().any(is_default_route),
        (Err(_), _) => true,
    }
}

/// Returns true if a line of `/proc/net/route` covers all addresses, or one half of them as for tunnels.
fn is_default_route(line: &str) -> bool {
    let fields: Vec<_> = line.split_whitespace().collect();
    let [device, _, _, flags, _, _, _, mask, ..] = fields.as_slice() else { return false };
    let hex_number = |text: &str| u32::from_str_radix(text, 16).ok();
    let is_usable =
        hex_number(flags).is_some_and(|it| it & ROUTE_UP != 0 && it & ROUTE_REJECT == 0);
    // A tunnel often installs two routes of half the addresses, so that the default route stays as it is.
    let is_wide = hex_number(mask).is_some_and(|mask| mask.count_ones() <= 1);
    *device != "lo" && is_usable && is_wide
}

/// Returns true if a line of `/proc/net/ipv6_route` covers all or most addresses.
fn is_default_ipv6_route(line: &str) -> bool {
    let fields: Vec<_> = line.split_whitespace().collect();
    let [_, length, _, _, _, _, _, _, flags, device] = fields.as_slice() else { return false };
    let hex_number = |text: &str| u32::from_str_radix(text, 16).ok();
    let is_usable =
        hex_number(flags).is_some_and(|it| it & ROUTE_UP != 0 && it & ROUTE_REJECT == 0);
    *device != "lo" && is_usable && hex_number(length).is_some_and(|length| length <= 3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_default_route_of_a_device_counts() {
        let head =
            "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT";
        let default = "eth0\t00000000\t010200C0\t0003\t0\t0\t0\t00000000\t0\t0\t0";
        let tunnel = "tun0\t00000000\t010200C0\t0003\t0\t0\t0\t00000080\t0\t0\t0";
        let bridge = "docker0\t000011AC\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0";
        let refused = "eth0\t00000000\t00000000\t0201\t0\t0\t0\t00000000\t0\t0\t0";
        let found = [head, default, tunnel, bridge, refused].map(is_default_route);
        assert_eq!(found, [false, true, true, false, false]);
        let zero = "0".repeat(32);
        let line = |length: &str, flags: &str, device: &str| {
            format!("{zero} {length} {zero} 00 {zero} 00000400 00000003 00000000 {flags} {device}")
        };
        let lines = [
            line("00", "00000003", "eth0"),
            line("00", "00200200", "lo"),
            line("40", "00000001", "eth0"),
        ];
        assert_eq!(lines.map(|line| is_default_ipv6_route(&line)), [true, false, false]);
    }
}
