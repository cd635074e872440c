//! Address at which callers reach the service, as cards contain it.

use std::borrow::Cow;

use axum::http::HeaderValue;
use axum::http::uri::Authority;

/// Address of the service, without a slash at its end, and the addresses for gRPC clients.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicAddress {
    /// Address at which paths start.
    pub url: String,
    /// Addresses for gRPC clients.
    pub grpc: GrpcUrls,
}

/// Addresses for gRPC clients. `{agent}` stands for the agent's id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrpcUrls {
    /// Address for clients of 0.3.
    pub v0_3: String,
    /// Address for clients of 1.0.
    pub v1_0: String,
}

/// Addresses for gRPC clients in the configuration; the missing ones follow from the address of the service.
#[derive(Debug, Clone, Default)]
pub struct GrpcUrlConfig {
    /// Address for clients of 0.3.
    pub v0_3: Option<String>,
    /// Address for clients of 1.0.
    pub v1_0: Option<String>,
}

/// Addresses that cards name: one for all callers, or the one that each caller used.
#[derive(Debug, Clone)]
pub struct PublicAddressResolver {
    default: PublicAddress,
    grpc_config: GrpcUrlConfig,
    /// Scheme of the service, if each caller receives the address that it used itself.
    request_host_scheme: Option<&'static str>,
}

impl PublicAddressResolver {
    /// Uses the same address for every caller.
    #[must_use]
    pub fn with_fixed_url(url: String, grpc_config: GrpcUrlConfig) -> Self {
        Self {
            default: PublicAddress::new(url, &grpc_config),
            grpc_config,
            request_host_scheme: None,
        }
    }

    /// Uses the address that the caller used. A service that listens on all addresses of a machine has none that is
    /// valid for every caller; `fallback_url` is used if a request names no host.
    #[must_use]
    pub fn with_url_of_request_host(
        fallback_url: String,
        scheme: &'static str,
        grpc_config: GrpcUrlConfig,
    ) -> Self {
        Self {
            default: PublicAddress::new(fallback_url, &grpc_config),
            grpc_config,
            request_host_scheme: Some(scheme),
        }
    }

    /// Returns true if the address depends on the host of a request.
    #[must_use]
    pub const fn depends_on_host(&self) -> bool {
        self.request_host_scheme.is_some()
    }

    /// Returns the address for a caller that used this host. The request checks have verified that
    /// it is a host of the service.
    #[must_use]
    pub fn for_host(&self, host: Option<&HeaderValue>) -> Cow<'_, PublicAddress> {
        let default = Cow::Borrowed(&self.default);
        let (Some(scheme), Some(host)) = (self.request_host_scheme, host) else { return default };
        let host = host.to_str().ok().and_then(|host| host.parse::<Authority>().ok());
        host.map_or(default, |host| {
            Cow::Owned(PublicAddress::new(format!("{scheme}://{host}"), &self.grpc_config))
        })
    }
}

impl PublicAddress {
    fn new(url: String, grpc_config: &GrpcUrlConfig) -> Self {
        let grpc = GrpcUrls::new(grpc_config, &url);
        Self { url, grpc }
    }
}

impl GrpcUrls {
    /// Uses the given addresses, or derives them from the address of the service: a URL for clients of 0.3,
    /// host and port for those of 1.0.
    fn new(grpc_config: &GrpcUrlConfig, public_url: &str) -> Self {
        let (scheme, rest) = public_url.split_once("://").unwrap_or(("http", public_url));
        let host = rest.split('/').next().unwrap_or_default();
        // The colons inside the brackets of an IPv6 address are no separator of a port.
        let after_brackets = host.rsplit(']').next().unwrap_or(host);
        // Clients of gRPC take an address without a scheme, so they cannot derive the port from it.
        let port = if scheme == "https" { 443 } else { 80 };
        let host =
            if after_brackets.contains(':') { host.to_owned() } else { format!("{host}:{port}") };
        Self {
            v0_3: grpc_config.v0_3.clone().unwrap_or_else(|| format!("{scheme}://{host}")),
            v1_0: grpc_config.v1_0.clone().unwrap_or(host),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_grpc_address_equals_the_service_address() {
        for (public, v0_3, v1_0) in [
            ("http://127.0.0.1:8080", "http://127.0.0.1:8080", "127.0.0.1:8080"),
            ("https://a.example/base", "https://a.example:443", "a.example:443"),
            ("http://[::1]", "http://[::1]:80", "[::1]:80"),
        ] {
            let urls = GrpcUrls::new(&GrpcUrlConfig::default(), public);
            assert_eq!((urls.v0_3.as_str(), urls.v1_0.as_str()), (v0_3, v1_0));
        }
    }

    #[test]
    fn each_caller_gets_the_host_that_it_used() {
        let grpc_config = GrpcUrlConfig { v1_0: Some("grpc.example:1".to_owned()), v0_3: None };
        let public_addresses = PublicAddressResolver::with_url_of_request_host(
            "http://0.0.0.0:8080".to_owned(),
            "http",
            grpc_config.clone(),
        );
        let address_for = |host: &'static str| {
            public_addresses.for_host(Some(&HeaderValue::from_static(host))).into_owned()
        };
        let address = address_for("box.lan:8080");
        assert_eq!(
            (address.url.as_str(), address.grpc.v0_3.as_str()),
            ("http://box.lan:8080", "http://box.lan:8080")
        );
        assert_eq!(address.grpc.v1_0, "grpc.example:1");
        assert_eq!(address_for("[::1]:8080").url, "http://[::1]:8080");
        assert_eq!(address_for("no host").url, "http://0.0.0.0:8080");
        assert_eq!(public_addresses.for_host(None).url, "http://0.0.0.0:8080");
        let fixed =
            PublicAddressResolver::with_fixed_url("https://a.example".to_owned(), grpc_config);
        assert_eq!(
            fixed.for_host(Some(&HeaderValue::from_static("b.example"))).url,
            "https://a.example"
        );
    }
}
