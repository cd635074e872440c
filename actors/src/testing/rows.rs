//! The rows of the ledger in memory.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};

use crate::model::budget::Charge;
use crate::model::event::{Channel, Chunk, Event, Fact, Span, Speaker};
use crate::model::execution::{Fence, Outcome, Stamp, State};
use crate::model::id::{AgentId, ExecutionId, PrincipalId};
use crate::model::principal::Token;
use crate::model::record::Record;
use crate::model::workspace::Workspace;
use crate::ports::ledger::Accept;
use crate::report::pieces;

/// All rows.
#[derive(Default)]
pub(super) struct Rows {
    pub(super) executions: BTreeMap<ExecutionId, Row>,
    pub(super) tokens: Vec<Token>,
    pub(super) breaches: Vec<String>,
}

/// One execution.
pub(super) struct Row {
    pub(super) record: Record,
    /// The keys under which it is known, each with the digest of what was asked.
    pub(super) keys: Vec<([u8; 32], [u8; 32])>,
    pub(super) content: Option<[u8; 32]>,
    /// What its latest claim took.
    pub(super) workspace: Option<Workspace>,
    pub(super) events: Vec<Event>,
    pub(super) chunks: Vec<Chunk>,
    pub(super) settle_calls: usize,
}

impl Rows {
    /// The one that was asked the same: what has completed before what is under way, and of that
    /// the first.
    pub(super) fn equal(&self, accept: &Accept) -> Option<ExecutionId> {
        let (key, after, before) = accept.window()?;
        let is_equal = |row: &&Row| {
            let at = row.record.accepted_at;
            row.content == Some(key) && at > after && at < before && row.record.stamp.turn == 1
        };
        let equal: Vec<_> = self.executions.values().filter(is_equal).collect();
        let completed = |row: &&&Row| row.record.outcome == Some(Outcome::Completed);
        let under_way =
            |row: &&&Row| row.record.outcome.is_none() && row.record.state != State::Waiting;
        let found = equal.iter().rev().find(completed).or_else(|| equal.iter().find(under_way));
        found.map(|row| row.record.id)
    }

    /// Whether another message of its conversation is at work, or came before it and is to be.
    pub(super) fn has_earlier(&self, id: ExecutionId) -> bool {
        let Some(Row { record: mine, .. }) = self.executions.get(&id) else { return false };
        self.executions.values().any(|row| {
            let Record { owner, agent, context, outcome, state, answered, .. } = &row.record;
            let is_of_it = (owner, agent, context) == (&mine.owner, &mine.agent, &mine.context);
            let waits = matches!(state, State::Idle | State::Failed) || *answered;
            let is_before = row.record.id < id && outcome.is_none() && waits;
            is_of_it && (row.is_at_work(id) || is_before)
        })
    }

    /// The execution that is known to its owner under a key.
    pub(super) fn known(
        &self,
        owner: PrincipalId,
        agent: &AgentId,
        key: [u8; 32],
    ) -> Option<(ExecutionId, [u8; 32])> {
        let of_caller = |row: &&Row| row.record.owner == owner && row.record.agent == *agent;
        self.executions.values().filter(of_caller).find_map(|row| {
            let known = row.keys.iter().find(|(known, _)| *known == key);
            known.map(|(_, digest)| (row.record.id, *digest))
        })
    }
}

impl Row {
    pub(super) fn new(accept: Accept) -> Self {
        let stamp = Stamp::FIRST;
        let record = Record {
            id: accept.id,
            agent: accept.agent,
            owner: accept.owner,
            message: accept.message,
            context: accept.context,
            trigger: accept.trigger,
            trace: accept.trace,
            access: accept.access,
            state: State::Idle,
            outcome: None,
            failure: None,
            stamp,
            fence: Fence::default(),
            params: accept.params,
            overrides: accept.overrides,
            replayable: accept.replayable,
            answered: false,
            parked: None,
            spent: Charge::default(),
            accepted_at: accept.at,
            started_at: None,
            changed_at: accept.at,
            ended_at: None,
            pid: None,
            exit_code: None,
            last_event: 0,
        };
        let content = accept.content.map(|(key, _)| key);
        let keys = accept.keys.each().map(|key| (key, accept.digest)).collect();
        let (message, pieces) = (record.message.0.clone(), accept.pieces);
        let (events, chunks) = (Vec::new(), Vec::new());
        let (workspace, settle_calls) = (None, 0);
        let mut row = Self { record, keys, content, workspace, events, chunks, settle_calls };
        row.take_input(stamp, &accept.input);
        row.append(
            accept.at,
            Fact::Said { speaker: Speaker::Caller, message, pieces },
            &mut Vec::new(),
        );
        row
    }

    /// Whether it is another one than this, and holds what it claimed.
    pub(super) fn is_at_work(&self, than: ExecutionId) -> bool {
        let Record { id, state, outcome, .. } = &self.record;
        *id != than && outcome.is_none() && matches!(state, State::Starting | State::Running)
    }

    pub(super) fn take_input(&mut self, stamp: Stamp, input: &str) {
        let (channel, mut offset) = (Channel::Input, 0);
        for (number, text) in (0..).zip(pieces(input)) {
            let length = text.len() as u64;
            self.chunks.push(Chunk { stamp, channel, number, offset, text });
            offset += length;
        }
    }

    pub(super) fn append(&mut self, at: DateTime<Utc>, fact: Fact, breaches: &mut Vec<String>) {
        match &fact {
            Fact::Moved(moved) => {
                if moved.from != self.record.state || !moved.from.may_become(moved.to) {
                    let is = self.record.state;
                    breaches.push(format!("{} moves from {is} by {moved:?}", self.record.id));
                }
                self.record.state = moved.to;
                self.record.stamp = moved.stamp;
                self.record.changed_at = moved.at;
            }
            Fact::Spawned { pid } => self.record.pid = Some(*pid),
            Fact::AttemptFailed(failure) => self.record.failure = Some(failure.clone()),
            Fact::Parked(parked) => self.record.parked = Some(*parked),
            Fact::Charged { charge, .. } => self.record.spent = self.record.spent.plus(*charge),
            Fact::Said { .. }
            | Fact::Artifact { .. }
            | Fact::Used { .. }
            | Fact::Stepped { .. }
            | Fact::Stopped { .. }
            | Fact::Heartbeat(_)
            | Fact::Spent(_)
            | Fact::Session { .. }
            | Fact::Truncated { .. }
            | Fact::Expiring { .. }
            | Fact::Discontinued { .. }
            | Fact::Checked { .. }
            | Fact::Warned { .. } => {}
        }
        self.record.last_event += 1;
        self.events.push(Event { number: self.record.last_event, at, fact });
    }

    pub(super) fn text(&self, span: Span) -> String {
        let fits = |chunk: &&Chunk| (chunk.stamp, chunk.channel) == (span.stamp, span.channel);
        let mut chunks: Vec<_> = self.chunks.iter().filter(fits).collect();
        chunks.sort_by_key(|chunk| chunk.offset);
        let bytes = chunks.into_iter().flat_map(|chunk| chunk.text.bytes());
        let index = |at: u64| usize::try_from(at).unwrap_or(usize::MAX);
        let length = index(span.to.saturating_sub(span.from));
        let bytes: Vec<u8> = bytes.skip(index(span.from)).take(length).collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}
