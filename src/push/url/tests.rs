//! Tests of the spelling of addresses: rejected ones, accepted ones and their parsed form.

use std::time::Duration;

use super::*;

fn policy(allowed_networks: &[&str], allows_http: bool) -> DeliveryPolicy {
    let allowed_networks = allowed_networks.iter().map(|net| net.parse().unwrap()).collect();
    let (timeout, max_age) = (Duration::from_secs(15), Duration::from_secs(3600));
    DeliveryPolicy {
        allowed_networks,
        allows_http,
        timeout,
        max_retry_duration: max_age,
        certificate_authorities: Vec::new(),
    }
}

/// Spellings of this machine, of its neighbors and of cloud metadata services, and confusing spellings.
const REFUSED_URLS: &[&str] = &[
    // Loopback and the unspecified address in their usual form.
    "https://127.0.0.1/",
    "https://127.1.2.3/",
    "https://0.0.0.0/",
    "https://localhost/",
    "https://LOCALHOST/",
    "https://localhost./",
    "https://LocalHost:8443/hook",
    "https://me.localhost/",
    "https://127.0.0.1./",
    // IPv4 in the spellings of inet_aton.
    "https://2130706433/",
    "https://017700000001/",
    "https://0x7f000001/",
    "https://0X7F000001/",
    "https://0x7f.1/",
    "https://127.1/",
    "https://127.0.1/",
    "https://0177.0.0.1/",
    "https://127.0.0.01/",
    "https://0x7f.0x0.0x0.0x1/",
    "https://127.0.0.0x1/",
    "https://00000177.1/",
    "https://1.2.3.4.5/",
    "https://256.256.256.256/",
    "https://0x/",
    // Private and special blocks.
    "https://10.0.0.1/",
    "https://172.16.0.1/",
    "https://192.168.1.1/",
    "https://100.64.0.1/",
    "https://169.254.169.254/latest/meta-data/",
    "https://198.18.0.1/",
    "https://192.0.2.1/",
    "https://192.88.99.1/",
    "https://224.0.0.1/",
    "https://240.0.0.1/",
    "https://255.255.255.255/",
    // IPv6 in its forms.
    "https://[::1]/",
    "https://[0:0:0:0:0:0:0:1]/",
    "https://[0000:0000:0000:0000:0000:0000:0000:0001]:443/",
    "https://[::]/",
    "https://[::ffff:127.0.0.1]/",
    "https://[::FFFF:7F00:1]/",
    "https://[::127.0.0.1]/",
    "https://[64:ff9b::7f00:1]/",
    "https://[64:ff9b::127.0.0.1]/",
    "https://[64:ff9b:1::1]/",
    "https://[2001:0:7f00:1::]/",
    "https://[2002:7f00:1::]/",
    "https://[2001:db8::1]/",
    "https://[fc00::1]/",
    "https://[fd12:3456::1]/",
    "https://[fe80::1]/",
    "https://[fe80::1%25eth0]/",
    "https://[fe80::1%eth0]/",
    "https://[fec0::1]/",
    "https://[ff02::1]/",
    "https://[::1/",
    "https://[::1]x/",
    "https://[v1.x]/",
    "https://::1/",
    // User names, passwords and other ways to hide the host.
    "https://user@example.org/",
    "https://user:secret@example.org/",
    "https://example.org@127.0.0.1/",
    "https://example.org:443@127.0.0.1/",
    "https://@example.org/",
    "https://example.org\\@127.0.0.1/",
    "https://127.0.0.1\\.example.org/",
    "https://example.org#@127.0.0.1/",
    "https://example.org/#there",
    "https://127.0.0.1%2eexample.org/",
    "https://%31%32%37.0.0.1/",
    "https://exa mple.org/",
    "https://example.org/\r\nx: y",
    "https://example.org/\t",
    " https://example.org/",
    "https://example.org/ ",
    // Characters of other scripts that some programs read as dots and digits.
    "https://127。0。0。1/",
    "https://127.0.0.1/",
    "https://①②⑦.0.0.1/",
    "https://lоcalhost/",
    "https://bücher.example/",
    "https://example.org/é",
    // Invalid hosts and ports.
    "https://",
    "https:///hook",
    "https://:443/",
    "https://./",
    "https://example..org/",
    "https://.example.org/",
    "https://example.org../",
    "https://-example.org/",
    "https://example-.org/",
    "https://example.org:/",
    "https://example.org:0/",
    "https://example.org:65536/",
    "https://example.org:+443/",
    "https://example.org:0443/",
    "https://example.org:443:80/",
    "https://example.org:abc/",
    // Schemes.
    "",
    "example.org",
    "//example.org/",
    "https:/example.org/",
    "https:example.org",
    "http://example.org/",
    "HTTP://example.org/",
    "ftp://example.org/",
    "file:///etc/passwd",
    "gopher://127.0.0.1:70/",
    "unix:///run/x",
    "javascript://example.org/",
    "httpss://example.org/",
];

#[test]
fn urls_that_are_not_plainly_public_are_refused() {
    let policy = policy(&[], false);
    for url in REFUSED_URLS {
        let refusal = check_url(url, &policy).expect_err(url);
        assert_eq!(refusal.code, Code::InvalidParams, "{url}");
        assert!(!refusal.message.contains("secret"), "{url}: {refusal}");
    }
    assert!(check_url(&format!("https://example.org/{}", "x".repeat(2048)), &policy).is_err());
    assert!(check_url(&format!("https://{}.org/", "x".repeat(64)), &policy).is_err());
}

#[test]
fn public_urls_are_accepted_and_normalized() {
    let rows = [
        ("https://example.org", "example.org", 443, "/"),
        ("HTTPS://Example.ORG/Hook", "example.org", 443, "/Hook"),
        ("https://example.org.:8443/a?b=c", "example.org:8443", 8443, "/a?b=c"),
        ("https://example.org?b=c", "example.org", 443, "/?b=c"),
        ("https://a_b.xn--bcher-kva.example:1/", "a_b.xn--bcher-kva.example:1", 1, "/"),
        ("https://8.8.8.8/x@y:z", "8.8.8.8", 443, "/x@y:z"),
        ("https://[2606:4700:0::1111]:65535/", "[2606:4700::1111]:65535", 65535, "/"),
        ("https://1e100.net/", "1e100.net", 443, "/"),
        ("https://127.0.0.1.example.org/", "127.0.0.1.example.org", 443, "/"),
    ];
    for (url, authority, port, path) in rows {
        check_url(url, &policy(&[], false)).unwrap_or_else(|refused| panic!("{url}: {refused}"));
        let parsed = ReceiverUrl::parse(url).unwrap();
        assert_eq!(
            (&*parsed.authority(), parsed.port, &*parsed.path_and_query),
            (authority, port, path),
            "{url}"
        );
    }
}

#[test]
fn listed_addresses_are_allowed_and_plain_http_is_separate() {
    let (closed_policy, local_policy) = (policy(&[], false), policy(&["127.0.0.0/8"], false));
    for url in ["http://127.0.0.1:9000/", "https://127.0.0.1/", "http://localhost:9000/"] {
        assert!(check_url(url, &closed_policy).is_err(), "{url}");
        assert_eq!(check_url(url, &local_policy), Ok(()), "{url}");
    }
    assert_eq!(check_url("http://[::ffff:127.0.0.1]/", &local_policy), Ok(()));
    for url in ["http://10.0.0.1/", "http://[::1]/", "http://8.8.8.8/", "https://2130706433/"] {
        assert!(check_url(url, &local_policy).is_err(), "{url}");
    }
    let http_policy = policy(&[], true);
    assert_eq!(check_url("http://example.org/", &http_policy), Ok(()));
    assert!(check_url("http://127.0.0.1/", &http_policy).is_err(), "plain, but not public");
}
