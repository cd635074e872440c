//! Addresses that showed wrong credentials too often are not looked at for a while.

use std::net::IpAddr;
use std::time::Duration;

use algonius_actors::decide::lockout::{Lockout, Origin, Verdict};
use algonius_actors::model::exposure::LockoutSpec;
use ipnet::IpNet;
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::answer::Refused;
use super::auth::Rejected;

/// The addresses that failed, and those that may fail as they like.
pub struct Lockouts {
    table: Option<Mutex<Lockout>>,
    block: Duration,
    exempt: Vec<IpNet>,
    begun: Instant,
}

impl Lockouts {
    /// Nobody has failed yet; without a spec nobody is ever blocked.
    #[must_use]
    pub fn new(spec: Option<LockoutSpec>, exempt: Vec<IpNet>) -> Self {
        let block = spec.map(|spec| spec.block).unwrap_or_default();
        let table = spec.map(|spec| Mutex::new(Lockout::new(spec)));
        Self { table, block, exempt, begun: Instant::now() }
    }

    /// How long an address is still blocked, if it is.
    pub async fn blocked(&self, client: Option<IpAddr>) -> Option<Duration> {
        let (table, origin) = self.of(client)?;
        table.lock().await.blocked(origin, self.begun.elapsed())
    }

    /// Makes an attempt to enter for an address. No two attempts run at once, so that many at the
    /// same time are not more than are allowed.
    ///
    /// # Errors
    /// `locked-out` without an attempt, or what comes of the attempt.
    pub async fn attempt<T: Send>(
        &self,
        client: Option<IpAddr>,
        attempt: impl FnOnce() -> Result<T, Rejected> + Send,
    ) -> Result<T, Refused> {
        let Some((table, origin)) = self.of(client) else {
            return attempt().map_err(Refused::from);
        };
        let mut table = table.lock().await;
        let now = self.begun.elapsed();
        if let Some(rest) = table.blocked(origin, now) {
            return Err(Refused::locked_out(rest));
        }
        attempt().map_err(|rejected| {
            let is_wrong = rejected == Rejected::Wrong;
            if is_wrong && table.failed(origin, now) == Verdict::Blocked {
                let seconds = self.block.as_secs_f64();
                tracing::warn!(?client, seconds, "address blocked after wrong credentials");
            }
            Refused::from(rejected)
        })
    }

    /// The table, and the address's place in it, if the address counts.
    fn of(&self, client: Option<IpAddr>) -> Option<(&Mutex<Lockout>, Origin)> {
        let client = client.filter(|client| !self.exempt.iter().any(|net| net.contains(client)))?;
        let origin = match client {
            IpAddr::V4(address) => Origin::V4(address.octets()),
            IpAddr::V6(address) => Origin::of_v6(address.octets()),
        };
        Some((self.table.as_ref()?, origin))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use algonius_actors::model::code::Code;

    fn of(text: &str) -> Option<IpAddr> {
        Some(text.parse().expect("an address"))
    }

    async fn fail(lockouts: &Lockouts, client: &str, rejected: Rejected) -> Code {
        let attempt = lockouts.attempt(of(client), || Err::<(), _>(rejected)).await;
        attempt.expect_err("it failed").failure.code
    }

    #[tokio::test]
    async fn wrong_credentials_block_and_missing_ones_do_not() {
        let exempt = vec!["10.0.0.0/8".parse().expect("a network")];
        let lockouts = Lockouts::new(Some(LockoutSpec::default()), exempt);
        for _ in 0..9 {
            let code = fail(&lockouts, "192.0.2.1", Rejected::Missing).await;
            assert_eq!(code, Code::Unauthenticated);
            assert_eq!(fail(&lockouts, "10.1.2.3", Rejected::Wrong).await, Code::Unauthenticated);
        }
        for _ in 0..5 {
            assert_eq!(fail(&lockouts, "192.0.2.1", Rejected::Wrong).await, Code::Unauthenticated);
        }
        assert_eq!(fail(&lockouts, "192.0.2.1", Rejected::Wrong).await, Code::LockedOut);
        assert_eq!(fail(&lockouts, "192.0.2.2", Rejected::Wrong).await, Code::Unauthenticated);
        let good = lockouts.attempt(of("192.0.2.1"), || Ok(())).await;
        let wait = good.expect_err("blocked").wait.unwrap_or_default().as_secs();
        assert!((890..900).contains(&wait), "{wait}");
        assert!(lockouts.attempt(of("192.0.2.2"), || Ok(())).await.is_ok());
    }
}
