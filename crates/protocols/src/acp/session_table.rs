//! Sessions of a connection by key and by native id.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde_json::Value;

use super::opening::SessionOpening;
use super::session::AcpSession;
use super::update;
use super::wire::OpenResult;
use crate::model::ids::SessionKey;
use crate::model::step::ProtocolStep;
use crate::turns::TurnCounts;

/// Greatest number of sessions whose updates are kept although their id is not known yet.
const MAX_EARLY_SESSIONS: usize = 64;
/// Greatest number of updates that are kept for each of them.
const MAX_EARLY_UPDATES: usize = 1000;
/// Greatest length of all these updates in bytes.
const MAX_EARLY_BYTES: usize = 16 << 20;

/// Open sessions, and the turns of all conversations.
#[derive(Debug, Default)]
pub(super) struct AcpSessionTable {
    open_sessions: BTreeMap<SessionKey, AcpSession>,
    keys_by_native_id: HashMap<String, SessionKey>,
    /// Turns by native id: a conversation can be closed and continued in one process.
    turns_by_native_id: HashMap<String, TurnCounts>,
    /// Updates that preceded the response to the request that opens the session.
    early_updates: HashMap<String, Vec<Value>>,
    /// Length in bytes of all updates that were kept so far.
    total_early_bytes: usize,
    /// True if an update found no room.
    has_dropped_update: bool,
    /// Native ids of closed sessions.
    closed_native_ids: HashSet<String>,
}

impl AcpSessionTable {
    pub(super) fn contains(&self, key: SessionKey) -> bool {
        self.open_sessions.contains_key(&key)
    }

    pub(super) fn key(&self, native_id: &str) -> Option<SessionKey> {
        self.keys_by_native_id.get(native_id).copied()
    }

    pub(super) fn find_mut(&mut self, key: SessionKey) -> Option<&mut AcpSession> {
        self.open_sessions.get_mut(&key)
    }

    /// Returns a session whose opening has ended.
    pub(super) fn find_ready_mut(&mut self, key: SessionKey) -> Option<&mut AcpSession> {
        self.open_sessions.get_mut(&key).filter(|session| session.is_ready())
    }

    pub(super) fn turns_mut(&mut self, native_id: &str) -> &mut TurnCounts {
        self.turns_by_native_id.entry(native_id.to_owned()).or_default()
    }

    /// Returns the turns of a conversation, if it had one.
    pub(super) fn turns_of(&self, native_id: &str) -> Option<&TurnCounts> {
        self.turns_by_native_id.get(native_id)
    }

    /// Returns all sessions with their native ids, and whether they are ready.
    pub(super) fn session_summaries(&self) -> Vec<(SessionKey, String, bool)> {
        let summary = |(key, session): (&SessionKey, &AcpSession)| {
            (*key, session.native_id.clone(), session.is_ready())
        };
        self.open_sessions.iter().map(summary).collect()
    }

    /// Adds a session; returns the updates that preceded its id. Updates before the response to `session/load` are
    /// the history of the conversation and are dropped.
    pub(super) fn insert(
        &mut self,
        opening: SessionOpening,
        native_id: String,
        result: &OpenResult,
    ) -> Vec<Value> {
        let is_history = opening.resume_id.is_some();
        let key = opening.session;
        self.closed_native_ids.remove(&native_id);
        self.keys_by_native_id.insert(native_id.clone(), key);
        let early_updates = self.early_updates.remove(&native_id).filter(|_| !is_history);
        self.open_sessions.insert(key, AcpSession::new(native_id, opening, result));
        early_updates.unwrap_or_default()
    }

    pub(super) fn remove(&mut self, key: SessionKey) {
        if let Some(session) = self.open_sessions.remove(&key) {
            self.keys_by_native_id.remove(&session.native_id);
            self.closed_native_ids.insert(session.native_id);
        }
    }

    /// Keeps an update of a session that is not known yet. Updates of closed sessions are dropped. Returns false for
    /// the first update that finds no room.
    pub(super) fn buffer_or_drop_update(&mut self, native_id: &str, update: Value) -> bool {
        if self.closed_native_ids.contains(native_id) || self.try_buffer_update(native_id, update) {
            return true;
        }
        std::mem::replace(&mut self.has_dropped_update, true)
    }

    fn try_buffer_update(&mut self, native_id: &str, update: Value) -> bool {
        let is_full = self.early_updates.len() >= MAX_EARLY_SESSIONS
            && !self.early_updates.contains_key(native_id);
        let total_early_bytes = self.total_early_bytes.saturating_add(update.to_string().len());
        if is_full || total_early_bytes > MAX_EARLY_BYTES {
            return false;
        }
        let updates = self.early_updates.entry(native_id.to_owned()).or_default();
        if updates.len() >= MAX_EARLY_UPDATES {
            return false;
        }
        updates.push(update);
        self.total_early_bytes = total_early_bytes;
        true
    }

    /// Handles an update of an open session.
    pub(super) fn handle_update(
        &mut self,
        key: SessionKey,
        update: &Value,
        is_codex: bool,
    ) -> Vec<ProtocolStep> {
        let Some(session) = self.open_sessions.get_mut(&key) else { return Vec::new() };
        let steps = update::apply_update(session, key, update, is_codex);
        session.release_or_hold(steps)
    }
}
