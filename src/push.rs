//! Push notifications: who is told about an execution, and the telling.
//!
//! Each event that callers see is brought to each target at least once and in order, over
//! restarts: a target's row holds the number of the last event that it knows.

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use algonius_actors::model::code::Code;
use algonius_actors::model::exposure::Version;
use algonius_actors::model::failure::Failure;
use algonius_actors::model::id::ExecutionId;
use algonius_actors::model::push::PushTarget;
use algonius_actors::ports::clock::Clock;
use algonius_actors::ports::ledger::{Ledger, LedgerError};
use algonius_actors::ports::outbox::{Outbox, Placing};
use ipnet::IpNet;
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;

use courier::fits_a_header;
use worker::Bench;

pub use courier::{Courier, CourierError, Letter};
pub use url::check_url;

mod address;
mod courier;
mod url;
mod worker;

#[cfg(test)]
mod tests;

/// Targets of one execution.
pub const TARGETS: u32 = 10;

/// The longest token, scheme or credentials, in bytes.
const LONGEST_SECRET: usize = 4096;

/// Where may be told, and how long it is tried.
#[derive(Debug, Clone)]
pub struct Policy {
    /// Addresses that may be told although they are not of the public internet, over plain HTTP
    /// too.
    pub allow: Vec<IpNet>,
    /// Whether plain HTTP does for all others.
    pub insecure_http: bool,
    /// How long one try may take.
    pub timeout: Duration,
    /// How long a notice is tried.
    pub max_age: Duration,
}

/// The answer of a [`Render`].
pub type Rendered = Pin<Box<dyn Future<Output = Result<Option<Vec<u8>>, Failure>> + Send>>;

/// Writes the body of a notice about the event of a number, in the words of a version; `None`
/// when that version has nothing to say there. The last event of an execution that is asked for
/// is its move into the clean-up, by which time it has its outcome.
pub type Render = Arc<dyn Fn(ExecutionId, Version, u64) -> Rendered + Send + Sync>;

/// The inside as a postman sees it.
pub struct Post {
    /// What happened.
    pub ledger: Arc<dyn Ledger>,
    /// Who is to know.
    pub outbox: Arc<dyn Outbox>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// What is written.
    pub render: Render,
    /// Hears of each target that is given up, after so many failures.
    pub given_up: Arc<dyn Fn(u32) + Send + Sync>,
}

/// Takes registrations. Cheap to clone.
#[derive(Clone)]
pub struct Desk {
    outbox: Arc<dyn Outbox>,
    clock: Arc<dyn Clock>,
    policy: Arc<Policy>,
    bell: Arc<Notify>,
}

/// Tells until it is stopped.
pub struct Postman {
    stop: watch::Sender<bool>,
    working: JoinHandle<()>,
}

impl Desk {
    /// A desk under a policy.
    #[must_use]
    pub fn new(outbox: Arc<dyn Outbox>, clock: Arc<dyn Clock>, policy: Policy) -> Self {
        Self { outbox, clock, policy: Arc::new(policy), bell: Arc::default() }
    }

    /// Starts to tell: what an earlier life left, and what comes.
    ///
    /// # Errors
    /// When TLS cannot be set up.
    pub fn open(&self, post: Post) -> Result<Postman, Failure> {
        let courier = Courier::new(Policy::clone(&self.policy)).map_err(|error| {
            tracing::error!(%error, "TLS could not be set up");
            Failure::new(Code::Internal, "TLS could not be set up")
        })?;
        Ok(self.open_with(post, courier))
    }

    fn open_with(&self, post: Post, courier: Courier) -> Postman {
        let Post { ledger, outbox, clock, render, given_up } = post;
        let max_age = self.policy.max_age;
        let bench = Arc::new(Bench { ledger, outbox, clock, render, given_up, courier, max_age });
        let (stop, stopped) = watch::channel(false);
        let working = tokio::spawn(worker::work(bench, Arc::clone(&self.bell), stopped));
        Postman { stop, working }
    }

    /// The wall time, for new registrations.
    #[must_use]
    pub fn now(&self) -> chrono::DateTime<chrono::Utc> {
        self.clock.now()
    }

    /// Whether a target could be registered.
    ///
    /// # Errors
    /// `invalid-params` with what is wrong with it; no secret is repeated.
    pub fn check(&self, target: &PushTarget) -> Result<(), Failure> {
        check_url(&target.url.0, &self.policy)?;
        let credentials = target.authentication.as_ref();
        let scheme = credentials.map(|given| given.scheme.as_str());
        if scheme.is_some_and(|scheme| scheme.is_empty() || !scheme.bytes().all(is_of_a_scheme)) {
            return Err(wrong("has an authentication scheme that cannot be one"));
        }
        let secret = credentials.and_then(|given| given.credentials.as_ref());
        for secret in [secret, target.token.as_ref()].into_iter().flatten() {
            if secret.0.len() > LONGEST_SECRET || !fits_a_header(&secret.0) {
                return Err(wrong("has a token or credentials that do not fit into a header"));
            }
        }
        Ok(())
    }

    /// Registers a target that knows the events up to `known`, in place of one of the same id.
    ///
    /// # Errors
    /// When it is not one that may be told, or when it was not recorded.
    pub async fn set(&self, target: PushTarget, known: u64) -> Result<(), Failure> {
        self.check(&target)?;
        match self.outbox.set(target, known, TARGETS).await.map_err(|error| broken(&error))? {
            Placing::Placed => {
                self.bell.notify_one();
                Ok(())
            }
            Placing::Full => {
                let text = format!("there are {TARGETS} push configurations already; delete one");
                Err(Failure::new(Code::InvalidParams, text))
            }
            Placing::Unknown => {
                Err(Failure::new(Code::ExecutionUnknown, "there is no such execution"))
            }
        }
    }

    /// One target of an execution.
    ///
    /// # Errors
    /// When it could not be read.
    pub async fn get(&self, id: ExecutionId, target: &str) -> Result<Option<PushTarget>, Failure> {
        self.outbox.get(id, target).await.map_err(|error| broken(&error))
    }

    /// All targets of an execution, the oldest first.
    ///
    /// # Errors
    /// When they could not be read.
    pub async fn list(&self, id: ExecutionId) -> Result<Vec<PushTarget>, Failure> {
        self.outbox.list(id).await.map_err(|error| broken(&error))
    }

    /// Tells a target no more. Answers whether there was one.
    ///
    /// # Errors
    /// When it could not be recorded.
    pub async fn delete(&self, id: ExecutionId, target: &str) -> Result<bool, Failure> {
        self.outbox.delete(id, target).await.map_err(|error| broken(&error))
    }
}

impl Postman {
    /// Sends nothing new, and waits a little for what is on its way. The rest is sent after the
    /// next start.
    pub async fn stop(self) {
        self.stop.send_replace(true);
        if let Err(error) = self.working.await {
            tracing::error!(%error, "the postman had failed");
        }
    }
}

fn wrong(what: &str) -> Failure {
    Failure::new(Code::InvalidParams, format!("the push configuration {what}"))
}

fn is_of_a_scheme(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~+".contains(&byte)
}

fn broken(error: &LedgerError) -> Failure {
    tracing::error!(%error, "outbox failed");
    Failure::new(Code::LedgerUnavailable, "the push configurations could not be reached")
}

/// An error with its causes.
fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        _ = fmt::Write::write_fmt(&mut text, format_args!(": {inner}"));
        cause = inner.source();
    }
    text
}
