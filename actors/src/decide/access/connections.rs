//! Limit of open connections: decides which connection is closed when a new one arrives.
//!
//! A connection counts towards its network until a request on it is authenticated, and from then on towards
//! the principal of that request. A client that opens connections without authenticating displaces its own
//! connections, so the service always accepts a caller with a valid credential. A client that authenticates
//! keeps its connections.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::lockout::ClientNetwork;
use crate::model::id::PrincipalId;

/// Number of connections that are inspected for one that can be displaced. If the first requests of all of them
/// wait to be read, the service is that far behind, and the new connection is admitted in addition.
const MAX_DISPLACEMENT_CANDIDATES: usize = 32;

/// Number of a connection. Numbers grow in the order of arrival.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConnectionId(u64);

/// Decision about a new connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectionAdmission {
    /// The connection is admitted.
    Admitted(ConnectionId),
    /// The connection is admitted, and the other connection must be closed.
    Displaces(ConnectionId, ConnectionId),
    /// The connection is refused, because no other connection may be closed for it.
    Refused,
}

/// Connections of one kind of holder.
#[derive(Debug, Clone)]
struct ConnectionGroups<K> {
    connections_by_holder: BTreeMap<K, BTreeSet<ConnectionId>>,
    /// Groups by size; among equals, the group with the oldest connection is the last.
    groups_by_size: BTreeSet<(usize, Reverse<ConnectionId>, K)>,
    total: usize,
}

impl<K: Ord + Copy> ConnectionGroups<K> {
    const fn new() -> Self {
        Self { connections_by_holder: BTreeMap::new(), groups_by_size: BTreeSet::new(), total: 0 }
    }

    fn connection_count(&self, key: K) -> usize {
        self.connections_by_holder.get(&key).map_or(0, BTreeSet::len)
    }

    fn largest_holder(&self) -> Option<K> {
        self.groups_by_size.last().map(|(_, _, key)| *key)
    }

    /// Iterates over the connections of a holder, the oldest first.
    fn connections_of(&self, key: K) -> impl DoubleEndedIterator<Item = ConnectionId> {
        self.connections_by_holder.get(&key).into_iter().flatten().copied()
    }

    fn insert(&mut self, key: K, id: ConnectionId) {
        self.update_group(key, |members| members.insert(id));
        self.total += 1;
    }

    fn remove(&mut self, key: K, id: ConnectionId) {
        self.update_group(key, |members| members.remove(&id));
        self.total -= 1;
    }

    fn update_group(&mut self, key: K, update: impl FnOnce(&mut BTreeSet<ConnectionId>) -> bool) {
        let members = self.connections_by_holder.entry(key).or_default();
        let size_entry =
            |members: &BTreeSet<_>| Some((members.len(), Reverse(*members.first()?), key));
        let old_entry = size_entry(members);
        update(members);
        let new_entry = size_entry(members);
        if new_entry.is_none() {
            self.connections_by_holder.remove(&key);
        }
        old_entry.iter().for_each(|old_entry| _ = self.groups_by_size.remove(old_entry));
        self.groups_by_size.extend(new_entry);
    }
}

/// Holder of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ConnectionHolder {
    Network(ClientNetwork),
    Principal(PrincipalId),
}

/// Table of the open connections.
#[derive(Debug, Clone)]
pub struct ConnectionTable {
    limit: usize,
    last_number: u64,
    holders: BTreeMap<ConnectionId, ConnectionHolder>,
    anonymous_by_network: ConnectionGroups<ClientNetwork>,
    by_principal: ConnectionGroups<PrincipalId>,
    /// Displaced connections that are still open.
    closing: BTreeSet<ConnectionId>,
}

impl ConnectionTable {
    /// Creates a table for this many connections.
    #[must_use]
    pub const fn new(limit: usize) -> Self {
        Self {
            limit,
            last_number: 0,
            holders: BTreeMap::new(),
            anonymous_by_network: ConnectionGroups::new(),
            by_principal: ConnectionGroups::new(),
            closing: BTreeSet::new(),
        }
    }

    /// Returns the number of connections that one network may have without a valid credential. A principal may have
    /// more while no other client needs the room.
    #[must_use]
    pub const fn fair_share(&self) -> usize {
        if self.limit < 2 { 1 } else { self.limit / 2 }
    }

    /// Returns the number of connections without a valid credential for which a principal with more than its share
    /// makes room.
    #[must_use]
    pub const fn unauthenticated_reserve(&self) -> usize {
        if self.limit < 8 { 1 } else { self.limit / 8 }
    }

    /// Returns the number of connections that may be open beyond the limit for a short time: displaced ones that are
    /// not closed yet, and new ones for which none could be displaced.
    #[must_use]
    pub const fn max_excess(limit: usize) -> usize {
        if limit < 64 { 8 } else { limit / 8 }
    }

    /// Decides about a new connection from this network. A connection for which `has_unread_first_request` returns
    /// true is spared: its request has arrived and waits to be read, so its caller is not known yet. If the new
    /// connection is too much even so, the oldest one is displaced in any case: a client can leave bytes unread.
    pub fn admit(
        &mut self,
        network: ClientNetwork,
        has_unread_first_request: impl Fn(ConnectionId) -> bool,
    ) -> ConnectionAdmission {
        let spares_connections = self.holders.len() < self.limit + Self::max_excess(self.limit) / 2;
        if self.holders.len() + self.closing.len() >= self.limit + Self::max_excess(self.limit) {
            return ConnectionAdmission::Refused;
        }
        let is_full = self.holders.len() >= self.limit;
        let crowded_network = Some(network).filter(|origin| {
            self.anonymous_by_network.connection_count(*origin) >= self.fair_share()
        });
        let crowded_network = crowded_network
            .or_else(|| self.anonymous_by_network.largest_holder().filter(|_| is_full));
        let surplus_principal = if is_full { self.principal_over_share() } else { None };
        if is_full && crowded_network.is_none() && surplus_principal.is_none() {
            return ConnectionAdmission::Refused;
        }
        let displaced = match (surplus_principal, crowded_network) {
            (Some(principal), _)
                if self.anonymous_by_network.total < self.unauthenticated_reserve() =>
            {
                // The newest one: otherwise callers would displace each other's
                // oldest connections without end.
                self.by_principal.connections_of(principal).next_back()
            }
            // The oldest one: a caller with a credential presents it soon after it has connected.
            (_, Some(crowded_network)) => self
                .anonymous_by_network
                .connections_of(crowded_network)
                .take(MAX_DISPLACEMENT_CANDIDATES)
                .find(|id| !spares_connections || !has_unread_first_request(*id)),
            _ => None,
        };
        self.last_number += 1;
        let id = ConnectionId(self.last_number);
        if let Some(displaced) = displaced {
            self.remove_holder(displaced);
            self.closing.insert(displaced);
        }
        self.holders.insert(id, ConnectionHolder::Network(network));
        self.anonymous_by_network.insert(network, id);
        displaced.map_or(ConnectionAdmission::Admitted(id), |displaced| {
            ConnectionAdmission::Displaces(id, displaced)
        })
    }

    /// Returns the principal with the most connections, if these are more than its share.
    fn principal_over_share(&self) -> Option<PrincipalId> {
        let largest = self.by_principal.largest_holder();
        largest
            .filter(|principal| self.by_principal.connection_count(*principal) > self.fair_share())
    }

    /// Assigns the connection to a principal, because a request on the connection was authenticated. Only the first
    /// call has an effect.
    pub fn assign_principal(&mut self, id: ConnectionId, principal: PrincipalId) {
        let Some(ConnectionHolder::Network(network)) = self.holders.get(&id).copied() else {
            return;
        };
        self.anonymous_by_network.remove(network, id);
        self.by_principal.insert(principal, id);
        self.holders.insert(id, ConnectionHolder::Principal(principal));
    }

    /// Removes a closed connection.
    pub fn remove(&mut self, id: ConnectionId) {
        self.remove_holder(id);
        self.closing.remove(&id);
    }

    /// Returns the number of displaced connections that are still open.
    #[must_use]
    pub fn closing_count(&self) -> usize {
        self.closing.len()
    }

    /// Returns the number of open connections, without those that are being closed.
    #[must_use]
    pub fn open_count(&self) -> usize {
        self.holders.len()
    }

    fn remove_holder(&mut self, id: ConnectionId) {
        match self.holders.remove(&id) {
            Some(ConnectionHolder::Network(network)) => {
                self.anonymous_by_network.remove(network, id);
            }
            Some(ConnectionHolder::Principal(principal)) => self.by_principal.remove(principal, id),
            None => {}
        }
    }
}

#[cfg(test)]
mod tests;
