//! Turns of one conversation, counted in a way that a replay can repeat.

use std::collections::BTreeSet;

/// Counts of prompts and ends.
///
/// A replay knows all sent lines before the first received one, so "a turn is in progress" is no fact of its own: it
/// depends on how many prompts were sent before a certain sent line, and how many ends were received.
#[derive(Debug, Default)]
pub(crate) struct TurnCounts {
    /// Numbers of the sent lines that are prompts.
    prompts: Vec<u64>,
    ended: usize,
    /// Turns, from 1, for which a cancellation was sent.
    cancelled: BTreeSet<usize>,
}

impl TurnCounts {
    /// Records that the sent line with this number is a prompt.
    pub(crate) fn record_prompt(&mut self, line: u64) {
        self.prompts.push(line);
    }

    /// Records that the cancellation of the latest prompt was sent.
    pub(crate) fn record_cancel(&mut self) {
        self.cancelled.insert(self.prompts.len());
    }

    /// Records that the oldest turn without an end ended; returns false if there is none.
    pub(crate) fn record_end(&mut self) -> bool {
        let is_running = self.is_running();
        self.ended += usize::from(is_running);
        is_running
    }

    /// Ends the turn that was in progress when the line with this number was sent (`None`: now); returns the number of its
    /// prompt.
    pub(crate) fn record_loss(&mut self, line: Option<u64>) -> Option<u64> {
        let is_running = self.contains_request(line);
        let prompt = self.prompts.get(self.ended).copied().filter(|_| is_running);
        self.ended += usize::from(prompt.is_some());
        prompt
    }

    /// Returns whether a prompt has no end yet.
    pub(crate) fn is_running(&self) -> bool {
        self.prompts.len() > self.ended
    }

    /// Returns whether a request was received during a turn. `answer` is the number of the sent line that answered the
    /// request: a request outside of a turn is answered at once, thus before the next prompt.
    pub(crate) fn contains_request(&self, answer: Option<u64>) -> bool {
        let is_before = |line: &u64| answer.is_none_or(|answer| *line < answer);
        self.prompts.partition_point(is_before) > self.ended
    }

    /// Returns whether the turn in progress is being cancelled.
    pub(crate) fn is_cancelling(&self) -> bool {
        self.is_running() && self.cancelled.contains(&(self.ended + 1))
    }
}
