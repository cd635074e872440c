//! Rate limits of agents.

use std::collections::BTreeMap;

use algonius_actors::decide::access::rate_limit::{TokenBucket, admit_call};
use algonius_actors::model::agent::AgentSpec;
use algonius_actors::model::code::Code;
use algonius_actors::model::failure::Failure;
use algonius_actors::model::id::AgentId;
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::serve::http::response::EarlyRefusal;

/// Rate limits: the number of requests that each agent with a limit may still accept.
pub struct RateLimiter {
    buckets: Mutex<BTreeMap<AgentId, TokenBucket>>,
    started_at: Instant,
}

impl Default for RateLimiter {
    fn default() -> Self {
        Self { buckets: Mutex::default(), started_at: Instant::now() }
    }
}

impl RateLimiter {
    /// Counts a request to an agent.
    ///
    /// # Errors
    /// `rate-limited`.
    pub async fn try_acquire(&self, spec: &AgentSpec) -> Result<(), EarlyRefusal> {
        let Some(limit) = spec.endpoint_config.rate_limit else { return Ok(()) };
        let now = self.started_at.elapsed();
        // The lock is held for one decision and never across a wait.
        let mut buckets = self.buckets.lock().await;
        // An agent that was never called has its full burst.
        let bucket =
            buckets.get(&spec.id).copied().unwrap_or_else(|| TokenBucket::full(limit, now));
        let (bucket, result) = admit_call(bucket, now, limit);
        buckets.insert(spec.id.clone(), bucket);
        let message = "the agent accepts no more calls at present";
        result.map_err(|wait| EarlyRefusal {
            failure: Failure::new(Code::RateLimited, message),
            wait: Some(wait),
        })
    }
}
