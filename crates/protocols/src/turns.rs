//! Turns of one conversation, counted in a way that a replay can repeat.

use std::collections::BTreeSet;

/// Counts of prompts and ends.
///
/// A replay knows all sent lines before the first received one, so "a turn is in progress" is no fact of its own: it
/// depends on how many prompts were sent before a certain sent line, and how many ends were received.
#[derive(Debug, Default)]
pub(crate) struct TurnCounts {
    /// Numbers of the sent lines that are prompts.
    prompt_line_numbers: Vec<u64>,
    ended_turn_count: usize,
    /// Turns, from 1, for which a cancellation was sent.
    cancelled_turns: BTreeSet<usize>,
}

impl TurnCounts {
    /// Records that the sent line with this number is a prompt.
    pub(crate) fn record_prompt(&mut self, line_number: u64) {
        self.prompt_line_numbers.push(line_number);
    }

    /// Records that the cancellation of the latest prompt was sent.
    pub(crate) fn record_cancel(&mut self) {
        self.cancelled_turns.insert(self.prompt_line_numbers.len());
    }

    /// Records that the oldest turn without an end ended; returns false if there is none.
    pub(crate) fn try_end_turn(&mut self) -> bool {
        let is_running = self.is_running();
        self.ended_turn_count += usize::from(is_running);
        is_running
    }

    /// Ends the turn that was in progress when the line with this number was sent (`None`: now); returns the number of
    /// its prompt.
    pub(crate) fn end_turn_at_line(&mut self, line_number: Option<u64>) -> Option<u64> {
        let is_open_at_line = self.is_turn_open_at_line(line_number);
        let prompt_line = self
            .prompt_line_numbers
            .get(self.ended_turn_count)
            .copied()
            .filter(|_| is_open_at_line);
        self.ended_turn_count += usize::from(prompt_line.is_some());
        prompt_line
    }

    /// Returns whether a prompt has no end yet.
    pub(crate) fn is_running(&self) -> bool {
        self.prompt_line_numbers.len() > self.ended_turn_count
    }

    /// Returns whether a request was received during a turn. `answer_line` is the number of the sent line that answered
    /// the request: a request outside of a turn is answered at once, thus before the next prompt.
    pub(crate) fn is_turn_open_at_line(&self, answer_line: Option<u64>) -> bool {
        let is_before = |line: &u64| answer_line.is_none_or(|answer_line| *line < answer_line);
        self.prompt_line_numbers.partition_point(is_before) > self.ended_turn_count
    }

    /// Returns whether the turn in progress is being cancelled.
    pub(crate) fn is_cancelling(&self) -> bool {
        self.is_running() && self.cancelled_turns.contains(&(self.ended_turn_count + 1))
    }
}
