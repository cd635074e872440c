//! Scenario tests and a property test of the connection limit.

use proptest::prelude::*;
use uuid::Uuid;

use crate::decide::access::connections::*;

const NO_DISPLACED: [usize; 0] = [];

fn network(number: u8) -> ClientNetwork {
    ClientNetwork::V4([10, 0, 0, number])
}

fn principal(number: u8) -> PrincipalId {
    PrincipalId(Uuid::from_bytes([number; 16]))
}

/// Table of this size with its admitted connections.
struct TestConnections {
    connections: ConnectionTable,
    admitted: Vec<ConnectionId>,
}

impl TestConnections {
    fn new(limit: usize) -> Self {
        Self { connections: ConnectionTable::new(limit), admitted: Vec::new() }
    }

    /// Admits connections of a network. Returns the displaced ones by their index in the order of admission.
    fn admit_from_network(&mut self, from: u8, count: usize) -> Vec<usize> {
        let mut displaced = Vec::new();
        for _ in 0..count {
            match self.connections.admit(network(from), |_| false) {
                ConnectionAdmission::Admitted(id) => self.admitted.push(id),
                ConnectionAdmission::Displaces(id, other) => {
                    displaced.extend(self.admitted.iter().position(|known| *known == other));
                    self.connections.remove(other);
                    self.admitted.push(id);
                }
                ConnectionAdmission::Refused => displaced.push(usize::MAX),
            }
        }
        displaced
    }

    /// Admits connections that authenticate at once.
    fn admit_authenticated(&mut self, number: u8, count: usize) -> Vec<usize> {
        let mut displaced = Vec::new();
        for _ in 0..count {
            displaced.extend(self.admit_from_network(number, 1));
            if let Some(id) = self.admitted.last() {
                self.connections.assign_principal(*id, principal(number));
            }
        }
        displaced
    }
}

#[test]
fn a_network_at_half_of_the_limit_evicts_its_own_oldest() {
    let mut table = TestConnections::new(16);
    assert_eq!(table.admit_from_network(1, 8), NO_DISPLACED);
    assert_eq!(table.admit_from_network(1, 3), [0, 1, 2]);
    assert_eq!(table.admit_from_network(2, 8), NO_DISPLACED);
    assert_eq!(table.connections.open_count(), 16);
}

#[test]
fn a_full_table_evicts_from_the_largest_network() {
    let mut table = TestConnections::new(16);
    assert_eq!(table.admit_from_network(1, 3), NO_DISPLACED);
    assert_eq!(table.admit_from_network(2, 8), NO_DISPLACED);
    assert_eq!(table.admit_from_network(3, 5), NO_DISPLACED);
    assert_eq!(table.admit_from_network(4, 2), [3, 4]);
    let mut small_table = TestConnections::new(4);
    let displaced: Vec<_> =
        (1..=9).flat_map(|from| small_table.admit_from_network(from, 1)).collect();
    assert_eq!(displaced, [0, 1, 2, 3, 4]);
}

#[test]
fn anonymous_connections_never_displace_authenticated_ones() {
    let mut table = TestConnections::new(16);
    assert_eq!(table.admit_authenticated(1, 8), NO_DISPLACED);
    assert_eq!(table.admit_from_network(2, 8), NO_DISPLACED);
    assert_eq!(table.admit_from_network(3, 3), [8, 9, 10]);
    assert_eq!(
        table.admit_from_network(2, 100).iter().filter(|displaced| **displaced < 8).count(),
        0
    );
}

#[test]
fn a_principal_beyond_its_share_is_evicted_as_far_as_needed() {
    let mut table = TestConnections::new(16);
    assert_eq!(table.admit_authenticated(1, 16), NO_DISPLACED);
    assert_eq!(table.admit_from_network(2, 2), [15, 14]);
    assert_eq!(table.admit_from_network(2, 2), [16, 17]);
    assert_eq!(table.admit_authenticated(3, 1), [18]);
    assert_eq!(table.admit_from_network(4, 1), [13]);
}

#[test]
fn connections_of_principals_within_their_shares_are_not_closed() {
    let mut table = TestConnections::new(16);
    assert_eq!(table.admit_authenticated(1, 8), NO_DISPLACED);
    assert_eq!(table.admit_authenticated(2, 8), NO_DISPLACED);
    assert_eq!(table.admit_from_network(3, 2), [usize::MAX, usize::MAX]);
    let first = table.admitted[0];
    table.connections.remove(first);
    assert_eq!(table.admit_from_network(3, 1), NO_DISPLACED);
}

#[test]
fn evicted_connections_that_stay_open_are_bounded() {
    let mut connections = ConnectionTable::new(16);
    let admit = |number: u8| connections.admit(network(number % 2), |_| false);
    let refused_count =
        (0..100).map(admit).filter(|it| *it == ConnectionAdmission::Refused).count();
    assert_eq!(
        connections.open_count() + connections.closing.len(),
        16 + ConnectionTable::max_excess(16)
    );
    assert_eq!(refused_count, 100 - 16 - ConnectionTable::max_excess(16));
}

#[test]
fn a_connection_with_a_waiting_request_is_spared_for_a_while() {
    let mut connections = ConnectionTable::new(16);
    let mut admit = |has_unread_request: &dyn Fn(ConnectionId) -> bool| {
        connections.admit(network(1), has_unread_request)
    };
    let ids = [(); 8].map(|()| match admit(&|_| false) {
        ConnectionAdmission::Admitted(id) => id,
        other => panic!("{other:?}"),
    });
    let decision = admit(&|id| id == ids[0] || id == ids[1]);
    assert!(
        matches!(decision, ConnectionAdmission::Displaces(_, displaced) if displaced == ids[2]),
        "{decision:?}"
    );
    for _ in 0..12 {
        assert!(matches!(admit(&|_| true), ConnectionAdmission::Admitted(_)));
    }
    let decision = admit(&|_| true);
    assert!(
        matches!(decision, ConnectionAdmission::Displaces(_, displaced) if displaced == ids[0]),
        "{decision:?}"
    );
    assert_eq!(connections.open_count(), 16 + ConnectionTable::max_excess(16) / 2);
}

#[derive(Debug, Clone)]
enum ConnectionStep {
    Admit(u8),
    Authenticate(usize, u8),
    Close(usize),
}

fn steps() -> impl Strategy<Value = Vec<ConnectionStep>> {
    let step = prop_oneof![
        4 => (0u8..5).prop_map(ConnectionStep::Admit),
        2 => (0usize..400, 0u8..3).prop_map(|(index, owner)| ConnectionStep::Authenticate(index, owner)),
        1 => (0usize..400).prop_map(ConnectionStep::Close),
    ];
    proptest::collection::vec(step, 1..400)
}

proptest! {
    /// The limit and the shares hold, only permitted connections are displaced, and the
    /// table agrees with a plain list.
    #[test]
    fn the_limits_hold_for_any_order_of_events(steps in steps(), limit in 1usize..40) {
        let mut connections = ConnectionTable::new(limit);
        let mut open_connections = BTreeMap::<ConnectionId, (u8, Option<u8>)>::new();
        let mut admitted = Vec::new();
        for step in steps {
            match step {
                ConnectionStep::Admit(from) => {
                    let (share, is_full) = (connections.fair_share(), open_connections.len() >= limit);
                    let network_anonymous_count = open_connections.values().filter(|it| **it == (from, None)).count();
                    match connections.admit(network(from), |_| false) {
                        ConnectionAdmission::Admitted(id) => {
                            prop_assert!(!is_full && network_anonymous_count < share);
                            open_connections.insert(id, (from, None));
                            admitted.push(id);
                        }
                        ConnectionAdmission::Displaces(id, other) => {
                            prop_assert!(is_full || network_anonymous_count >= share);
                            let removed = open_connections.remove(&other);
                            prop_assert!(removed.is_some());
                            if let Some((_, Some(owner))) = removed {
                                let owner_count = open_connections.values().filter(|it| it.1 == Some(owner)).count();
                                prop_assert!(owner_count >= share);
                            }
                            connections.remove(other);
                            open_connections.insert(id, (from, None));
                            admitted.push(id);
                        }
                        ConnectionAdmission::Refused => {
                            prop_assert!(is_full && open_connections.values().all(|it| it.1.is_some()));
                        }
                    }
                }
                ConnectionStep::Authenticate(index, owner) => {
                    let Some(id) = admitted.get(index % admitted.len().max(1)) else { continue };
                    connections.assign_principal(*id, principal(owner));
                    if let Some((_, current_owner @ None)) = open_connections.get_mut(id) {
                        *current_owner = Some(owner);
                    }
                }
                ConnectionStep::Close(index) => {
                    let Some(id) = admitted.get(index % admitted.len().max(1)) else { continue };
                    connections.remove(*id);
                    open_connections.remove(id);
                }
            }
            prop_assert!(open_connections.len() <= limit);
            prop_assert_eq!(connections.open_count(), open_connections.len());
            let counted = connections.anonymous_by_network.total + connections.by_principal.total;
            prop_assert_eq!(counted, open_connections.len());
            prop_assert_eq!(connections.anonymous_by_network.groups_by_size.len(), connections.anonymous_by_network.connections_by_holder.len());
        }
    }
}
