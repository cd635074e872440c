//! Refuses wrong credentials for some time after too many failures; valid credentials are never checked here.

use std::net::IpAddr;
use std::time::Duration;

use algonius_actors::decide::access::lockout::{
    ClientNetwork, CredentialDigest, LockoutDecision, LockoutTable,
};
use algonius_actors::model::access::endpoint_config::LockoutSpec;
use ipnet::IpNet;
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::authenticator::AuthenticationError;
use crate::serve::http::connections::client_network;
use crate::serve::http::response::EarlyRefusal;

/// Table of wrong credentials by address, and the addresses whose wrong credentials do not count.
pub struct LockoutTracker {
    table: Option<Mutex<LockoutTable>>,
    block_duration: Duration,
    exempt_networks: Vec<IpNet>,
    started_at: Instant,
}

impl LockoutTracker {
    /// Creates an empty table; without a spec the table never blocks.
    #[must_use]
    pub fn new(spec: Option<LockoutSpec>, exempt_networks: Vec<IpNet>) -> Self {
        let block = spec.map(|spec| spec.block_duration).unwrap_or_default();
        let table = spec.map(|spec| Mutex::new(LockoutTable::new(spec)));
        Self { table, block_duration: block, exempt_networks, started_at: Instant::now() }
    }

    /// Counts a failed authentication and returns its refusal: `unauthenticated`, or `locked-out` if this wrong
    /// credential is blocked. A missing credential does not count, so that opening a path in a browser blocks
    /// nothing.
    pub async fn record_failed_authentication(
        &self,
        client: Option<IpAddr>,
        error: AuthenticationError,
        credential_digest: impl FnOnce() -> CredentialDigest + Send,
    ) -> EarlyRefusal {
        let table_and_network = if error == AuthenticationError::Invalid {
            self.table_and_network(client)
        } else {
            None
        };
        let Some((table, network)) = table_and_network else { return error.into() };
        // The digest is computed only for an address that counts: a missing credential has none.
        let credential = credential_digest();
        let mut table = table.lock().await;
        let now = self.started_at.elapsed();
        // The check and the count happen under one lock, so that many attempts at once are not more than are allowed.
        if let Some(remaining) = table.remaining_block(network, credential, now) {
            return EarlyRefusal::locked_out(remaining);
        }
        // The address is logged and never the credential, which may be a mistyped valid one.
        let (seconds, client) =
            (self.block_duration.as_secs_f64(), client.map(tracing::field::display));
        match table.record_failure(network, credential, now) {
            LockoutDecision::NoNewBlock => {}
            LockoutDecision::CredentialBlocked => {
                tracing::warn!(client, seconds, "wrong credential blocked for this address");
            }
            LockoutDecision::AddressBlocked => {
                tracing::warn!(client, seconds, "wrong credentials of this address blocked");
            }
        }
        error.into()
    }

    /// Returns the table and the key of the address in it, if the address counts.
    fn table_and_network(
        &self,
        client: Option<IpAddr>,
    ) -> Option<(&Mutex<LockoutTable>, ClientNetwork)> {
        let client =
            client.filter(|client| !self.exempt_networks.iter().any(|net| net.contains(client)))?;
        Some((self.table.as_ref()?, client_network(client)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use algonius_actors::model::code::Code;

    async fn record_failure(
        lockouts: &LockoutTracker,
        client: &str,
        error: AuthenticationError,
        token: u8,
    ) -> EarlyRefusal {
        let client = Some(client.parse().expect("an address"));
        lockouts.record_failed_authentication(client, error, || CredentialDigest([token; 32])).await
    }

    async fn refusal_code(
        lockouts: &LockoutTracker,
        client: &str,
        error: AuthenticationError,
        token: u8,
    ) -> Code {
        record_failure(lockouts, client, error, token).await.failure.code
    }

    #[tokio::test]
    async fn wrong_credentials_are_blocked_but_not_missing_ones() {
        let exempt = vec!["10.0.0.0/8".parse().expect("a network")];
        let lockouts = LockoutTracker::new(Some(LockoutSpec::default()), exempt);
        for _ in 0..9 {
            let missing =
                refusal_code(&lockouts, "192.0.2.1", AuthenticationError::Missing, 0).await;
            assert_eq!(missing, Code::Unauthenticated);
            let exempt = refusal_code(&lockouts, "10.1.2.3", AuthenticationError::Invalid, 0).await;
            assert_eq!(exempt, Code::Unauthenticated);
        }
        for _ in 0..5 {
            let counted =
                refusal_code(&lockouts, "192.0.2.1", AuthenticationError::Invalid, 1).await;
            assert_eq!(counted, Code::Unauthenticated);
        }
        let refused = record_failure(&lockouts, "192.0.2.1", AuthenticationError::Invalid, 1).await;
        let wait = refused.wait.unwrap_or_default().as_secs();
        assert_eq!(refused.failure.code, Code::LockedOut);
        assert!((890..900).contains(&wait), "{wait}");
        for (client, token) in [("192.0.2.1", 2), ("192.0.2.2", 1)] {
            let other = refusal_code(&lockouts, client, AuthenticationError::Invalid, token).await;
            assert_eq!(other, Code::Unauthenticated);
        }
        let missing = refusal_code(&lockouts, "192.0.2.1", AuthenticationError::Missing, 0).await;
        assert_eq!(missing, Code::Unauthenticated);
    }

    #[tokio::test]
    async fn a_disabled_lockout_blocks_no_address() {
        let lockouts = LockoutTracker::new(None, Vec::new());
        for _ in 0..9 {
            let counted =
                refusal_code(&lockouts, "192.0.2.1", AuthenticationError::Invalid, 1).await;
            assert_eq!(counted, Code::Unauthenticated);
        }
    }
}
