//! Latest message of a program, which is the answer unless another one follows.

use super::event_line::ProgramEvent;
use super::line_conversion::reported_failure;

/// Latest message.
#[derive(Default)]
pub(super) struct DraftMessage {
    text: String,
    /// Bytes of the message that were reported. Leading blanks are held back until other text follows, because a blank
    /// message is no message.
    reported_bytes: usize,
    /// True if the program has written the whole message, so that more text is another message.
    is_complete: bool,
    /// True if an earlier message was accepted as the answer. Text after it is reported only if it is accepted too: a
    /// program may write more after its end.
    is_after_answer: bool,
}

impl DraftMessage {
    /// Takes more of the message, or the start of the next one if the latest is complete.
    pub(super) fn extend(&mut self, text: &str) -> Vec<ProgramEvent> {
        if text.is_empty() {
            return Vec::new();
        }
        let superseded = self.supersede_if_complete();
        self.text.push_str(text);
        superseded.into_iter().chain(self.take_reportable()).collect()
    }

    /// Records that the program has written the whole message.
    pub(super) const fn mark_complete(&mut self) {
        self.is_complete = true;
    }

    /// Returns true if the program has written a part of a message, and not its end.
    pub(super) const fn is_unfinished(&self) -> bool {
        !self.is_complete && !self.text.is_empty()
    }

    /// Takes a whole message, whose start may be known.
    pub(super) fn set_whole_message(&mut self, text: &str) -> Vec<ProgramEvent> {
        let events = self.replace_text(text);
        self.is_complete = !self.text.is_empty();
        events
    }

    /// Takes the current text of the message. Text that does not start with the latest message is another message.
    pub(super) fn replace_text(&mut self, text: &str) -> Vec<ProgramEvent> {
        match text.strip_prefix(&*self.text).filter(|_| !self.is_complete) {
            Some(more) => self.extend(more),
            None => {
                let superseded = self.supersede();
                superseded.into_iter().chain(self.extend(text)).collect()
            }
        }
    }

    /// Resets the draft if its message is complete, because text of another one follows.
    fn supersede_if_complete(&mut self) -> Option<ProgramEvent> {
        if self.is_complete { self.supersede() } else { None }
    }

    /// Resets the draft if its message is complete or was accepted, because another message was lost. The answer would
    /// have been that one.
    pub(super) fn handle_lost_message(&mut self) -> Option<ProgramEvent> {
        if !self.is_after_answer {
            return self.supersede_if_complete();
        }
        *self = Self::default();
        Some(ProgramEvent::DraftSuperseded)
    }

    /// Resets the draft, because another message follows. Returns an event if any of the latest message was reported.
    pub(super) fn supersede(&mut self) -> Option<ProgramEvent> {
        let is_reported = self.reported_bytes > 0;
        *self = Self { is_after_answer: self.is_after_answer, ..Self::default() };
        is_reported.then_some(ProgramEvent::DraftSuperseded)
    }

    /// Accepts the latest message as the answer.
    pub(super) fn accept(&mut self) -> Vec<ProgramEvent> {
        if self.text.is_empty() {
            return Vec::new();
        }
        let superseded = self.is_after_answer.then_some(ProgramEvent::DraftSuperseded);
        let last_piece = self.take_unreported();
        *self = Self { is_after_answer: true, ..Self::default() };
        superseded.into_iter().chain(last_piece).chain([ProgramEvent::DraftAccepted]).collect()
    }

    /// Accepts this text, which the program marks as its answer. It usually equals the latest message.
    pub(super) fn accept_text(&mut self, answer: &str) -> Vec<ProgramEvent> {
        self.is_complete = false; // An answer that is only longer continues the message.
        let events = self.set_whole_message(answer);
        events.into_iter().chain(self.accept()).collect()
    }

    /// Accepts the latest message as the answer if the program has finished it, and reports a failure otherwise.
    pub(super) fn accept_or_fail(&mut self) -> Vec<ProgramEvent> {
        if self.is_unfinished() {
            let message = "the answer was cut off: its last message has no end";
            return vec![ProgramEvent::Failed(reported_failure(message, None))];
        }
        self.accept()
    }

    fn take_reportable(&mut self) -> Option<ProgramEvent> {
        let is_blank = self.reported_bytes == 0 && self.text.trim().is_empty();
        if is_blank || self.is_after_answer { None } else { self.take_unreported() }
    }

    fn take_unreported(&mut self) -> Option<ProgramEvent> {
        let text = self.text.get(self.reported_bytes..).unwrap_or_default().to_owned();
        self.reported_bytes = self.text.len();
        (!text.is_empty()).then_some(ProgramEvent::DraftText { text })
    }
}
