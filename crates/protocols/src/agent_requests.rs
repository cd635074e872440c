//! Requests of the agent: each id is used once, and each request receives one answer.

use std::collections::{HashMap, HashSet, VecDeque};

use serde_json::Value;

use crate::model::ids::{RequestId, SessionKey};

/// Request that waits for its answer. `T` is what the protocol needs to build the answer.
#[derive(Debug)]
pub(crate) struct UnansweredRequest<T> {
    pub(crate) id: RequestId,
    pub(crate) session: SessionKey,
    pub(crate) form: T,
}

/// Answer among the replayed lines.
#[derive(Debug)]
struct RecordedAnswer {
    /// Number of the sent line.
    line: u64,
    /// True if the answer rejects a second request with the same id.
    is_conflict: bool,
    /// Result in the form of the protocol.
    result: Value,
}

/// Open requests, used ids, and the answers of a replay.
#[derive(Debug)]
pub(crate) struct AgentRequestTable<T> {
    open: Vec<UnansweredRequest<T>>,
    used: HashSet<RequestId>,
    recorded: HashMap<RequestId, VecDeque<RecordedAnswer>>,
}

/// Result of the registration of an id.
pub(crate) enum IdClaim<T> {
    /// The id is new.
    First,
    /// The id was used before. The request that still waited under it is no longer open: an answer to it could be
    /// taken as an answer to the second request.
    Reused(Option<UnansweredRequest<T>>),
}

impl<T> Default for AgentRequestTable<T> {
    fn default() -> Self {
        Self { open: Vec::new(), used: HashSet::new(), recorded: HashMap::new() }
    }
}

impl<T> AgentRequestTable<T> {
    /// Records an answer of a replay.
    pub(crate) fn record_answer(
        &mut self,
        id: RequestId,
        line: u64,
        (is_conflict, result): (bool, Value),
    ) {
        let answer = RecordedAnswer { line, is_conflict, result };
        self.recorded.entry(id).or_default().push_back(answer);
    }

    /// Returns the result that the next request with this id received before the replay.
    pub(crate) fn recorded_result(&self, id: &RequestId) -> Option<&Value> {
        self.recorded.get(id)?.front().map(|answer| &answer.result)
    }

    /// Returns the number of the sent line that answered the next request with this id.
    pub(crate) fn recorded_line(&self, id: &RequestId) -> Option<u64> {
        let answer = self.recorded.get(id)?.front()?;
        (!answer.is_conflict).then_some(answer.line)
    }

    /// Returns whether a recorded answer shows that the request was open when its id was used again.
    pub(crate) fn is_recorded_as_open(&self, id: &RequestId) -> bool {
        let next_answer = self.recorded.get(id).and_then(VecDeque::front);
        next_answer.is_some_and(|answer| answer.is_conflict)
    }

    /// Takes the recorded answer to a request; returns whether there was one, so that none must be sent.
    pub(crate) fn take_recorded(&mut self, id: &RequestId) -> bool {
        let Some(answers) = self.recorded.get_mut(id) else { return false };
        let is_recorded = answers.pop_front().is_some();
        if answers.is_empty() {
            self.recorded.remove(id);
        }
        is_recorded
    }

    /// Registers the id of a request.
    pub(crate) fn claim(&mut self, id: &RequestId) -> IdClaim<T> {
        if self.used.insert(id.clone()) {
            return IdClaim::First;
        }
        IdClaim::Reused(self.close(id))
    }

    pub(crate) fn open(&mut self, request: UnansweredRequest<T>) {
        self.open.push(request);
    }

    pub(crate) fn find(&self, id: &RequestId) -> Option<&UnansweredRequest<T>> {
        self.open.iter().find(|request| request.id == *id)
    }

    pub(crate) fn close(&mut self, id: &RequestId) -> Option<UnansweredRequest<T>> {
        let index = self.open.iter().position(|request| request.id == *id)?;
        Some(self.open.remove(index))
    }

    /// Removes and returns the open requests of a session, oldest first.
    pub(crate) fn close_session(&mut self, session: SessionKey) -> Vec<UnansweredRequest<T>> {
        self.open.extract_if(.., |request| request.session == session).collect()
    }
}
