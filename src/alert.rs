//! Hooks: who is told of alerts outside, by a request to an address and by a program.
//!
//! What waits to be told is bounded, and so is how often anybody is: who raises an alert waits for
//! nobody.

mod command;
mod webhook;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use algonius_actors::decide::rate::{Bucket, step};
use algonius_actors::model::alert::{Alert, Turn};
use algonius_actors::model::exposure::RateLimit;
use algonius_actors::model::failure::Failure;
use algonius_actors::model::push::Secret;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::push::Policy;
use crate::warden::Warden;
use command::Command;
use webhook::Webhook;

/// Alerts that may wait to be told.
pub const WAITING: usize = 64;

/// How often one alert is tried at one hook.
const TRIES: u32 = 3;

/// The pause before it is tried again, which grows with each try.
const PAUSE: Duration = Duration::from_secs(1);

/// How often hooks are told: a few at once, one in two seconds in the long run.
const RATE: RateLimit = RateLimit { per_second: 0.5, burst: 20 };

/// Who is told.
#[derive(Debug, Clone, Default)]
pub struct Hooks {
    /// An address.
    pub webhook: Option<Secret>,
    /// What the body is signed with.
    pub secret: Option<Secret>,
    /// A program and its arguments.
    pub command: Option<(PathBuf, Vec<String>)>,
}

/// An alert that has begun or is over.
pub type Told = (Turn, Alert);

/// Tells hooks until it is stopped.
pub struct Herald(JoinHandle<()>);

/// What a herald works with.
struct Desk {
    webhook: Option<Webhook>,
    command: Option<Command>,
}

impl Herald {
    /// Begins to tell what comes.
    ///
    /// # Errors
    /// When the address is not one that may be told, or TLS cannot be set up.
    pub fn begin(
        hooks: Hooks,
        policy: Policy,
        warden: Arc<dyn Warden>,
        coming: mpsc::Receiver<Told>,
    ) -> Result<Self, Failure> {
        let Hooks { webhook, secret, command } = hooks;
        let webhook = webhook.map(|url| Webhook::new(url, secret, policy)).transpose()?;
        let command = command.map(|(program, args)| Command { program, args, warden });
        let desk = Desk { webhook, command };
        Ok(Self(tokio::spawn(desk.work(coming))))
    }

    /// Tells nobody any more. What was not told is in the log.
    pub fn stop(self) {
        self.0.abort();
    }
}

impl Desk {
    async fn work(self, mut coming: mpsc::Receiver<Told>) {
        let begun = Instant::now();
        let mut bucket = Bucket::full(RATE, Duration::ZERO);
        while let Some((turn, alert)) = coming.recv().await {
            let (next, verdict) = step(bucket, begun.elapsed(), RATE);
            bucket = next;
            if verdict.is_err() {
                let cause = alert.cause.as_str();
                tracing::warn!(cause, "hooks were told too often: this alert is told to none");
                continue;
            }
            let body = body(turn, &alert);
            tokio::join!(self.call(&body), self.run(&body));
        }
    }

    async fn call(&self, body: &[u8]) {
        let Some(webhook) = &self.webhook else { return };
        for attempt in 1..=TRIES {
            match webhook.tell(body).await {
                Ok(()) => return,
                Err(error) => tracing::warn!(%error, attempt, "alert did not reach the webhook"),
            }
            tokio::time::sleep(PAUSE * attempt).await;
        }
    }

    async fn run(&self, body: &[u8]) {
        let Some(command) = &self.command else { return };
        for attempt in 1..=TRIES {
            match command.tell(body).await {
                Ok(()) => return,
                Err(error) => tracing::warn!(%error, attempt, "alert did not reach the command"),
            }
            tokio::time::sleep(PAUSE * attempt).await;
        }
    }
}

/// An alert as hooks read it: one object of JSON.
fn body(turn: Turn, alert: &Alert) -> Vec<u8> {
    let Alert { cause, subject, since, value, limit } = alert;
    let version = env!("CARGO_PKG_VERSION");
    let shown = serde_json::json!({
        "event": turn, "cause": cause, "subject": subject, "since": since, "value": value,
        "limit": limit, "service": {"name": "algonius-supervisor", "version": version},
    });
    shown.to_string().into_bytes()
}
