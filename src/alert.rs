//! Alert hooks: webhook requests and programs that receive alerts.
//!
//! The queue of alerts and the rate of hook calls are bounded: the source of an alert never waits.

mod command;
mod webhook;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use algonius_actors::decide::access::rate_limit::{TokenBucket, admit_call};
use algonius_actors::model::access::endpoint_config::RateLimit;
use algonius_actors::model::failure::Failure;
use algonius_actors::model::observation::alert::{Alert, AlertPhase};
use algonius_actors::model::push::Secret;
use algonius_warden::ProgramLauncher;
use command::AlertCommand;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use webhook::Webhook;

use crate::push::DeliveryPolicy;

/// Greatest number of queued alerts.
pub const ALERT_QUEUE_CAPACITY: usize = 64;

/// Number of attempts per alert and hook.
const MAX_ATTEMPTS: u32 = 3;

/// Step of the pause before a retry; it is multiplied by the number of the attempt.
const BACKOFF_STEP: Duration = Duration::from_secs(1);

/// Rate of hook calls: a burst at once, one per two seconds in the long run.
const HOOK_RATE_LIMIT: RateLimit = RateLimit { per_second: 0.5, burst: 20 };

/// Receivers of alerts.
#[derive(Debug, Clone, Default)]
pub struct HookSettings {
    /// URL of the webhook.
    pub webhook_url: Option<Secret>,
    /// Secret that signs the body.
    pub signing_secret: Option<Secret>,
    /// Program with its arguments.
    pub command: Option<(PathBuf, Vec<String>)>,
}

/// Alert that was raised or cleared.
pub type AlertNotice = (AlertPhase, Alert);

/// Function that removes the secrets from a text.
pub type RedactFunction = Arc<dyn Fn(&str) -> String + Send + Sync>;

/// Task that calls the hooks until it is stopped.
pub struct AlertDispatcher(JoinHandle<()>);

/// Configured hooks.
struct AlertHooks {
    webhook: Option<Webhook>,
    command: Option<AlertCommand>,
}

impl AlertDispatcher {
    /// Starts to dispatch alerts.
    ///
    /// # Errors
    /// Fails if the URL is not a permitted target, or if TLS cannot be set up.
    pub fn start(
        hooks: HookSettings,
        policy: DeliveryPolicy,
        (launcher, redact): (Arc<dyn ProgramLauncher>, RedactFunction),
        notices: mpsc::Receiver<AlertNotice>,
    ) -> Result<Self, Failure> {
        let HookSettings { webhook_url, signing_secret, command } = hooks;
        let webhook =
            webhook_url.map(|url| Webhook::new(url, signing_secret, policy)).transpose()?;
        let command =
            command.map(|(program, args)| AlertCommand { program, args, launcher, redact });
        let hooks = AlertHooks { webhook, command };
        Ok(Self(tokio::spawn(hooks.dispatch(notices))))
    }

    /// Stops the dispatch. The log has the alerts that were not delivered.
    pub fn stop(self) {
        self.0.abort();
    }
}

impl AlertHooks {
    async fn dispatch(self, mut notices: mpsc::Receiver<AlertNotice>) {
        let started_at = Instant::now();
        let mut bucket = TokenBucket::full(HOOK_RATE_LIMIT, Duration::ZERO);
        while let Some((phase, alert)) = notices.recv().await {
            // Without a bound, an alert that flaps would start programs without end.
            let (next_bucket, admission) =
                admit_call(bucket, started_at.elapsed(), HOOK_RATE_LIMIT);
            bucket = next_bucket;
            if admission.is_err() {
                let cause = alert.cause.as_str();
                tracing::warn!(cause, "alert rate exceeded: alert is not sent to hooks");
                continue;
            }
            let body = encode_alert_body(phase, &alert);
            // Both at once: a webhook that does not respond must not delay the program.
            tokio::join!(self.call_webhook(&body), self.run_command(&body));
        }
    }

    async fn call_webhook(&self, body: &[u8]) {
        let Some(webhook) = &self.webhook else { return };
        for attempt in 1..=MAX_ATTEMPTS {
            match webhook.send(body).await {
                Ok(()) => return,
                Err(error) => tracing::warn!(%error, attempt, "alert did not reach the webhook"),
            }
            tokio::time::sleep(BACKOFF_STEP * attempt).await;
        }
    }

    async fn run_command(&self, body: &[u8]) {
        let Some(command) = &self.command else { return };
        for attempt in 1..=MAX_ATTEMPTS {
            match command.run_once(body).await {
                Ok(()) => return,
                Err(error) => tracing::warn!(%error, attempt, "alert did not reach the command"),
            }
            tokio::time::sleep(BACKOFF_STEP * attempt).await;
        }
    }
}

/// Returns the JSON object of an alert for hooks.
fn encode_alert_body(phase: AlertPhase, alert: &Alert) -> Vec<u8> {
    let Alert { cause, subject, since, value, limit } = alert;
    let version = env!("CARGO_PKG_VERSION");
    let document = serde_json::json!({
        "event": phase, "cause": cause, "subject": subject, "since": since, "value": value,
        "limit": limit, "service": {"name": "algonius-supervisor", "version": version},
    });
    document.to_string().into_bytes()
}
