//! Callers: authentication, authorization, lockout, revocation, and checks of the host, the origin and the peer.

pub mod authenticator;
pub mod caller;
pub mod host;
pub mod lockout;
pub mod rate_limit;
pub mod request_client;
pub mod revocation;

use std::sync::Arc;

use authenticator::Authenticator;
use host::HostPolicy;
use ipnet::IpNet;
use lockout::LockoutTracker;
use rate_limit::RateLimiter;

/// Rules about callers: who may call, from where, and how often.
pub struct AccessControl {
    /// Authentication of callers.
    pub authenticator: Authenticator,
    /// Addresses that are locked out after wrong credentials.
    pub lockouts: Arc<LockoutTracker>,
    /// Rate limits of the agents.
    pub rate_limiter: Arc<RateLimiter>,
    /// Host names of the service.
    pub host_policy: HostPolicy,
    /// Reverse proxies whose headers about the caller's address are trusted.
    pub trusted_proxies: Vec<IpNet>,
    /// True if the cards need no authentication.
    pub has_public_cards: bool,
}
