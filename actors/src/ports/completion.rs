//! Port to language models.

use async_trait::async_trait;

use crate::model::completion::{CompletionRequest, ModelReply};
use crate::model::failure::Failure;

/// Reason why a completion has no reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CompletionError {
    /// The provider gave no reply: each repetition failed, or a repetition would fail too.
    Failed(Failure),
    /// The provider answered, but not with a reply: the answer is too long, or no completion. The text is a clause
    /// that follows "it", such as "is not a chat completion", and has no content of the answer.
    Unusable(String),
}

/// Language models. An implementation limits the length and the time of a reply, and repeats a call that a fault of
/// the network or of the provider prevented.
#[async_trait]
pub trait CompletionClient: Send + Sync + 'static {
    /// Requests a reply. A dropped future drops the request.
    ///
    /// # Errors
    /// Returns `Failed` with the failure of the run if the provider gave no reply, and `Unusable` if its answer is no
    /// reply.
    async fn complete(&self, request: CompletionRequest) -> Result<ModelReply, CompletionError>;
}
