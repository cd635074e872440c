//! Allowed addresses: those of the public internet, and those that the operator lists.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

/// Networks of IPv4 that do not belong to the public internet, from the IANA registry.
const NON_PUBLIC_V4_NETWORKS: &[(Ipv4Addr, u8)] = &[
    (Ipv4Addr::new(0, 0, 0, 0), 8),       // This network.
    (Ipv4Addr::new(10, 0, 0, 0), 8),      // Private.
    (Ipv4Addr::new(100, 64, 0, 0), 10),   // Between a carrier and its customers.
    (Ipv4Addr::new(127, 0, 0, 0), 8),     // This machine.
    (Ipv4Addr::new(169, 254, 0, 0), 16),  // This link; also the metadata of clouds.
    (Ipv4Addr::new(172, 16, 0, 0), 12),   // Private.
    (Ipv4Addr::new(192, 0, 0, 0), 24),    // Of protocols.
    (Ipv4Addr::new(192, 0, 2, 0), 24),    // Of documents.
    (Ipv4Addr::new(192, 88, 99, 0), 24),  // Relays of 6to4.
    (Ipv4Addr::new(192, 168, 0, 0), 16),  // Private.
    (Ipv4Addr::new(198, 18, 0, 0), 15),   // Of benchmarks.
    (Ipv4Addr::new(198, 51, 100, 0), 24), // Of documents.
    (Ipv4Addr::new(203, 0, 113, 0), 24),  // Of documents.
    (Ipv4Addr::new(224, 0, 0, 0), 4),     // Of groups.
    (Ipv4Addr::new(240, 0, 0, 0), 4),     // Reserved, and everybody.
];

/// Network of public IPv6 addresses. Translated IPv4 addresses and addresses of one site or link lie outside.
const PUBLIC_V6: (Ipv6Addr, u8) = (Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3);

/// Networks within it that are not public.
const NON_PUBLIC_V6_NETWORKS: &[(Ipv6Addr, u8)] = &[
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23), // Of protocols: Teredo, ORCHID, benchmarks.
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32), // Of documents.
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16), // 6to4.
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20), // Of documents.
];

/// True if the operator allows the address, public or not. An IPv4 address in IPv6 form is checked as IPv4.
pub(super) fn is_in_any_network(address: IpAddr, networks: &[IpNet]) -> bool {
    let address = address.to_canonical();
    networks.iter().any(|net| net.contains(&address))
}

/// True if the address is one host of the public internet.
pub(super) fn is_public(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => !NON_PUBLIC_V4_NETWORKS.iter().any(|net| contains_v4(*net, address)),
        IpAddr::V6(address) => {
            contains_v6(PUBLIC_V6, address)
                && !NON_PUBLIC_V6_NETWORKS.iter().any(|net| contains_v6(*net, address))
        }
    }
}

fn contains_v4((start, prefix_length): (Ipv4Addr, u8), address: Ipv4Addr) -> bool {
    Ipv4Net::new(start, prefix_length).is_ok_and(|net| net.contains(&address))
}

fn contains_v6((start, prefix_length): (Ipv6Addr, u8), address: Ipv6Addr) -> bool {
    Ipv6Net::new(start, prefix_length).is_ok_and(|net| net.contains(&address))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// First and last address of each special block, and the public addresses next to the block.
    #[test]
    fn only_public_addresses_are_public() {
        let special = "0.0.0.0 0.255.255.255 10.0.0.0 10.255.255.255 100.64.0.0 100.127.255.255 \
            127.0.0.0 127.255.255.255 169.254.0.0 169.254.169.254 169.254.255.255 172.16.0.0 \
            172.31.255.255 192.0.0.0 192.0.0.255 192.0.2.1 192.88.99.1 192.168.0.0 192.168.255.255 \
            198.18.0.0 198.19.255.255 198.51.100.7 203.0.113.7 224.0.0.1 239.255.255.255 240.0.0.0 \
            255.255.255.255 :: ::1 ::7f00:1 ::808:808 ::ffff:127.0.0.1 ::ffff:10.0.0.1 \
            ::ffff:0:8.8.8.8 64:ff9b::7f00:1 64:ff9b::808:808 64:ff9b:1::1 100::1 2001::1 \
            2001:2::1 2001:10::1 2001:20::1 2001:1ff:ffff::1 2001:db8::1 2002:7f00:1::1 \
            2002:808:808::1 3fff::1 3fff:fff::1 5f00::1 fc00::1 fdff::1 fe80::1 febf::1 fec0::1 \
            feff::1 ff02::1 ff0e::1 1fff::1 4000::1";
        let public = "1.1.1.1 8.8.8.8 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 \
            126.255.255.255 128.0.0.0 169.253.255.255 169.255.0.0 172.15.255.255 172.32.0.0 \
            192.0.1.0 192.0.3.0 192.167.255.255 192.169.0.0 198.17.255.255 198.20.0.0 \
            223.255.255.255 ::ffff:8.8.8.8 2001:200::1 2001:4860:4860::8888 2606:4700::1111 \
            2a00:1450::1 3ffe::1 3fff:1000::1";
        for text in special.split_whitespace() {
            assert!(!is_public(text.parse().unwrap()), "{text}");
        }
        for text in public.split_whitespace() {
            assert!(is_public(text.parse().unwrap()), "{text}");
        }
    }

    #[test]
    fn a_listed_address_matches_in_every_notation() {
        let allowed_networks = ["127.0.0.0/8".parse().unwrap(), "fd00:1::/32".parse().unwrap()];
        for text in ["127.0.0.1", "127.9.9.9", "::ffff:127.0.0.1", "fd00:1::5"] {
            assert!(is_in_any_network(text.parse().unwrap(), &allowed_networks), "{text}");
        }
        for text in ["128.0.0.1", "::7f00:1", "::1", "64:ff9b::7f00:1", "fd00:2::5"] {
            assert!(!is_in_any_network(text.parse().unwrap(), &allowed_networks), "{text}");
        }
    }
}
