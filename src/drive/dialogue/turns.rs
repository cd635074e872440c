//! One turn of a program that takes one message after the other, and says when its answer is over.

use algonius_actors::model::code::Code;
use algonius_actors::model::dialogue::{TurnEnd, TurnSpec, Utterance};
use algonius_actors::model::failure::Failure;
use serde_json::{Map, Value};

use super::Step;
use super::fill::{fill, fill_text};
use crate::template::Values;

/// The longest line that may be an end; a longer one is none.
const LONGEST: usize = 1024 * 1024;

/// A turn.
pub(in crate::drive) struct Turns {
    message: Vec<u8>,
    interrupt: Option<Vec<u8>>,
    end: TurnEnd,
    /// The line that has no end yet.
    line: Vec<u8>,
    /// Whether it is too long to be an end.
    is_long: bool,
    is_over: bool,
}

impl Turns {
    /// The turn that says what `values` hold.
    pub(super) fn of(spec: &TurnSpec, values: &Values) -> Result<Self, Failure> {
        if spec.message.is_usual() && values.input.trim_end_matches('\n').contains(['\n', '\r']) {
            let why = "the agent takes a message as one line, and this one has several";
            return Err(Failure::new(Code::InputRejected, why));
        }
        let interrupt = spec.interrupt.as_ref().map(|said| written(said, values)).transpose()?;
        let message = written(&spec.message, values)?;
        let end = spec.end.clone();
        Ok(Self { message, interrupt, end, line: Vec::new(), is_long: false, is_over: false })
    }

    pub(super) fn open(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.message)
    }

    pub(super) fn interrupt(&self) -> Option<Vec<u8>> {
        self.interrupt.clone()
    }

    pub(super) fn hear(&mut self, bytes: &[u8]) -> Vec<Step> {
        let mut steps = Vec::new();
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            if self.is_over {
                break;
            }
            self.take(part, &mut steps);
        }
        steps
    }

    fn take(&mut self, part: &[u8], steps: &mut Vec<Step>) {
        self.line.extend_from_slice(part);
        if part.ends_with(b"\n") {
            let line = std::mem::take(&mut self.line);
            let is_long = std::mem::take(&mut self.is_long) || line.len() > LONGEST;
            let is_end = !is_long && self.is_end(&line);
            let is_content = !is_end || matches!(self.end, TurnEnd::Json(_));
            steps.extend(is_content.then_some(Step::Hear(line)));
            if is_end {
                self.is_over = true;
                steps.push(Step::End(None));
            }
        } else if self.is_long || self.line.len() > LONGEST {
            self.is_long = true;
            steps.push(Step::Hear(std::mem::take(&mut self.line)));
        }
    }

    fn is_end(&self, line: &[u8]) -> bool {
        let text = line.strip_suffix(b"\n").unwrap_or(line);
        let text = text.strip_suffix(b"\r").unwrap_or(text);
        match &self.end {
            TurnEnd::Line(end) => text == end.as_bytes(),
            TurnEnd::Regex(end) => end.is_match(&String::from_utf8_lossy(text)),
            TurnEnd::Json(members) => serde_json::from_slice::<Map<String, Value>>(text)
                .is_ok_and(|found| members.iter().all(|(name, it)| found.get(name) == Some(it))),
        }
    }
}

fn written(said: &Utterance, values: &Values) -> Result<Vec<u8>, Failure> {
    match said {
        usual if usual.is_usual() => {
            Ok(format!("{}\n", values.input.trim_end_matches('\n')).into_bytes())
        }
        Utterance::Text(text) => fill_text(text, values).map(String::into_bytes),
        Utterance::Json(document) => Ok(format!("{}\n", fill(document, values)?).into_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use regex::Regex;
    use serde_json::json;

    use super::*;

    fn turn(end: TurnEnd, input: &str) -> Result<Turns, Failure> {
        let message = Utterance::usual();
        let values = Values { input: input.to_owned(), ..Values::default() };
        Turns::of(&TurnSpec { message, end, interrupt: None }, &values)
    }

    /// What is heard of bytes that come in pieces, and whether the turn is over.
    fn heard(end: TurnEnd, bytes: &[u8], size: usize) -> (Vec<u8>, bool) {
        let mut turn = turn(end, "").unwrap();
        let (mut all, mut is_over) = (Vec::new(), false);
        for step in bytes.chunks(size).flat_map(|piece| turn.hear(piece)) {
            match step {
                Step::Hear(bytes) if !is_over => all.extend(bytes),
                Step::End(None) if !is_over => is_over = true,
                _ => panic!("something followed the end"),
            }
        }
        (all, is_over)
    }

    #[test]
    fn a_message_is_one_line_unless_it_is_written_otherwise() {
        let end = || TurnEnd::Line("END".to_owned());
        assert_eq!(turn(end(), "hello\n").unwrap().open(), b"hello\n");
        assert_eq!(turn(end(), "two\nlines").map(|_| ()).unwrap_err().code, Code::InputRejected);
        let values = Values { input: "two\n\"lines\"".to_owned(), ..Values::default() };
        let message = Utterance::Json(json!({"say": "{{ input }}"}));
        let spec = TurnSpec { message, end: end(), interrupt: None };
        let written = Turns::of(&spec, &values).unwrap().open();
        assert_eq!(written, b"{\"say\":\"two\\n\\\"lines\\\"\"}\n");
    }

    #[test]
    fn each_kind_of_end_is_known_and_only_json_is_read_too() {
        let line = TurnEnd::Line("END".to_owned());
        assert_eq!(heard(line.clone(), b"a END\nEND\r\nrest\n", 99), (b"a END\n".to_vec(), true));
        let regex = TurnEnd::Regex(Regex::new("^=+ done").unwrap());
        assert_eq!(heard(regex, b"a\n=== done: 7\n", 99), (b"a\n".to_vec(), true));
        let json = TurnEnd::Json(json!({"type": "result"}).as_object().unwrap().clone());
        let text = b"{\"type\":\"text\"}\n{\"type\":\"result\",\"x\":1}\n".to_vec();
        assert_eq!(heard(json, &text, 99), (text, true));
        assert!(!heard(line, b"END", 1).1, "a line has an end");
    }

    #[test]
    fn a_line_that_is_too_long_is_heard_and_is_no_end() {
        let regex = || TurnEnd::Regex(Regex::new("END$").unwrap());
        let long = [vec![b'x'; LONGEST + 1], b"END\n".to_vec()].concat();
        assert_eq!(heard(regex(), &long, 4096), (long, false));
    }

    proptest! {
        #[test]
        fn the_pieces_do_not_matter(text in "[a\\nEND]{0,60}", size in 1_usize..70) {
            let end = || TurnEnd::Line("END".to_owned());
            let bytes = format!("{text}\nEND\n").into_bytes();
            prop_assert_eq!(heard(end(), &bytes, size), heard(end(), &bytes, bytes.len()));
        }
    }
}
