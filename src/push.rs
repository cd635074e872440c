//! Push notifications: the registered targets of executions and the delivery.
//!
//! Each event that callers see is delivered to each target at least once and in order, even over restarts: the row
//! of a target contains the number of the last delivered event.

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use algonius_actors::model::access::endpoint_config::ProtocolVersion;
use algonius_actors::model::code::Code;
use algonius_actors::model::failure::Failure;
use algonius_actors::model::id::ExecutionId;
use algonius_actors::model::push::PushTarget;
use algonius_actors::ports::clock::Clock;
use algonius_actors::ports::ledger::{Ledger, LedgerError};
use algonius_actors::ports::push_target_store::{PushTargetStore, RegistrationResult};
use ipnet::IpNet;
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;
use tokio_rustls::rustls::pki_types::CertificateDer;

use delivery_worker::WorkerContext;
use webhook_client::is_header_value;

pub use url::check_url;
pub use webhook_client::{WebhookClient, WebhookError, WebhookRequest};

mod address_policy;
mod delivery_worker;
mod url;
mod webhook_client;

#[cfg(test)]
mod tests;

/// Maximum number of targets of one execution.
pub const MAX_TARGETS: u32 = 10;

/// Maximum length of a token, a scheme or credentials, in bytes.
const MAX_SECRET_BYTES: usize = 4096;

/// Policy for allowed addresses and for the duration of attempts.
#[derive(Debug, Clone)]
pub struct DeliveryPolicy {
    /// Networks that may be addressed although they are not public, also over plain HTTP.
    pub allowed_networks: Vec<IpNet>,
    /// True if plain HTTP is allowed for all other addresses.
    pub allows_http: bool,
    /// Maximum duration of one attempt.
    pub timeout: Duration,
    /// Maximum age of a notification up to which delivery is attempted.
    pub max_retry_duration: Duration,
    /// Certificate authorities that are trusted in addition to the built-in ones.
    pub certificate_authorities: Vec<CertificateDer<'static>>,
}

/// Result of a [`NotificationBodyFn`].
pub type NotificationBodyFuture =
    Pin<Box<dyn Future<Output = Result<Option<Vec<u8>>, Failure>> + Send>>;

/// Function that writes the body of a notification about an event, in the form of a protocol version; `None` if that
/// version has no update for the event. The last event for which the function is called is the change to the
/// clean-up, by which time the execution has its outcome.
pub type NotificationBodyFn =
    Arc<dyn Fn(ExecutionId, ProtocolVersion, u64) -> NotificationBodyFuture + Send + Sync>;

/// Dependencies of the push worker.
pub struct PushContext {
    /// Ledger with the events.
    pub ledger: Arc<dyn Ledger>,
    /// Store of the targets.
    pub target_store: Arc<dyn PushTargetStore>,
    /// Clock of the service.
    pub clock: Arc<dyn Clock>,
    /// Function that writes the body of a notification.
    pub render_body: NotificationBodyFn,
    /// Callback for each abandoned target, with the number of its failures.
    pub on_target_abandoned: Arc<dyn Fn(u32) + Send + Sync>,
}

/// Registry of push targets. Cheap to clone.
#[derive(Clone)]
pub struct PushRegistry {
    target_store: Arc<dyn PushTargetStore>,
    clock: Arc<dyn Clock>,
    policy: Arc<DeliveryPolicy>,
    wakeup: Arc<Notify>,
}

/// Handle of the task that delivers notifications until it is stopped.
pub struct PushWorker {
    stop_sender: watch::Sender<bool>,
    join_handle: JoinHandle<()>,
}

impl PushRegistry {
    /// Creates a registry under a policy.
    #[must_use]
    pub fn new(
        target_store: Arc<dyn PushTargetStore>,
        clock: Arc<dyn Clock>,
        policy: DeliveryPolicy,
    ) -> Self {
        Self { target_store, clock, policy: Arc::new(policy), wakeup: Arc::default() }
    }

    /// Starts the delivery of pending and future notifications.
    ///
    /// # Errors
    /// Fails if TLS cannot be set up.
    pub fn start_worker(&self, context: PushContext) -> Result<PushWorker, Failure> {
        let webhook_client =
            WebhookClient::new(DeliveryPolicy::clone(&self.policy)).map_err(|error| {
                tracing::error!(%error, "TLS could not be set up");
                Failure::new(Code::Internal, "TLS could not be set up")
            })?;
        Ok(self.start_worker_with_client(context, webhook_client))
    }

    fn start_worker_with_client(
        &self,
        context: PushContext,
        webhook_client: WebhookClient,
    ) -> PushWorker {
        let PushContext { ledger, target_store, clock, render_body, on_target_abandoned } = context;
        let max_retry_duration = self.policy.max_retry_duration;
        let context = Arc::new(WorkerContext {
            ledger,
            target_store,
            clock,
            render_body,
            on_target_abandoned,
            client: webhook_client,
            max_retry_duration,
        });
        let (stop_sender, stop_receiver) = watch::channel(false);
        let join_handle =
            tokio::spawn(delivery_worker::run(context, Arc::clone(&self.wakeup), stop_receiver));
        PushWorker { stop_sender, join_handle }
    }

    /// Returns the wall-clock time for new registrations.
    #[must_use]
    pub fn now(&self) -> chrono::DateTime<chrono::Utc> {
        self.clock.now()
    }

    /// Checks that a target can be registered.
    ///
    /// # Errors
    /// `invalid-params` with the fault; the message contains no secret.
    pub fn validate_target(&self, target: &PushTarget) -> Result<(), Failure> {
        check_url(&target.url.0, &self.policy)?;
        let credentials = target.authentication.as_ref();
        let scheme = credentials.map(|auth| auth.scheme.as_str());
        if scheme.is_some_and(|scheme| scheme.is_empty() || !scheme.bytes().all(is_scheme_byte)) {
            return Err(invalid_config("has an authentication scheme that cannot be one"));
        }
        let secret = credentials.and_then(|auth| auth.credentials.as_ref());
        for secret in [secret, target.token.as_ref()].into_iter().flatten() {
            if secret.0.len() > MAX_SECRET_BYTES || !is_header_value(&secret.0) {
                return Err(invalid_config(
                    "has a token or credentials that do not fit into a header",
                ));
            }
        }
        Ok(())
    }

    /// Registers a target that already has the events up to `last_omitted_event`, or replaces the one with the same id.
    ///
    /// # Errors
    /// Fails if the address is not allowed, or if the target cannot be recorded.
    pub async fn register(
        &self,
        target: PushTarget,
        last_omitted_event: u64,
    ) -> Result<(), Failure> {
        self.validate_target(&target)?;
        match self
            .target_store
            .register(target, last_omitted_event, MAX_TARGETS)
            .await
            .map_err(|error| target_store_failure(&error))?
        {
            RegistrationResult::Registered => {
                self.wakeup.notify_one();
                Ok(())
            }
            RegistrationResult::Full => {
                let message =
                    format!("there are {MAX_TARGETS} push configurations already; delete one");
                Err(Failure::new(Code::InvalidParams, message))
            }
            RegistrationResult::ExecutionMissing => {
                Err(Failure::new(Code::ExecutionUnknown, "there is no such execution"))
            }
        }
    }

    /// Returns one target of an execution.
    ///
    /// # Errors
    /// Fails if the target cannot be read.
    pub async fn get(&self, id: ExecutionId, target: &str) -> Result<Option<PushTarget>, Failure> {
        self.target_store.get(id, target).await.map_err(|error| target_store_failure(&error))
    }

    /// Returns all targets of an execution, oldest first.
    ///
    /// # Errors
    /// Fails if the targets cannot be read.
    pub async fn list(&self, id: ExecutionId) -> Result<Vec<PushTarget>, Failure> {
        self.target_store.list(id).await.map_err(|error| target_store_failure(&error))
    }

    /// Removes a target. Returns true if it existed.
    ///
    /// # Errors
    /// Fails if the removal cannot be recorded.
    pub async fn delete(&self, id: ExecutionId, target: &str) -> Result<bool, Failure> {
        self.target_store.delete(id, target).await.map_err(|error| target_store_failure(&error))
    }
}

impl PushWorker {
    /// Stops the delivery after a short wait for running requests. The rest is delivered after the next start.
    pub async fn stop(self) {
        self.stop_sender.send_replace(true);
        if let Err(error) = self.join_handle.await {
            tracing::error!(%error, "push worker had failed");
        }
    }
}

fn invalid_config(fault: &str) -> Failure {
    Failure::new(Code::InvalidParams, format!("the push configuration {fault}"))
}

fn is_scheme_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~+".contains(&byte)
}

fn target_store_failure(error: &LedgerError) -> Failure {
    tracing::error!(%error, "outbox failed");
    Failure::new(Code::LedgerUnavailable, "the push configurations could not be reached")
}

/// Returns the message of an error with its causes.
fn error_chain_text(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        _ = fmt::Write::write_fmt(&mut text, format_args!(": {inner}"));
        cause = inner.source();
    }
    text
}
