//! Duplicate cache of an agent: the requests of its unfinished executions, by their deduplication keys.
//!
//! The agent's actor answers a repeated request of an unfinished execution from this cache, without a write. Other
//! repetitions, those of executions that have ended or were accepted by an earlier process, are found by the ledger,
//! which compares the keys again in the transaction that records a request.

use std::collections::BTreeMap;

use crate::agent::queue::QueuedRequest;
use crate::model::access::endpoint_config::MessageIdPolicy;
use crate::model::agent::AgentSpec;
use crate::model::execution::ExecutionState;
use crate::model::execution::request::{Request, RequestIdentity, Trigger};
use crate::model::id::ExecutionId;
use crate::ports::ledger::AcceptResult;

/// Keyed digest that identifies a request.
type KeyDigest = [u8; 32];

/// Requests of the unfinished executions of an agent.
#[derive(Debug, Default)]
pub(super) struct DuplicateCache {
    /// Execution of each key, with the digest of the request's content.
    by_key: BTreeMap<KeyDigest, (ExecutionId, [u8; 32])>,
    by_execution: BTreeMap<ExecutionId, Vec<KeyDigest>>,
}

impl DuplicateCache {
    /// Adds the recorded request of a new execution. The answer to a question is no such request.
    pub(super) fn record(&mut self, id: ExecutionId, entry: &QueuedRequest, spec: &AgentSpec) {
        let is_new = entry.starting_point.state == ExecutionState::Idle;
        if let Some(request_identity) = entry.request_identity.filter(|_| is_new) {
            self.insert(
                id,
                identifying_keys(spec, &entry.request, &request_identity),
                request_identity.content_digest,
            );
        }
    }

    fn insert(&mut self, id: ExecutionId, keys: Vec<KeyDigest>, digest: [u8; 32]) {
        self.by_key.extend(keys.iter().map(|key| (*key, (id, digest))));
        self.by_execution.insert(id, keys);
    }

    /// Removes the request of an execution that has ended or waits for input.
    pub(super) fn remove(&mut self, id: ExecutionId) {
        for key in self.by_execution.remove(&id).unwrap_or_default() {
            if self.by_key.get(&key).is_some_and(|(known, _)| *known == id) {
                self.by_key.remove(&key);
            }
        }
    }

    /// Returns the result for a request; `None` if one of its keys is unknown here, because the ledger may know it.
    pub(super) fn find(
        &self,
        request: &Request,
        request_identity: &RequestIdentity,
        spec: &AgentSpec,
    ) -> Option<AcceptResult> {
        self.find_by_keys(
            &identifying_keys(spec, request, request_identity),
            request_identity.content_digest,
        )
    }

    fn find_by_keys(&self, keys: &[KeyDigest], digest: [u8; 32]) -> Option<AcceptResult> {
        let known: Option<Vec<_>> = keys.iter().map(|key| self.by_key.get(key).copied()).collect();
        AcceptResult::for_known_keys(&known?, digest)
    }
}

/// Returns the keys that identify a request. A message id that callers may reuse identifies nothing.
fn identifying_keys(
    spec: &AgentSpec,
    request: &Request,
    request_identity: &RequestIdentity,
) -> Vec<KeyDigest> {
    if has_reusable_message_id(spec, request) {
        request_identity.dedup_keys.idempotency_key.into_iter().collect()
    } else {
        request_identity.dedup_keys.iter().collect()
    }
}

/// Returns true if another message may have the message id of the request.
pub(super) fn has_reusable_message_id(spec: &AgentSpec, request: &Request) -> bool {
    spec.endpoint_config.message_id_policy == MessageIdPolicy::Reusable
        && request.origin.trigger == Trigger::Api
}

#[cfg(test)]
mod tests {
    use super::*;

    const MESSAGE: KeyDigest = [1; 32];
    const IDEMPOTENCY: KeyDigest = [2; 32];
    const DIGEST: [u8; 32] = [7; 32];

    #[test]
    fn a_repeated_request_is_known_until_its_execution_ends() {
        let (mut cache, id) = (DuplicateCache::default(), ExecutionId::generate());
        assert_eq!(cache.find_by_keys(&[MESSAGE], DIGEST), None);
        cache.insert(id, vec![MESSAGE, IDEMPOTENCY], DIGEST);
        for keys in [&[MESSAGE][..], &[IDEMPOTENCY], &[MESSAGE, IDEMPOTENCY]] {
            assert_eq!(cache.find_by_keys(keys, DIGEST), Some(AcceptResult::Duplicate(id)));
        }
        assert_eq!(cache.find_by_keys(&[MESSAGE], [8; 32]), Some(AcceptResult::Conflict));
        cache.remove(id);
        assert_eq!(cache.find_by_keys(&[MESSAGE], DIGEST), None);
        assert!(cache.by_key.is_empty() && cache.by_execution.is_empty());
    }

    #[test]
    fn the_ledger_decides_about_a_key_that_is_unknown_here() {
        let mut cache = DuplicateCache::default();
        cache.insert(ExecutionId::generate(), vec![MESSAGE], DIGEST);
        assert_eq!(cache.find_by_keys(&[MESSAGE, IDEMPOTENCY], DIGEST), None);
        assert_eq!(
            cache.find_by_keys(&[], DIGEST),
            None,
            "a request without a key is no duplicate"
        );
        cache.insert(ExecutionId::generate(), vec![IDEMPOTENCY], DIGEST);
        assert_eq!(
            cache.find_by_keys(&[MESSAGE, IDEMPOTENCY], DIGEST),
            Some(AcceptResult::Conflict)
        );
    }
}
