//! One turn of a program that takes one message after the other and marks the end of each answer.

#[cfg(test)]
mod tests;

use algonius_actors::model::code::Code;
use algonius_actors::model::failure::Failure;
use algonius_actors::model::program::stdio_protocol::{MessageTemplate, TurnEnd, TurnSpec};
use algonius_protocols::{LineItem, read_json_line};
use serde_json::{Map, Value};

use super::StdioAction;
use super::document_template::{render_document, render_text};
use crate::platform::template::ExecutionValues;

/// Length in bytes from which on an unfinished line is passed on in pieces, unless an end mark needs the whole line.
const LINE_SPLIT_THRESHOLD_BYTES: usize = 1 << 20;

/// Bytes of a line end, `\r\n`.
const LINE_END_BYTES: usize = 2;

/// Progress of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TurnPhase {
    /// The program has not printed its first prompt yet, before which it reads nothing.
    Starting,
    Answering,
    Over,
}

/// Result of a search for the end of a turn in a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EndMatch {
    None,
    End,
    /// The line has more values than are read, and may be the end.
    PossibleEnd,
}

/// Turn of a program.
pub(in crate::drivers) struct MessageTurn {
    message: Vec<u8>,
    interrupt_message: Option<Vec<u8>>,
    end: TurnEnd,
    phase: TurnPhase,
    /// Remainder of the echoed message that has not arrived yet.
    pending_echo: Vec<u8>,
    /// Line that has no end yet.
    line: Vec<u8>,
    /// True if the beginning of the line was passed on already.
    is_line_split: bool,
    /// Greatest length in bytes of a line that is searched for an end mark.
    max_line_bytes: usize,
    /// True if the answer has any text so far.
    has_text: bool,
    /// True if the program wrote more together with the end mark.
    has_output_after_end: bool,
}

impl MessageTurn {
    /// Returns a turn that sends the `values`; `turn_number` counts the turns of the program from 0. A longer line than
    /// `max_line_bytes` fails a turn whose end is an expression or an object.
    pub(super) fn new(
        spec: &TurnSpec,
        values: &ExecutionValues,
        turn_number: u64,
        max_line_bytes: usize,
    ) -> Result<Self, Failure> {
        // The program would take the second line for another message.
        if spec.message.is_default_template()
            && values.input.trim_end_matches('\n').contains(['\n', '\r'])
        {
            let reason = "the agent accepts only messages of one line";
            return Err(Failure::new(Code::InputRejected, reason));
        }
        let interrupt_message =
            spec.interrupt.as_ref().map(|template| render_message(template, values)).transpose()?;
        let message = render_message(&spec.message, values)?;
        let end = spec.end.clone();
        let prompts_at_start =
            matches!(&end, TurnEnd::Prompt(prompt) if prompt.is_printed_at_startup);
        Ok(Self {
            pending_echo: if spec.echoes_messages { message.clone() } else { Vec::new() },
            message,
            interrupt_message,
            end,
            phase: if prompts_at_start && turn_number == 0 {
                TurnPhase::Starting
            } else {
                TurnPhase::Answering
            },
            line: Vec::new(),
            is_line_split: false,
            max_line_bytes,
            has_text: false,
            has_output_after_end: false,
        })
    }

    /// Returns the message, or no bytes while the program has not printed its first prompt.
    pub(super) fn take_first_bytes(&mut self) -> Vec<u8> {
        if self.phase == TurnPhase::Starting {
            Vec::new()
        } else {
            std::mem::take(&mut self.message)
        }
    }

    pub(super) fn interrupt_bytes(&self) -> Option<Vec<u8>> {
        self.interrupt_message.clone()
    }

    pub(super) fn receive(&mut self, bytes: &[u8]) -> Vec<StdioAction> {
        let mut actions = Vec::new();
        for line_chunk in bytes.split_inclusive(|byte| *byte == b'\n') {
            if self.phase == TurnPhase::Over {
                self.has_output_after_end |= !line_chunk.trim_ascii().is_empty();
                continue;
            }
            self.handle_line_chunk(line_chunk, &mut actions);
        }
        if self.phase != TurnPhase::Over && self.is_at_prompt() {
            self.handle_prompt(&mut actions);
        }
        actions
    }

    /// Returns true if the unfinished line ends with the prompt, with text of the answer before it. Only silence
    /// distinguishes it from the prompt.
    pub(super) fn may_be_over(&self) -> bool {
        self.phase != TurnPhase::Over && self.length_before_prompt().is_some()
    }

    /// Ends the turn if the program has been silent since [`may_be_over`](Self::may_be_over).
    pub(super) fn end_on_silence(&mut self) -> Vec<StdioAction> {
        let mut actions = Vec::new();
        if let Some(length) = self.length_before_prompt() {
            let text: Vec<_> = self.line.drain(..length).collect();
            if self.phase != TurnPhase::Starting {
                self.add_answer(text, &mut actions);
            }
            self.handle_prompt(&mut actions);
        }
        actions
    }

    /// Returns the failure of an end mark that came before the answer: the program continued writing after it.
    pub(super) fn premature_end_mark_failure(&self) -> Failure {
        let key = self.end.config_key();
        let message = format!(
            "the answer was empty because its end was found too early: the program continued writing \
             after the match of `turn.{key}`"
        );
        Failure::new(Code::EmptyAnswer, message)
    }

    /// Returns true if the turn ended without any text.
    pub(super) const fn has_ended_without_text(&self) -> bool {
        matches!(self.phase, TurnPhase::Over) && !self.has_text
    }

    /// Returns true if the program wrote more after the end mark of the turn.
    pub(super) const fn has_output_after_end(&self) -> bool {
        self.has_output_after_end
    }

    fn handle_line_chunk(&mut self, line_chunk: &[u8], actions: &mut Vec<StdioAction>) {
        self.line.extend_from_slice(line_chunk);
        if self.line.len() > self.max_held_bytes() {
            if self.needs_whole_lines() {
                let reason = format!("is longer than {} bytes", self.max_line_bytes);
                return self.fail_unsearchable_line(&reason, actions);
            }
            self.split_line(actions);
        }
        if line_chunk.ends_with(b"\n") {
            self.handle_line(actions);
        }
    }

    fn handle_line(&mut self, actions: &mut Vec<StdioAction>) {
        let line = std::mem::take(&mut self.line);
        let is_split = std::mem::take(&mut self.is_line_split);
        if self.phase == TurnPhase::Starting || self.consume_echo(&line) {
            return;
        }
        let line_match = if is_split { EndMatch::None } else { self.match_end(&line) };
        if line_match == EndMatch::PossibleEnd {
            return self.fail_unsearchable_line("has too many values to be read", actions);
        }
        let is_end = line_match == EndMatch::End;
        let is_content = !is_end || matches!(self.end, TurnEnd::Json(_));
        if is_content {
            self.add_answer(line, actions);
        }
        if is_end {
            self.phase = TurnPhase::Over;
            actions.push(StdioAction::End(None));
        }
    }

    /// Passes on the beginning of a line that is longer than any line end of the turn, without the bytes that may be
    /// the beginning of a prompt.
    fn split_line(&mut self, actions: &mut Vec<StdioAction>) {
        self.is_line_split = true;
        if self.phase != TurnPhase::Starting {
            self.pending_echo.clear();
        }
        let held_bytes = match &self.end {
            TurnEnd::Prompt(prompt) => prompt.text.len(),
            _ => 0,
        };
        let text: Vec<_> = self.line.drain(..self.line.len().saturating_sub(held_bytes)).collect();
        if self.phase != TurnPhase::Starting {
            self.add_answer(text, actions);
        }
    }

    /// Fails the turn, whose end may be in a line that is too long to be searched. Without the failure the turn would
    /// wait for an end that has passed.
    fn fail_unsearchable_line(&mut self, reason: &str, actions: &mut Vec<StdioAction>) {
        self.line.clear();
        self.phase = TurnPhase::Over;
        let key = self.end.config_key();
        let message =
            format!("a line of the answer {reason}, and a match of `turn.{key}` may be in it");
        actions.push(StdioAction::Desynchronized(Failure::new(Code::OutputUnreadable, message)));
    }

    /// Returns true if the end of the turn can be anywhere in a line of any length.
    const fn needs_whole_lines(&self) -> bool {
        matches!(self.end, TurnEnd::Regex(_) | TurnEnd::Json(_))
    }

    /// Returns the greatest number of bytes of a line that are held: more are no end of the turn, and no echo.
    fn max_held_bytes(&self) -> usize {
        let longest_mark = match &self.end {
            TurnEnd::Regex(_) | TurnEnd::Json(_) => return self.max_line_bytes,
            TurnEnd::Line(end) => end.len(),
            TurnEnd::Prompt(prompt) => prompt.text.len(),
        };
        longest_mark
            .max(self.pending_echo.len())
            .saturating_add(LINE_END_BYTES)
            .max(LINE_SPLIT_THRESHOLD_BYTES)
    }

    fn add_answer(&mut self, text: Vec<u8>, actions: &mut Vec<StdioAction>) {
        self.has_text |= !text.trim_ascii().is_empty();
        // Adjacent pieces are merged into one: a piece for each line would make long answers slow to read.
        match actions.last_mut() {
            Some(StdioAction::Output(previous)) => previous.extend(text),
            _ => actions.push(StdioAction::Output(text)),
        }
    }

    /// Returns true if a line is the next one of the echoed message. After the first different line, all lines belong
    /// to the answer.
    fn consume_echo(&mut self, line: &[u8]) -> bool {
        let trimmed_length = |line: &[u8]| line.trim_ascii_end().len();
        let next =
            self.pending_echo.split_inclusive(|byte| *byte == b'\n').next().unwrap_or_default();
        let length = next.len();
        let is_same =
            length > 0 && next.get(..trimmed_length(next)) == line.get(..trimmed_length(line));
        if is_same {
            self.pending_echo.drain(..length);
        } else {
            self.pending_echo.clear();
        }
        is_same
    }

    /// Returns true if the unfinished line is the prompt and nothing else.
    fn is_at_prompt(&self) -> bool {
        !self.is_line_split
            && matches!(&self.end, TurnEnd::Prompt(prompt) if self.line == prompt.text.as_bytes())
    }

    /// Returns the length of the text before a prompt that does not start its line.
    fn length_before_prompt(&self) -> Option<usize> {
        let TurnEnd::Prompt(prompt) = &self.end else { return None };
        let text = self.line.strip_suffix(prompt.text.as_bytes())?;
        (self.is_line_split || !text.is_empty()).then_some(text.len())
    }

    /// Handles a prompt, after which the program waits for input.
    fn handle_prompt(&mut self, actions: &mut Vec<StdioAction>) {
        self.line.clear();
        self.is_line_split = false;
        if self.phase == TurnPhase::Starting {
            self.phase = TurnPhase::Answering;
            actions.push(StdioAction::Write(std::mem::take(&mut self.message)));
        } else {
            self.phase = TurnPhase::Over;
            actions.push(StdioAction::End(None));
        }
    }

    fn match_end(&self, line: &[u8]) -> EndMatch {
        let text = line.strip_suffix(b"\n").unwrap_or(line);
        let text = text.strip_suffix(b"\r").unwrap_or(text);
        let is_end = match &self.end {
            TurnEnd::Line(end) => text == end.as_bytes(),
            TurnEnd::Regex(end) => end.is_match(&String::from_utf8_lossy(text)),
            TurnEnd::Json(members) => return match_members(members, text),
            TurnEnd::Prompt(_) => false,
        };
        if is_end { EndMatch::End } else { EndMatch::None }
    }
}

/// Searches a line for an object with these members.
fn match_members(members: &Map<String, Value>, line: &[u8]) -> EndMatch {
    let has_members =
        |object: &Value| members.iter().all(|(name, value)| object.get(name) == Some(value));
    // The values can have other forms in the text.
    let names_members =
        |text: &str| members.iter().all(|(name, _)| text.contains(&format!("\"{name}\"")));
    let items = read_json_line(line);
    let is_end = |item: &LineItem| matches!(item, LineItem::Object(object) if has_members(object));
    let is_possible_end = |item: &LineItem| matches!(item, LineItem::UnreadableText(unread) if unread.exceeds_limit() && names_members(&unread.text));
    match () {
        () if items.iter().any(is_end) => EndMatch::End,
        () if items.iter().any(is_possible_end) => EndMatch::PossibleEnd,
        () => EndMatch::None,
    }
}

fn render_message(
    template: &MessageTemplate,
    values: &ExecutionValues,
) -> Result<Vec<u8>, Failure> {
    match template {
        _ if template.is_default_template() => {
            Ok(format!("{}\n", values.input.trim_end_matches('\n')).into_bytes())
        }
        MessageTemplate::Text(text) => render_text(text, values).map(String::into_bytes),
        MessageTemplate::Json(document) => {
            Ok(format!("{}\n", render_document(document, values)?).into_bytes())
        }
    }
}
