//! Tests of turns from the first byte to the end mark.

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
    assert!(!received_end(prompt("calc> ", true), b"4\ncalc>", 99).1, "the prompt is not whole");
}

#[test]
fn a_prompt_after_text_ends_a_turn_after_silence() {
    let mut turn = turn(prompt("> ", true), "x").unwrap();
    assert!(turn.receive(b"a > ").is_empty() && turn.may_be_over());
    assert!(matches!(&*turn.receive(b"b\nend> "), [StdioStep::Output(line)] if line == b"a > b\n"));
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
    assert!(matches!(&*turn.receive(b"> "), [StdioStep::Write(message)] if message == b"1+1\n"));
    let steps = turn.receive(b"2\n> ");
    assert!(matches!(&*steps, [StdioStep::Output(line), StdioStep::End(None)] if line == b"2\n"));
    let mut silent = numbered_turn(prompt("> ", false), "1+1", false, 0).unwrap();
    assert_eq!(silent.take_first_bytes(), b"1+1\n", "it prints no prompt before the first message");
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
