//! One turn of a program that takes one message after the other and marks the end of each answer.

use algonius_actors::model::code::Code;
use algonius_actors::model::failure::Failure;
use algonius_actors::model::program::stdio_protocol::{MessageTemplate, TurnEnd, TurnSpec};
use algonius_protocols::{LineItem, read_json_line};

use super::StdioStep;
use super::document_template::{render_document, render_text};
use crate::platform::template::ExecutionValues;

/// Greatest length of a line in bytes that may be an end mark; a longer line is never one.
const MAX_MARK_LINE_BYTES: usize = 1024 * 1024;

/// Progress of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TurnPhase {
    /// The program has not printed its first prompt yet, before which it reads nothing.
    Starting,
    Answering,
    Over,
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
    /// True if the line is too long to be an end mark.
    is_line_too_long: bool,
    /// True if the answer has any text so far.
    has_text: bool,
    /// True if the program wrote more together with the end mark.
    has_extra_output: bool,
}

impl MessageTurn {
    /// Returns a turn that sends the `values`; `number` counts the turns of the program from 0.
    pub(super) fn new(
        spec: &TurnSpec,
        values: &ExecutionValues,
        number: u64,
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
        let prompts_at_start = matches!(&end, TurnEnd::Prompt(prompt) if prompt.is_at_start);
        Ok(Self {
            pending_echo: if spec.echo { message.clone() } else { Vec::new() },
            message,
            interrupt_message,
            end,
            phase: if prompts_at_start && number == 0 {
                TurnPhase::Starting
            } else {
                TurnPhase::Answering
            },
            line: Vec::new(),
            is_line_too_long: false,
            has_text: false,
            has_extra_output: false,
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

    pub(super) fn receive(&mut self, bytes: &[u8]) -> Vec<StdioStep> {
        let mut steps = Vec::new();
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            if self.phase == TurnPhase::Over {
                self.has_extra_output |= !part.trim_ascii().is_empty();
                continue;
            }
            self.handle_part(part, &mut steps);
        }
        if self.phase != TurnPhase::Over && self.is_prompt() {
            self.handle_prompt(&mut steps);
        }
        steps
    }

    /// Returns true if the unfinished line ends with the prompt, with text of the answer before it. Only silence
    /// distinguishes it from the prompt.
    pub(super) fn may_be_over(&self) -> bool {
        self.phase != TurnPhase::Over
            && !self.is_line_too_long
            && self.text_before_prompt().is_some()
    }

    /// Ends the turn if the program has been silent since [`may_be_over`](Self::may_be_over).
    pub(super) fn conclude(&mut self) -> Vec<StdioStep> {
        let mut steps = Vec::new();
        if let Some(length) = self.text_before_prompt() {
            let text: Vec<_> = self.line.drain(..length).collect();
            if self.phase != TurnPhase::Starting {
                self.add_answer(text, &mut steps);
            }
            self.handle_prompt(&mut steps);
        }
        steps
    }

    /// Returns the failure of an end mark that came before the answer: the program continued writing after it.
    pub(super) fn early_end_failure(&self) -> Failure {
        let key = self.end.key();
        let message = format!(
            "the answer was empty because its end was found too early: the program continued writing \
             after the match of `turn.{key}`"
        );
        Failure::new(Code::EmptyAnswer, message)
    }

    /// Returns true if the turn ended without any text.
    pub(super) const fn is_empty(&self) -> bool {
        matches!(self.phase, TurnPhase::Over) && !self.has_text
    }

    /// Returns true if the program wrote more together with the end mark of the turn.
    pub(super) const fn has_extra_output(&self) -> bool {
        self.has_extra_output
    }

    fn handle_part(&mut self, part: &[u8], steps: &mut Vec<StdioStep>) {
        self.line.extend_from_slice(part);
        if part.ends_with(b"\n") {
            let line = std::mem::take(&mut self.line);
            let is_long =
                std::mem::take(&mut self.is_line_too_long) || line.len() > MAX_MARK_LINE_BYTES;
            if self.phase == TurnPhase::Starting || self.consume_echo(&line) {
                return;
            }
            let is_end = !is_long && self.is_end(&line);
            let is_content = !is_end || matches!(self.end, TurnEnd::Json(_));
            if is_content {
                self.add_answer(line, steps);
            }
            if is_end {
                self.phase = TurnPhase::Over;
                steps.push(StdioStep::End(None));
            }
        } else if self.is_line_too_long || self.line.len() > MAX_MARK_LINE_BYTES {
            // The line is part of the answer at any length, and only a bounded part of it is held.
            self.is_line_too_long = true;
            let text = std::mem::take(&mut self.line);
            if self.phase != TurnPhase::Starting {
                self.add_answer(text, steps);
            }
        }
    }

    fn add_answer(&mut self, text: Vec<u8>, steps: &mut Vec<StdioStep>) {
        self.has_text |= !text.trim_ascii().is_empty();
        // Adjacent pieces are merged into one: a piece for each line would make long answers slow to read.
        match steps.last_mut() {
            Some(StdioStep::Output(previous)) => previous.extend(text),
            _ => steps.push(StdioStep::Output(text)),
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
    fn is_prompt(&self) -> bool {
        matches!(&self.end, TurnEnd::Prompt(prompt) if self.line == prompt.text.as_bytes())
    }

    /// Returns the length of the text before a prompt that does not start its line.
    fn text_before_prompt(&self) -> Option<usize> {
        let TurnEnd::Prompt(prompt) = &self.end else { return None };
        let text = self.line.strip_suffix(prompt.text.as_bytes())?;
        (!text.is_empty()).then_some(text.len())
    }

    /// Handles a prompt, after which the program waits for input.
    fn handle_prompt(&mut self, steps: &mut Vec<StdioStep>) {
        self.line.clear();
        if self.phase == TurnPhase::Starting {
            self.phase = TurnPhase::Answering;
            steps.push(StdioStep::Write(std::mem::take(&mut self.message)));
        } else {
            self.phase = TurnPhase::Over;
            steps.push(StdioStep::End(None));
        }
    }

    fn is_end(&self, line: &[u8]) -> bool {
        let text = line.strip_suffix(b"\n").unwrap_or(line);
        let text = text.strip_suffix(b"\r").unwrap_or(text);
        match &self.end {
            TurnEnd::Line(end) => text == end.as_bytes(),
            TurnEnd::Regex(end) => end.is_match(&String::from_utf8_lossy(text)),
            TurnEnd::Json(members) => read_json_line(text).iter().any(|item| match item {
                LineItem::Object(found) => {
                    members.iter().all(|(name, it)| found.get(name) == Some(it))
                }
                LineItem::Unread(_) => false,
            }),
            TurnEnd::Prompt(_) => false,
        }
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

#[cfg(test)]
mod tests {
    use algonius_actors::model::program::stdio_protocol::Prompt;
    use proptest::prelude::*;
    use regex::Regex;
    use serde_json::json;

    use super::*;

    fn turn(end: TurnEnd, input: &str) -> Result<MessageTurn, Failure> {
        numbered_turn(end, input, false, 1)
    }

    /// Returns a turn with this number of a program that may echo the message.
    fn numbered_turn(
        end: TurnEnd,
        input: &str,
        echo: bool,
        number: u64,
    ) -> Result<MessageTurn, Failure> {
        let message = MessageTemplate::default_template();
        let values = ExecutionValues { input: input.to_owned(), ..ExecutionValues::default() };
        MessageTurn::new(&TurnSpec { message, end, interrupt: None, echo }, &values, number)
    }

    fn prompt(text: &str, is_at_start: bool) -> TurnEnd {
        TurnEnd::Prompt(Prompt { text: text.to_owned(), is_at_start })
    }

    /// Returns the answer bytes from chunked input, and true if the turn is over.
    fn received_end(end: TurnEnd, bytes: &[u8], size: usize) -> (Vec<u8>, bool) {
        let mut turn = turn(end, "").unwrap();
        let (mut all, mut is_over) = (Vec::new(), false);
        for step in bytes.chunks(size).flat_map(|piece| turn.receive(piece)) {
            match step {
                StdioStep::Output(bytes) if !is_over => all.extend(bytes),
                StdioStep::End(None) if !is_over => is_over = true,
                _ => panic!("something followed the end"),
            }
        }
        (all, is_over)
    }

    #[test]
    fn a_message_is_one_line_unless_configured_otherwise() {
        let end = || TurnEnd::Line("END".to_owned());
        assert_eq!(turn(end(), "hello\n").unwrap().take_first_bytes(), b"hello\n");
        assert_eq!(turn(end(), "two\nlines").map(|_| ()).unwrap_err().code, Code::InputRejected);
        let values =
            ExecutionValues { input: "two\n\"lines\"".to_owned(), ..ExecutionValues::default() };
        let message = MessageTemplate::Json(json!({"say": "{{ input }}"}));
        let spec = TurnSpec { message, end: end(), interrupt: None, echo: false };
        let written = MessageTurn::new(&spec, &values, 0).unwrap().take_first_bytes();
        assert_eq!(written, b"{\"say\":\"two\\n\\\"lines\\\"\"}\n");
    }

    #[test]
    fn each_kind_of_turn_end_is_recognized() {
        let line = TurnEnd::Line("END".to_owned());
        assert_eq!(
            received_end(line.clone(), b"a END\nEND\r\nrest\n", 99),
            (b"a END\n".to_vec(), true)
        );
        let regex = TurnEnd::Regex(Regex::new("^=+ done").unwrap());
        assert_eq!(received_end(regex, b"a\n=== done: 7\n", 99), (b"a\n".to_vec(), true));
        let json = TurnEnd::Json(json!({"type": "result"}).as_object().unwrap().clone());
        let text = b"{\"type\":\"text\"}\n{\"type\":\"result\",\"x\":1}\n".to_vec();
        assert_eq!(received_end(json, &text, 99), (text, true));
        assert!(!received_end(line, b"END", 1).1, "a line has an end");
    }

    #[test]
    fn a_prompt_on_its_own_line_ends_a_turn_at_once() {
        let end = || prompt("calc> ", true);
        for size in [1, 2, 99] {
            assert_eq!(
                received_end(end(), b"2\n4\ncalc> ", size),
                (b"2\n4\n".to_vec(), true),
                "{size}"
            );
        }
        let text = b"calc> is its prompt\ncalc> ";
        assert_eq!(received_end(end(), text, 99), (b"calc> is its prompt\n".to_vec(), true));
        assert!(
            !received_end(prompt("calc> ", true), b"4\ncalc>", 99).1,
            "the prompt is not whole"
        );
    }

    #[test]
    fn a_prompt_after_text_ends_a_turn_after_silence() {
        let mut turn = turn(prompt("> ", true), "x").unwrap();
        assert!(turn.receive(b"a > ").is_empty() && turn.may_be_over());
        assert!(
            matches!(&*turn.receive(b"b\nend> "), [StdioStep::Output(line)] if line == b"a > b\n")
        );
        assert!(turn.may_be_over());
        assert!(
            matches!(&*turn.conclude(), [StdioStep::Output(text), StdioStep::End(None)] if text == b"end")
        );
        assert!(!turn.may_be_over() && !turn.is_empty());
    }

    #[test]
    fn a_message_waits_for_the_first_prompt() {
        let mut turn = numbered_turn(prompt("> ", true), "1+1", false, 0).unwrap();
        assert!(turn.take_first_bytes().is_empty());
        assert!(turn.receive(b"Calculator 1.0\nType a sum.\n").is_empty());
        assert!(
            matches!(&*turn.receive(b"> "), [StdioStep::Write(message)] if message == b"1+1\n")
        );
        let steps = turn.receive(b"2\n> ");
        assert!(
            matches!(&*steps, [StdioStep::Output(line), StdioStep::End(None)] if line == b"2\n")
        );
        let mut silent = numbered_turn(prompt("> ", false), "1+1", false, 0).unwrap();
        assert_eq!(
            silent.take_first_bytes(),
            b"1+1\n",
            "it prints no prompt before the first message"
        );
    }

    #[test]
    fn an_echoed_message_is_not_part_of_the_answer() {
        let received_text = |output: &[u8]| {
            let mut turn = numbered_turn(prompt("> ", true), "select 1;", true, 1).unwrap();
            let steps = turn.receive(output);
            let mut text = Vec::new();
            for step in steps {
                if let StdioStep::Output(line) = step {
                    text.extend(line);
                }
            }
            text
        };
        assert_eq!(received_text(b"select 1;\r\n1\n> "), b"1\n");
        assert_eq!(received_text(b"1\nselect 1;\n> "), b"1\nselect 1;\n");
    }

    #[test]
    fn an_end_before_the_answer_names_its_configuration_key() {
        let mut turn = turn(TurnEnd::Regex(Regex::new("").unwrap()), "x").unwrap();
        turn.receive(b"\nthe answer\n");
        assert!(turn.is_empty() && turn.has_extra_output());
        let failure = turn.early_end_failure();
        assert_eq!(failure.code, Code::EmptyAnswer);
        assert!(failure.message.contains("`turn.end_regex`"), "{failure}");
    }

    #[test]
    fn a_line_over_the_limit_is_output_and_no_turn_end() {
        let regex = || TurnEnd::Regex(Regex::new("END$").unwrap());
        let long = [vec![b'x'; MAX_MARK_LINE_BYTES + 1], b"END\n".to_vec()].concat();
        assert_eq!(received_end(regex(), &long, 4096), (long, false));
    }

    proptest! {
        #[test]
        fn turns_do_not_depend_on_the_chunks(text in "[a\\nEND]{0,60}", size in 1_usize..70) {
            let end = || TurnEnd::Line("END".to_owned());
            let bytes = format!("{text}\nEND\n").into_bytes();
            prop_assert_eq!(received_end(end(), &bytes, size), received_end(end(), &bytes, bytes.len()));
        }
    }
}
