//! Lockout after wrong credentials: decides which wrong credentials are refused temporarily.
//!
//! Failures count per address *and* per credential. A credential that fails too often from an address is
//! blocked there, and an address that presents too many different wrong credentials may present no further
//! wrong one. Valid credentials are never checked here, so no caller is refused because of another one.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use crate::model::access::endpoint_config::LockoutSpec;

/// Maximum number of remembered addresses; the one that failed longest ago is forgotten first.
pub const MAX_REMEMBERED_ADDRESSES: usize = 10_000;

/// Maximum number of stored failures and blocks, of all addresses together. Limits the memory if the configuration lets
/// an address fail very often.
pub const MAX_STORED_ENTRIES: usize = 100_000;

/// Multiple of the failures allowed per credential after which the whole address is blocked, however few its
/// credentials are. Limits the work of one decision.
const ADDRESS_BLOCK_FACTOR: usize = 4;

/// Prefix of an IPv4 address that is mapped to IPv6.
const IPV4_MAPPED_PREFIX: [u8; 12] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff];

/// Network that a request comes from. A whole /64 network of IPv6 counts as one network, because one caller
/// can use all of its addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ClientNetwork {
    /// An IPv4 address.
    V4([u8; 4]),
    /// The first 64 bits of an IPv6 address.
    V6([u8; 8]),
}

impl ClientNetwork {
    /// Returns the network of an IPv6 address; a mapped IPv4 address becomes an IPv4 network.
    #[must_use]
    pub fn from_v6(octets: [u8; 16]) -> Self {
        if let Some([a, b, c, d]) = octets.strip_prefix(&IPV4_MAPPED_PREFIX) {
            return Self::V4([*a, *b, *c, *d]);
        }
        let [a, b, c, d, e, f, g, h, ..] = octets;
        Self::V6([a, b, c, d, e, f, g, h])
    }
}

/// Digest of a wrong credential, as it was presented. The credential itself is not stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct CredentialDigest(pub [u8; 32]);

/// Failure history of one address.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct FailureHistory {
    /// Failures within the window, the oldest first.
    failures: VecDeque<(CredentialDigest, Duration)>,
    /// Blocked credentials, each with the end of its block.
    blocked_credentials: Vec<(CredentialDigest, Duration)>,
    /// End of the block of every wrong credential of this address.
    address_blocked_until: Option<Duration>,
    /// Position in the order of the last failures of all addresses.
    last_failure_number: u64,
}

/// Consequence of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockoutDecision {
    /// The failure was counted, or was refused already.
    NoNewBlock,
    /// From now on, this credential is blocked at this address.
    CredentialBlocked,
    /// From now on, every wrong credential of this address is blocked.
    AddressBlocked,
}

/// Table of the addresses that failed to authenticate. Times are measured from the start of the service.
#[derive(Debug, Clone)]
pub struct LockoutTable {
    spec: LockoutSpec,
    histories: BTreeMap<ClientNetwork, FailureHistory>,
    /// The known addresses in the order of their last failures.
    addresses_by_last_failure: BTreeMap<u64, ClientNetwork>,
    last_failure_number: u64,
    /// Failures and blocked credentials in the table.
    entry_count: usize,
}

impl LockoutTable {
    /// Creates an empty table.
    #[must_use]
    pub const fn new(spec: LockoutSpec) -> Self {
        Self {
            spec,
            histories: BTreeMap::new(),
            addresses_by_last_failure: BTreeMap::new(),
            last_failure_number: 0,
            entry_count: 0,
        }
    }

    /// Returns the time for which this wrong credential is still blocked at this address, if it is.
    #[must_use]
    pub fn remaining_block(
        &self,
        network: ClientNetwork,
        digest: CredentialDigest,
        now: Duration,
    ) -> Option<Duration> {
        let history = self.histories.get(&network)?;
        let credential_blocks =
            history.blocked_credentials.iter().filter(|(credential, _)| *credential == digest);
        let block_ends = credential_blocks
            .map(|(_, blocked_until)| *blocked_until)
            .chain(history.address_blocked_until);
        let remaining = block_ends.max()?.checked_sub(now)?;
        (!remaining.is_zero()).then_some(remaining)
    }

    /// Counts a wrong credential. A blocked credential is not counted, so a block is never extended.
    pub fn record_failure(
        &mut self,
        network: ClientNetwork,
        digest: CredentialDigest,
        now: Duration,
    ) -> LockoutDecision {
        if self.remaining_block(network, digest, now).is_some() {
            return LockoutDecision::NoNewBlock;
        }
        let spec = self.spec;
        let history = self.touch(network);
        let before = history.entry_count();
        let decision = history.record_failure(digest, now, spec);
        let after = history.entry_count();
        self.entry_count = self.entry_count - before + after;
        while self.entry_count > MAX_STORED_ENTRIES && self.histories.len() > 1 {
            self.forget_oldest();
        }
        decision
    }

    /// Returns the number of addresses in the table.
    #[must_use]
    pub fn address_count(&self) -> usize {
        self.histories.len()
    }

    /// Returns the history of an address, which becomes the latest one that failed.
    fn touch(&mut self, network: ClientNetwork) -> &mut FailureHistory {
        self.last_failure_number += 1;
        if !self.histories.contains_key(&network)
            && self.histories.len() >= MAX_REMEMBERED_ADDRESSES
        {
            self.forget_oldest();
        }
        let history = self.histories.entry(network).or_default();
        self.addresses_by_last_failure.remove(&history.last_failure_number);
        history.last_failure_number = self.last_failure_number;
        self.addresses_by_last_failure.insert(self.last_failure_number, network);
        history
    }

    fn forget_oldest(&mut self) {
        let oldest = self
            .addresses_by_last_failure
            .pop_first()
            .and_then(|(_, network)| self.histories.remove(&network));
        self.entry_count -= oldest.map_or(0, |history| history.entry_count());
    }
}

impl FailureHistory {
    /// Counts a failure of a credential that is not blocked.
    fn record_failure(
        &mut self,
        digest: CredentialDigest,
        now: Duration,
        spec: LockoutSpec,
    ) -> LockoutDecision {
        let LockoutSpec { max_failures, window, block_duration: block } = spec;
        let (max_failures, blocked_until) =
            (usize::try_from(max_failures).unwrap_or(usize::MAX), now.saturating_add(block));
        self.address_blocked_until = None; // Its end has passed, or the credential would be blocked.
        self.failures.retain(|(_, at)| now.saturating_sub(*at) < window);
        self.blocked_credentials.retain(|(_, blocked_until)| now < *blocked_until);
        self.failures.push_back((digest, now));
        let credential_failures =
            self.failures.iter().filter(|(credential, _)| *credential == digest).count();
        if self.credential_count() >= max_failures
            || self.failures.len() >= max_failures.saturating_mul(ADDRESS_BLOCK_FACTOR)
        {
            // This block lasts longer than the blocks of single credentials; the count restarts after it.
            *self = Self {
                address_blocked_until: Some(blocked_until),
                last_failure_number: self.last_failure_number,
                ..Self::default()
            };
            LockoutDecision::AddressBlocked
        } else if credential_failures >= max_failures {
            self.failures.retain(|(credential, _)| *credential != digest);
            self.blocked_credentials.push((digest, blocked_until));
            LockoutDecision::CredentialBlocked
        } else {
            LockoutDecision::NoNewBlock
        }
    }

    /// Returns the number of different credentials that failed within the window or are blocked.
    fn credential_count(&self) -> usize {
        let credentials =
            self.failures.iter().chain(&self.blocked_credentials).map(|(credential, _)| credential);
        credentials.collect::<BTreeSet<_>>().len()
    }

    fn entry_count(&self) -> usize {
        self.failures.len() + self.blocked_credentials.len()
    }
}

#[cfg(test)]
mod tests;
