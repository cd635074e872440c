//! Whether an address may still try: so many wrong credentials in so long, then it is blocked.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use crate::model::exposure::LockoutSpec;

/// Addresses that are remembered at once; the one not heard of for the longest is forgotten first.
pub const REMEMBERED: usize = 10_000;

/// Beginning of an IPv4 address that is written as one of IPv6.
const MAPPED: [u8; 12] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff];

/// Where a request comes from. A whole network of IPv6 counts as one, for one caller has as many
/// addresses of it as it likes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Origin {
    /// An IPv4 address.
    V4([u8; 4]),
    /// The first 64 bits of an IPv6 address.
    V6([u8; 8]),
}

impl Origin {
    /// The origin of an IPv6 address; one that maps an IPv4 address is that.
    #[must_use]
    pub fn of_v6(octets: [u8; 16]) -> Self {
        if let Some([a, b, c, d]) = octets.strip_prefix(&MAPPED) {
            return Self::V4([*a, *b, *c, *d]);
        }
        let [a, b, c, d, e, f, g, h, ..] = octets;
        Self::V6([a, b, c, d, e, f, g, h])
    }
}

/// What is known of one address.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Past {
    /// When it failed, the oldest first; fewer than block.
    failures: VecDeque<Duration>,
    /// When its block ends.
    until: Option<Duration>,
    /// Its place among the remembered.
    heard: u64,
}

/// What came of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The address may try again.
    Borne,
    /// The address is blocked from now on.
    Blocked,
}

/// The addresses that failed. Times are since the service began.
#[derive(Debug, Clone)]
pub struct Lockout {
    spec: LockoutSpec,
    known: BTreeMap<Origin, Past>,
    /// The known in the order in which they were heard of.
    order: BTreeMap<u64, Origin>,
    heard: u64,
}

impl Lockout {
    /// Nobody has failed yet.
    #[must_use]
    pub const fn new(spec: LockoutSpec) -> Self {
        Self { spec, known: BTreeMap::new(), order: BTreeMap::new(), heard: 0 }
    }

    /// How long an address is still blocked, if it is.
    #[must_use]
    pub fn blocked(&self, origin: Origin, now: Duration) -> Option<Duration> {
        let until = self.known.get(&origin)?.until?;
        until.checked_sub(now).filter(|rest| !rest.is_zero())
    }

    /// An address showed wrong credentials. A blocked one is not blocked for longer by that.
    pub fn failed(&mut self, origin: Origin, now: Duration) -> Verdict {
        if self.blocked(origin, now).is_some() {
            return Verdict::Borne;
        }
        let LockoutSpec { failures, window, block } = self.spec;
        let past = self.hear(origin);
        past.until = None;
        past.failures.retain(|at| now.saturating_sub(*at) < window);
        past.failures.push_back(now);
        if past.failures.len() < usize::try_from(failures).unwrap_or(usize::MAX) {
            return Verdict::Borne;
        }
        past.failures.clear();
        past.until = Some(now.saturating_add(block));
        Verdict::Blocked
    }

    /// How many addresses are remembered.
    #[must_use]
    pub fn remembered(&self) -> usize {
        self.known.len()
    }

    /// The past of an address, which is now the last one heard of.
    fn hear(&mut self, origin: Origin) -> &mut Past {
        self.heard += 1;
        if !self.known.contains_key(&origin)
            && self.known.len() >= REMEMBERED
            && let Some((_, oldest)) = self.order.pop_first()
        {
            self.known.remove(&oldest);
        }
        let past = self.known.entry(origin).or_default();
        self.order.remove(&past.heard);
        past.heard = self.heard;
        self.order.insert(self.heard, origin);
        past
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Verdict::{Blocked, Borne};
    use proptest::prelude::*;

    const ANN: Origin = Origin::V4([192, 0, 2, 1]);
    const MINUTE: u64 = 60;

    fn seconds(count: u64) -> Duration {
        Duration::from_secs(count)
    }

    fn verdicts(times: &[u64]) -> Vec<Verdict> {
        let mut lockout = Lockout::new(LockoutSpec::default());
        times.iter().map(|time| lockout.failed(ANN, seconds(*time))).collect()
    }

    #[test]
    fn the_fifth_failure_in_ten_minutes_blocks_for_a_quarter_of_an_hour() {
        assert_eq!(verdicts(&[0, 1, 2, 3, 599]), [Borne, Borne, Borne, Borne, Blocked]);
        assert_eq!(verdicts(&[0, 1, 2, 3, 600]), [Borne; 5]);
        let mut lockout = Lockout::new(LockoutSpec::default());
        for time in 0..5 {
            assert_eq!(lockout.blocked(ANN, seconds(time)), None);
            lockout.failed(ANN, seconds(time));
        }
        let end = 4 + 15 * MINUTE;
        assert_eq!(lockout.blocked(ANN, seconds(4)), Some(seconds(15 * MINUTE)));
        assert_eq!(lockout.blocked(ANN, seconds(end - 1)), Some(seconds(1)));
        assert_eq!(lockout.blocked(ANN, seconds(end)), None);
        assert_eq!(lockout.blocked(Origin::V4([192, 0, 2, 2]), seconds(4)), None);
    }

    #[test]
    fn after_a_block_the_count_begins_anew() {
        let end = 4 + 15 * MINUTE;
        let again: Vec<_> = (0..5).chain(end..end + 5).collect();
        let once = [Borne, Borne, Borne, Borne, Blocked];
        assert_eq!(verdicts(&again), [once, once].concat());
    }

    #[test]
    fn a_network_of_ipv6_is_one_origin_and_a_mapped_address_is_itself() {
        let of = |text: &str| Origin::of_v6(text.parse::<core::net::Ipv6Addr>().unwrap().octets());
        assert_eq!(of("2001:db8:1:2::1"), of("2001:db8:1:2:ffff::9"));
        assert_ne!(of("2001:db8:1:2::1"), of("2001:db8:1:3::1"));
        assert_eq!(of("::ffff:192.0.2.1"), ANN);
    }

    #[test]
    fn the_one_not_heard_of_for_the_longest_is_forgotten_first() {
        let mut lockout = Lockout::new(LockoutSpec { failures: 2, ..LockoutSpec::default() });
        let origin = |number: usize| {
            let [.., a, b, c, d] = number.to_be_bytes();
            Origin::V4([a, b, c, d])
        };
        for number in 0..REMEMBERED {
            lockout.failed(origin(number), seconds(1));
        }
        assert_eq!(lockout.failed(origin(0), seconds(2)), Blocked);
        lockout.failed(origin(REMEMBERED), seconds(3));
        assert_eq!(lockout.remembered(), REMEMBERED);
        assert_eq!(lockout.failed(origin(1), seconds(4)), Borne);
        assert!(lockout.blocked(origin(0), seconds(4)).is_some());
    }

    proptest! {
        /// No period has more failures that were looked at than block, whoever else fails; and a
        /// block ends exactly when it should.
        #[test]
        fn nobody_gets_more_tries_than_allowed(
            events in proptest::collection::vec((0u8..3, 0u64..200), 1..200)
        ) {
            let spec = LockoutSpec::default();
            let mut lockout = Lockout::new(spec);
            let (mut now, mut tries) = (0, BTreeMap::<u8, Vec<u64>>::new());
            let mut blocks = BTreeMap::<u8, u64>::new();
            for (who, gap) in events {
                now += gap;
                let origin = Origin::V4([10, 0, 0, who]);
                let blocked = lockout.blocked(origin, seconds(now)).is_some();
                prop_assert_eq!(blocked, blocks.get(&who).is_some_and(|until| now < *until));
                if blocked {
                    continue;
                }
                tries.entry(who).or_default().push(now);
                if lockout.failed(origin, seconds(now)) == Blocked {
                    blocks.insert(who, now + spec.block.as_secs());
                }
            }
            for (who, times) in tries {
                for window in times.windows(6) {
                    prop_assert!(window[5] - window[0] >= spec.window.as_secs(), "{who} {times:?}");
                }
            }
        }
    }
}
