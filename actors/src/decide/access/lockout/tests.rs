//! Scenario tests and a property test of the lockout.

use proptest::prelude::*;

use super::LockoutDecision::{AddressBlocked, CredentialBlocked, NoNewBlock};
use crate::decide::access::lockout::*;

const FIRST_ADDRESS: ClientNetwork = ClientNetwork::V4([192, 0, 2, 1]);
const SECOND_ADDRESS: ClientNetwork = ClientNetwork::V4([192, 0, 2, 2]);
const MINUTE: u64 = 60;

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

fn credential_digest(number: u8) -> CredentialDigest {
    CredentialDigest([number; 32])
}

/// Returns the decisions about one address that presents these credentials at these times.
fn decisions(events: &[(u8, u64)]) -> Vec<LockoutDecision> {
    let mut lockout = LockoutTable::new(LockoutSpec::default());
    let record = |(number, at): &(u8, u64)| {
        lockout.record_failure(FIRST_ADDRESS, credential_digest(*number), seconds(*at))
    };
    events.iter().map(record).collect()
}

#[test]
fn a_credential_is_blocked_alone_after_five_failures() {
    let mut lockout = LockoutTable::new(LockoutSpec::default());
    for at in 0..4 {
        assert_eq!(
            lockout.record_failure(FIRST_ADDRESS, credential_digest(1), seconds(at)),
            NoNewBlock
        );
    }
    assert_eq!(
        lockout.record_failure(FIRST_ADDRESS, credential_digest(1), seconds(4)),
        CredentialBlocked
    );
    let end = 4 + 15 * MINUTE;
    assert_eq!(
        lockout.remaining_block(FIRST_ADDRESS, credential_digest(1), seconds(4)),
        Some(seconds(15 * MINUTE))
    );
    assert_eq!(
        lockout.remaining_block(FIRST_ADDRESS, credential_digest(1), seconds(end - 1)),
        Some(seconds(1))
    );
    assert_eq!(lockout.remaining_block(FIRST_ADDRESS, credential_digest(1), seconds(end)), None);
    assert_eq!(lockout.remaining_block(FIRST_ADDRESS, credential_digest(2), seconds(4)), None);
    assert_eq!(lockout.remaining_block(SECOND_ADDRESS, credential_digest(1), seconds(4)), None);
}

#[test]
fn five_different_wrong_credentials_block_all_wrong_ones() {
    let mut lockout = LockoutTable::new(LockoutSpec::default());
    for number in 0..4 {
        assert_eq!(
            lockout.record_failure(FIRST_ADDRESS, credential_digest(number), seconds(0)),
            NoNewBlock
        );
    }
    assert_eq!(
        lockout.record_failure(FIRST_ADDRESS, credential_digest(4), seconds(1)),
        AddressBlocked
    );
    for number in 0..9 {
        let remaining =
            lockout.remaining_block(FIRST_ADDRESS, credential_digest(number), seconds(1));
        assert_eq!(remaining, Some(seconds(15 * MINUTE)), "{number}");
    }
    assert_eq!(lockout.remaining_block(SECOND_ADDRESS, credential_digest(0), seconds(1)), None);
    assert_eq!(
        lockout.remaining_block(FIRST_ADDRESS, credential_digest(9), seconds(1 + 15 * MINUTE)),
        None
    );
}

#[test]
fn failures_older_than_the_window_do_not_count() {
    let same_credential = |times: [u64; 5]| times.map(|at| (1, at));
    assert_eq!(decisions(&same_credential([0, 1, 2, 3, 599])).last(), Some(&CredentialBlocked));
    assert_eq!(decisions(&same_credential([0, 1, 2, 3, 600])), [NoNewBlock; 5]);
    let different_credentials = [(1, 0), (2, 1), (3, 2), (4, 3), (5, 600)];
    assert_eq!(decisions(&different_credentials), [NoNewBlock; 5]);
}

#[test]
fn a_blocked_credential_counts_towards_its_address() {
    let repeated_failures: Vec<_> = (0..5).map(|at| (1, at)).collect();
    let other_failures = [(2, 700), (3, 701), (4, 702), (5, 703)];
    let all_decisions = decisions(&[repeated_failures, other_failures.to_vec()].concat());
    assert_eq!((all_decisions[4], all_decisions[8]), (CredentialBlocked, AddressBlocked));
}

#[test]
fn the_count_restarts_after_a_block() {
    let end = 4 + 15 * MINUTE;
    let repeated_failures: Vec<_> = (0..5).chain(end..end + 5).map(|at| (1, at)).collect();
    let block_cycle = [NoNewBlock, NoNewBlock, NoNewBlock, NoNewBlock, CredentialBlocked];
    assert_eq!(decisions(&repeated_failures), [block_cycle, block_cycle].concat());
}

#[test]
fn an_ipv6_network_is_one_origin_and_a_mapped_address_is_ipv4() {
    let network_of =
        |text: &str| ClientNetwork::from_v6(text.parse::<core::net::Ipv6Addr>().unwrap().octets());
    assert_eq!(network_of("2001:db8:1:2::1"), network_of("2001:db8:1:2:ffff::9"));
    assert_ne!(network_of("2001:db8:1:2::1"), network_of("2001:db8:1:3::1"));
    assert_eq!(network_of("::ffff:192.0.2.1"), FIRST_ADDRESS);
}

fn network(number: usize) -> ClientNetwork {
    let [.., a, b, c, d] = number.to_be_bytes();
    ClientNetwork::V4([a, b, c, d])
}

#[test]
fn the_least_recently_failed_address_is_forgotten_first() {
    let mut lockout = LockoutTable::new(LockoutSpec { max_failures: 2, ..LockoutSpec::default() });
    for number in 0..MAX_REMEMBERED_ADDRESSES {
        lockout.record_failure(network(number), credential_digest(0), seconds(1));
    }
    assert_eq!(
        lockout.record_failure(network(0), credential_digest(0), seconds(2)),
        CredentialBlocked
    );
    lockout.record_failure(network(MAX_REMEMBERED_ADDRESSES), credential_digest(0), seconds(3));
    assert_eq!(lockout.address_count(), MAX_REMEMBERED_ADDRESSES);
    assert_eq!(lockout.record_failure(network(1), credential_digest(0), seconds(4)), NoNewBlock);
    assert!(lockout.remaining_block(network(0), credential_digest(0), seconds(4)).is_some());
}

#[test]
fn the_table_is_bounded_for_a_high_failure_limit() {
    let mut lockout =
        LockoutTable::new(LockoutSpec { max_failures: 100, ..LockoutSpec::default() });
    for number in 0..1100 {
        for token_number in 0..99 {
            lockout.record_failure(network(number), credential_digest(token_number), seconds(1));
        }
    }
    let stored_entries: usize = lockout.histories.values().map(FailureHistory::entry_count).sum();
    assert_eq!(stored_entries, lockout.entry_count);
    assert!(
        stored_entries <= MAX_STORED_ENTRIES && lockout.address_count() >= 1000,
        "{stored_entries}"
    );
    assert_eq!(lockout.histories.len(), lockout.addresses_by_last_failure.len());
}

proptest! {
    /// In no period of the window's length does an address receive more answers about one wrong credential, or about
    /// more different ones, than allowed; blocks end on time; the counters of the table are correct.
    #[test]
    fn no_address_gets_more_tries_than_allowed(
        events in proptest::collection::vec((0u8..2, 0u8..7, 0u64..200), 1..300)
    ) {
        let spec = LockoutSpec::default();
        let (max_failures, window) = (usize::try_from(spec.max_failures).unwrap(), spec.window.as_secs());
        let mut lockout = LockoutTable::new(spec);
        let (mut now, mut tries) = (0, BTreeMap::<u8, Vec<(u8, u64)>>::new());
        let mut credential_blocks = BTreeMap::<(u8, u8), u64>::new();
        let mut address_blocks = BTreeMap::<u8, u64>::new();
        for (address, token_number, gap) in events {
            now += gap;
            let (network, credential) = (ClientNetwork::V4([10, 0, 0, address]), credential_digest(token_number));
            let block_ends = credential_blocks
                .get(&(address, token_number))
                .into_iter()
                .chain(address_blocks.get(&address));
            let remaining = block_ends.max().and_then(|end| end.checked_sub(now)).filter(|remaining| *remaining > 0);
            prop_assert_eq!(lockout.remaining_block(network, credential, seconds(now)), remaining.map(seconds));
            if remaining.is_none() {
                tries.entry(address).or_default().push((token_number, now));
            }
            let end = now + spec.block_duration.as_secs();
            match lockout.record_failure(network, credential, seconds(now)) {
                NoNewBlock => {}
                CredentialBlocked => _ = credential_blocks.insert((address, token_number), end),
                AddressBlocked => _ = address_blocks.insert(address, end),
            }
        }
        for tries_of_address in tries.values() {
            for (start, (_, window_start)) in tries_of_address.iter().enumerate() {
                let tries_in_window = tries_of_address[start..].iter().take_while(|(_, time)| time - window_start < window);
                let tries_in_window: Vec<u8> = tries_in_window.map(|(token_number, _)| *token_number).collect();
                let distinct_credentials: BTreeSet<u8> = tries_in_window.iter().copied().collect();
                prop_assert!(distinct_credentials.len() <= max_failures, "{tries_in_window:?}");
                for token_number in &distinct_credentials {
                    let same_count = tries_in_window.iter().filter(|other| *other == token_number).count();
                    prop_assert!(same_count <= max_failures, "{tries_in_window:?}");
                }
            }
        }
        prop_assert_eq!(lockout.histories.values().map(FailureHistory::entry_count).sum::<usize>(), lockout.entry_count);
    }
}
