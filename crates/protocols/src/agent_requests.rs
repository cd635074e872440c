//! Requests of the agent: each id is used once, and each request receives one answer.

use std::collections::{HashMap, HashSet, VecDeque};

use serde_json::Value;

use crate::model::ids::{RequestId, SessionKey};

/// Request that waits for its answer. `T` is what the protocol needs to build the answer.
#[derive(Debug)]
pub(crate) struct UnansweredRequest<T> {
    pub(crate) id: RequestId,
    pub(crate) session: SessionKey,
    pub(crate) answer_context: T,
}

/// Answer among the replayed lines.
#[derive(Debug)]
struct RecordedAnswer {
    /// Number of the sent line.
    line_number: u64,
    /// True if the answer rejects a second request with the same id.
    rejects_reused_id: bool,
    /// Result in the form of the protocol.
    result: Value,
}

/// Open requests, used ids, and the answers of a replay.
#[derive(Debug)]
pub(crate) struct AgentRequestTable<T> {
    open_requests: Vec<UnansweredRequest<T>>,
    used_ids: HashSet<RequestId>,
    recorded_answers: HashMap<RequestId, VecDeque<RecordedAnswer>>,
}

/// Result of the registration of an id.
pub(crate) enum IdRegistration<T> {
    /// The id is new.
    First,
    /// The id was used before. The request that still waited under it is no longer open: an answer to it could be
    /// taken as an answer to the second request.
    Reused(Option<UnansweredRequest<T>>),
}

impl<T> Default for AgentRequestTable<T> {
    fn default() -> Self {
        Self {
            open_requests: Vec::new(),
            used_ids: HashSet::new(),
            recorded_answers: HashMap::new(),
        }
    }
}

impl<T> AgentRequestTable<T> {
    /// Records an answer of a replay.
    pub(crate) fn record_answer(
        &mut self,
        id: RequestId,
        line_number: u64,
        (rejects_reused_id, result): (bool, Value),
    ) {
        let answer = RecordedAnswer { line_number, rejects_reused_id, result };
        self.recorded_answers.entry(id).or_default().push_back(answer);
    }

    /// Returns the result that the next request with this id received before the replay.
    pub(crate) fn recorded_result(&self, id: &RequestId) -> Option<&Value> {
        self.recorded_answers.get(id)?.front().map(|answer| &answer.result)
    }

    /// Returns the number of the sent line that answered the next request with this id.
    pub(crate) fn recorded_answer_line(&self, id: &RequestId) -> Option<u64> {
        let answer = self.recorded_answers.get(id)?.front()?;
        (!answer.rejects_reused_id).then_some(answer.line_number)
    }

    /// Returns whether a recorded answer shows that the request was open when its id was used again.
    pub(crate) fn has_recorded_id_rejection(&self, id: &RequestId) -> bool {
        let next_answer = self.recorded_answers.get(id).and_then(VecDeque::front);
        next_answer.is_some_and(|answer| answer.rejects_reused_id)
    }

    /// Takes the recorded answer to a request; returns whether there was one, so that none must be sent.
    pub(crate) fn consume_recorded_answer(&mut self, id: &RequestId) -> bool {
        let Some(answers) = self.recorded_answers.get_mut(id) else { return false };
        let is_recorded = answers.pop_front().is_some();
        if answers.is_empty() {
            self.recorded_answers.remove(id);
        }
        is_recorded
    }

    /// Registers the id of a request.
    pub(crate) fn register_id(&mut self, id: &RequestId) -> IdRegistration<T> {
        if self.used_ids.insert(id.clone()) {
            return IdRegistration::First;
        }
        IdRegistration::Reused(self.remove_request(id))
    }

    pub(crate) fn insert(&mut self, request: UnansweredRequest<T>) {
        self.open_requests.push(request);
    }

    pub(crate) fn find(&self, id: &RequestId) -> Option<&UnansweredRequest<T>> {
        self.open_requests.iter().find(|request| request.id == *id)
    }

    pub(crate) fn remove_request(&mut self, id: &RequestId) -> Option<UnansweredRequest<T>> {
        let index = self.open_requests.iter().position(|request| request.id == *id)?;
        Some(self.open_requests.remove(index))
    }

    /// Removes and returns the open requests of a session, oldest first.
    pub(crate) fn remove_requests_of(&mut self, session: SessionKey) -> Vec<UnansweredRequest<T>> {
        self.open_requests.extract_if(.., |request| request.session == session).collect()
    }
}
