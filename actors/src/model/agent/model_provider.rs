//! Provider of language models: a service with the interface for chat completions.

use std::num::NonZeroU32;
use std::time::Duration;

use crate::model::push::Secret;

/// Validated provider, `[models.<prefix>]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelProvider {
    /// Prefix of its models in `model_id`.
    pub name: String,
    /// Base address of the interface, without a slash at its end.
    pub base_url: String,
    /// Key for `Authorization: Bearer`; `None` sends no credentials.
    pub api_key: Option<Secret>,
    /// Longest time of one reply.
    pub timeout: Duration,
    /// Number of calls that may be open at the same time.
    pub max_concurrent: NonZeroU32,
    /// Number of calls that may start within a minute; further calls wait.
    pub requests_per_minute: NonZeroU32,
}
