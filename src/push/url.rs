//! Addresses of receivers in one strict spelling, so that no two programs read them differently.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use algonius_actors::model::code::Code;
use algonius_actors::model::failure::Failure;

use super::DeliveryPolicy;
use super::address_policy::{is_in_any_network, is_public};

/// Maximum length of an address, in bytes.
const MAX_URL_BYTES: usize = 2048;

/// Host of a receiver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ReceiverHost {
    /// IP address.
    Address(IpAddr),
    /// Host name in lower case and without a dot at its end.
    Name(String),
}

/// Parts of the address of a receiver.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct ReceiverUrl {
    /// True if the receiver uses TLS.
    pub(super) is_secure: bool,
    /// Host of the receiver.
    pub(super) host: ReceiverHost,
    /// Port of the receiver.
    pub(super) port: u16,
    /// Path and query.
    pub(super) path_and_query: String,
}

impl ReceiverUrl {
    /// Parses an address.
    ///
    /// # Errors
    /// Fails if the address does not have the strict spelling. The message does not contain the address.
    pub(super) fn parse(url: &str) -> Result<Self, Failure> {
        if url.len() > MAX_URL_BYTES {
            return Err(invalid_url("is too long"));
        }
        if !url.bytes().all(|byte| byte.is_ascii_graphic() && !b"\\\"<>^`{|}".contains(&byte)) {
            return Err(invalid_url("has a character that an address cannot have"));
        }
        let (scheme, rest) = url.split_once("://").ok_or_else(|| invalid_url("has no scheme"))?;
        let is_secure = match scheme.to_ascii_lowercase().as_str() {
            "https" => true,
            "http" => false,
            _ => return Err(invalid_url("must begin with `https://`")),
        };
        let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        if authority.contains('@') {
            return Err(invalid_url("must not hold a name or password"));
        }
        if path.contains('#') {
            return Err(invalid_url("must not have a fragment"));
        }
        let (host, port) = split_authority(authority)?;
        let port = match port {
            Some(port) => parse_port(port)?,
            None if is_secure => 443,
            None => 80,
        };
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        Ok(Self { is_secure, host: parse_host(host)?, port, path_and_query: path })
    }

    /// Returns the value of the `Host` header.
    pub(super) fn authority(&self) -> String {
        let host = match &self.host {
            ReceiverHost::Address(IpAddr::V6(address)) => format!("[{address}]"),
            ReceiverHost::Address(IpAddr::V4(address)) => address.to_string(),
            ReceiverHost::Name(name) => name.clone(),
        };
        match (self.is_secure, self.port) {
            (true, 443) | (false, 80) => host,
            (_, port) => format!("{host}:{port}"),
        }
    }
}

/// Checks that an address is allowed, as far as that is possible without a name lookup. The resolved addresses are
/// checked again before each request.
///
/// # Errors
/// `invalid-params` with the fault.
pub fn check_url(url: &str, policy: &DeliveryPolicy) -> Result<(), Failure> {
    let receiver = ReceiverUrl::parse(url)?;
    let is_allowed = match &receiver.host {
        ReceiverHost::Address(address) if is_in_any_network(*address, &policy.allowed_networks) => {
            return Ok(());
        }
        ReceiverHost::Address(address) => is_public(*address),
        ReceiverHost::Name(name) if name == "localhost" || name.ends_with(".localhost") => {
            let loopback: [IpAddr; 2] = [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
            loopback.iter().any(|address| is_in_any_network(*address, &policy.allowed_networks))
        }
        ReceiverHost::Name(_) => true,
    };
    if !is_allowed {
        return Err(invalid_url("must lead to the public internet"));
    }
    let may_resolve_to_allowed =
        matches!(receiver.host, ReceiverHost::Name(_)) && !policy.allowed_networks.is_empty();
    if receiver.is_secure || policy.allows_http || may_resolve_to_allowed {
        Ok(())
    } else {
        Err(invalid_url("must begin with `https://`"))
    }
}

fn invalid_url(fault: &str) -> Failure {
    Failure::new(Code::InvalidParams, format!("the url {fault}"))
}

/// Splits an authority into host and port.
fn split_authority(authority: &str) -> Result<(&str, Option<&str>), Failure> {
    let invalid_host = || invalid_url("has no host that can be read");
    if authority.starts_with('[') {
        let (host, rest) = authority.split_at(authority.find(']').ok_or_else(invalid_host)? + 1);
        return match rest.strip_prefix(':') {
            Some(port) => Ok((host, Some(port))),
            None if rest.is_empty() => Ok((host, None)),
            None => Err(invalid_host()),
        };
    }
    match authority.split_once(':') {
        Some((host, port)) => Ok((host, Some(port))),
        None => Ok((authority, None)),
    }
}

fn parse_port(port: &str) -> Result<u16, Failure> {
    let is_plain = port.bytes().all(|byte| byte.is_ascii_digit()) && !port.starts_with('0');
    let port = port.parse().ok().filter(|_| is_plain);
    port.ok_or_else(|| invalid_url("must have a port from 1 to 65535, or none"))
}

/// Parses a host. A host that some programs read as a number in another spelling is rejected.
fn parse_host(host: &str) -> Result<ReceiverHost, Failure> {
    let invalid_host = || invalid_url("has no host that can be read");
    if let Some(inner) = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        let address: Ipv6Addr = inner.parse().map_err(|_not_one| invalid_host())?;
        return Ok(ReceiverHost::Address(address.into()));
    }
    if let Ok(address) = host.parse::<Ipv4Addr>() {
        return Ok(ReceiverHost::Address(address.into()));
    }
    let name = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
    let last_label = name.rsplit('.').next().unwrap_or_default();
    let is_name = name.len() <= 253 && name.split('.').all(is_label) && !is_numeric(last_label);
    if is_name { Ok(ReceiverHost::Name(name)) } else { Err(invalid_host()) }
}

fn is_label(label: &str) -> bool {
    let is_label_byte = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    let has_valid_ends = !label.starts_with('-') && !label.ends_with('-');
    (1..=63).contains(&label.len()) && label.bytes().all(is_label_byte) && has_valid_ends
}

/// True if some programs read a name with this last label as a number.
fn is_numeric(label: &str) -> bool {
    let is_hex = label
        .strip_prefix("0x")
        .is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
    is_hex || label.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests;
