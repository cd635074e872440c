//! Client of language models: the port for completions, over the interface of `OpenAI` chat completions.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use algonius_actors::model::agent::model_provider::ModelProvider;
use algonius_actors::model::code::Code;
use algonius_actors::model::completion::{CompletionRequest, ModelReply};
use algonius_actors::model::failure::Failure;
use algonius_actors::ports::clock::Clock;
use algonius_actors::ports::completion::{CompletionClient, CompletionError};
use async_trait::async_trait;
use tokio::time::sleep;

use crate::platform::http_client::{self, OutgoingClient};
use chat_call::{CallFault, ChatCall};
use provider_limits::LimitRegistry;

mod chat_call;
mod chat_reply;
mod chat_request;
mod provider_limits;
#[cfg(test)]
mod tests;

/// Pauses before the repetitions of a call, after the first failure, the second, and so on.
const RETRY_BACKOFFS: [RetryBackoff; 3] = [
    RetryBackoff { after_fault: Duration::from_secs(1), after_rate_limit: Duration::from_secs(5) },
    RetryBackoff { after_fault: Duration::from_secs(2), after_rate_limit: Duration::from_secs(10) },
    RetryBackoff { after_fault: Duration::from_secs(4), after_rate_limit: Duration::from_secs(20) },
];

/// Longest pause that a provider may require; a longer one ends the call.
const MAX_REQUIRED_PAUSE: Duration = Duration::from_secs(60);

/// Pause before one repetition of a call.
#[derive(Debug, Clone, Copy)]
struct RetryBackoff {
    /// Pause after a fault of the network or of the provider.
    after_fault: Duration,
    /// Pause after a refusal for too many calls, if the provider requires none.
    after_rate_limit: Duration,
}

/// Connections and limits that the clients of all providers share. Cheap to clone.
#[derive(Clone)]
pub struct ModelConnections {
    http: OutgoingClient,
    limits: LimitRegistry,
    clock: Arc<dyn Clock>,
    backoffs: [RetryBackoff; RETRY_BACKOFFS.len()],
}

/// Client of one provider.
#[derive(Clone)]
pub struct ModelClient {
    connections: ModelConnections,
    provider: Arc<ModelProvider>,
}

impl ModelConnections {
    /// Returns connections that trust the built-in root certificates.
    ///
    /// # Errors
    /// Fails if TLS cannot be set up.
    pub fn new(clock: Arc<dyn Clock>) -> io::Result<Self> {
        let http = http_client::new_outgoing_client()?;
        Ok(Self { http, limits: LimitRegistry::default(), clock, backoffs: RETRY_BACKOFFS })
    }

    /// Returns a client. Clients of the same provider share its limits, also if the provider was read again.
    #[must_use]
    pub fn client(&self, provider: Arc<ModelProvider>) -> ModelClient {
        ModelClient { connections: self.clone(), provider }
    }
}

#[async_trait]
impl CompletionClient for ModelClient {
    async fn complete(&self, request: CompletionRequest) -> Result<ModelReply, CompletionError> {
        let call = ChatCall::new(&self.provider, &request).ok_or_else(|| {
            self.completion_error(
                Code::ModelUnavailable,
                "has an address or a key that cannot be sent",
            )
        })?;
        drop(request);
        let limits = self.connections.limits.find_or_create(&self.provider).await;
        let mut backoffs = self.connections.backoffs.into_iter();
        loop {
            let result = {
                let _permit = limits.acquire().await;
                call.send(&self.connections.http, self.connections.clock.as_ref()).await
            };
            match result {
                Ok(reply) => return Ok(reply),
                Err(fault) => sleep(self.retry_pause(fault, backoffs.next())?).await,
            }
        }
    }
}

impl fmt::Debug for ModelClient {
    /// Writes the name of the provider only.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelClient").field("provider", &self.provider.name).finish_non_exhaustive()
    }
}

impl ModelClient {
    /// Returns the pause between a fault and the next repetition.
    ///
    /// # Errors
    /// The result of the whole call if it is not repeated.
    fn retry_pause(
        &self,
        fault: CallFault,
        next_backoff: Option<RetryBackoff>,
    ) -> Result<Duration, CompletionError> {
        match fault {
            CallFault::UnusableReply(clause) => Err(CompletionError::Unusable(clause.to_owned())),
            CallFault::Refused { code, clause } => Err(self.completion_error(code, &clause)),
            CallFault::Transient { clause } => next_backoff
                .map(|next| next.after_fault)
                .ok_or_else(|| self.completion_error(Code::ModelUnavailable, &clause)),
            CallFault::RateLimited { until } => {
                let required = until.map(|until| until - self.connections.clock.now());
                let required = required.map(|pause| pause.to_std().unwrap_or_default());
                let pause = next_backoff.map(|next| required.unwrap_or(next.after_rate_limit));
                pause.filter(|pause| *pause <= MAX_REQUIRED_PAUSE).ok_or_else(|| {
                    let clause = "accepts no further calls now (status 429)";
                    let failure = self.provider_failure(Code::AgentRateLimited, clause);
                    CompletionError::Failed(match until {
                        Some(until) => failure.with_until(until),
                        None => failure,
                    })
                })
            }
        }
    }

    fn completion_error(&self, code: Code, clause: &str) -> CompletionError {
        CompletionError::Failed(self.provider_failure(code, clause))
    }

    /// Returns a failure whose sentence begins with the provider.
    fn provider_failure(&self, code: Code, clause: &str) -> Failure {
        Failure::new(code, format!("the provider `{}` {clause}", self.provider.name))
    }
}
