//! Callers that submit and wait independently of the test.

use tokio::sync::watch;

use super::fixtures::{caller, text_request};
use super::{TEST_TIMEOUT, TestTree};
use crate::agent::SubmitReply;
use crate::gateway::requests::RequestHandle;
use crate::model::code::Code;
use crate::model::execution::progress::Progress;
use crate::model::execution::record::ExecutionRecord;
use crate::model::failure::Failure;
use crate::model::id::ExecutionId;
use crate::ports::ledger::Ledger;

/// Result of a caller that submits and waits for the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallerResult {
    /// The request was rejected.
    Refused(Code),
    /// The request was accepted, and the execution has ended.
    Ended(ExecutionId),
    /// The request was accepted, and then a guarantee was violated.
    Violation(ExecutionId, &'static str),
}

impl TestTree {
    /// Returns a future that submits a text under a message id and waits for the end.
    pub fn submit_and_wait(
        &self,
        agent: &str,
        message_id: &str,
        text: &str,
    ) -> impl Future<Output = CallerResult> + Send + use<> {
        let (requests, ledger) = (self.api.requests.clone(), self.ledger.clone());
        let (caller, request) = (caller(), text_request(agent, message_id, text));
        async move {
            let SubmitReply { execution, progress_receiver, .. } =
                match requests.submit(&caller, request).await {
                    Ok(reply) => reply,
                    Err(failure) => return CallerResult::Refused(failure.code),
                };
            let read_record = async || ledger.execution(execution).await.ok().flatten();
            let Some(record) = read_record().await else {
                return CallerResult::Violation(execution, "its id precedes its record");
            };
            let wait = wait_until_settled(&requests, &record, progress_receiver);
            if tokio::time::timeout(TEST_TIMEOUT, wait).await.is_err() {
                return CallerResult::Violation(execution, "its end is not reported");
            }
            match read_record().await.and_then(|record| record.outcome) {
                Some(_) => CallerResult::Ended(execution),
                None => CallerResult::Violation(execution, "its end precedes its record"),
            }
        }
    }

    /// Returns a future that submits a text and waits once.
    ///
    /// # Errors
    /// Returns the rejection, or the reason why the wait failed.
    pub fn submit_and_wait_once(
        &self,
        agent: &str,
        message_id: &str,
        text: &str,
    ) -> impl Future<Output = Result<(), Failure>> + Send + use<> {
        let requests = self.api.requests.clone();
        let (caller, request) = (caller(), text_request(agent, message_id, text));
        async move {
            let agent = request.agent.clone();
            let SubmitReply { execution, progress_receiver, .. } =
                requests.submit(&caller, request).await?;
            requests.wait_for_end_or_question(&agent, execution, progress_receiver).await.map(drop)
        }
    }
}

/// Waits like a caller that retries while the end cannot be recorded.
pub(super) async fn wait_until_settled(
    requests: &RequestHandle,
    record: &ExecutionRecord,
    progress: Option<watch::Receiver<Progress>>,
) {
    while requests
        .wait_for_end_or_question(&record.agent, record.id, progress.clone())
        .await
        .is_err()
    {}
}
