//! Tests of turns from the first byte to the end mark.

use algonius_actors::model::program::stdio_protocol::ReadyPrompt;
use proptest::prelude::*;
use regex::Regex;
use serde_json::json;

use super::*;

const MAX_LINE_BYTES: usize = 3 << 20;

fn turn(end: TurnEnd, input: &str) -> Result<MessageTurn, Failure> {
    numbered_turn(end, input, false, 1)
}

/// Returns a turn with this number of a program that may echo the message.
fn numbered_turn(
    end: TurnEnd,
    input: &str,
    echoes_messages: bool,
    number: u64,
) -> Result<MessageTurn, Failure> {
    let message = MessageTemplate::default_template();
    let values = ExecutionValues { input: input.to_owned(), ..ExecutionValues::default() };
    MessageTurn::new(
        &TurnSpec { message, end, interrupt: None, echoes_messages },
        &values,
        number,
        MAX_LINE_BYTES,
    )
}

fn prompt(text: &str, is_printed_at_startup: bool) -> TurnEnd {
    TurnEnd::Prompt(ReadyPrompt { text: text.to_owned(), is_printed_at_startup })
}

/// Returns the answer bytes from chunked input, and true if the turn is over.
fn receive_until_end(end: TurnEnd, bytes: &[u8], chunk_size: usize) -> (Vec<u8>, bool) {
    let mut turn = turn(end, "").unwrap();
    let (mut answer_bytes, mut is_over) = (Vec::new(), false);
    for action in bytes.chunks(chunk_size).flat_map(|piece| turn.receive(piece)) {
        match action {
            StdioAction::Output(bytes) if !is_over => answer_bytes.extend(bytes),
            StdioAction::End(None) if !is_over => is_over = true,
            _ => panic!("something followed the end"),
        }
    }
    (answer_bytes, is_over)
}

#[test]
fn a_message_is_one_line_unless_configured_otherwise() {
    let end = || TurnEnd::Line("END".to_owned());
    assert_eq!(turn(end(), "hello\n").unwrap().take_first_bytes(), b"hello\n");
    assert_eq!(turn(end(), "two\nlines").map(|_| ()).unwrap_err().code, Code::InputRejected);
    let values =
        ExecutionValues { input: "two\n\"lines\"".to_owned(), ..ExecutionValues::default() };
    let message = MessageTemplate::Json(json!({"say": "{{ input }}"}));
    let spec = TurnSpec { message, end: end(), interrupt: None, echoes_messages: false };
    let written = MessageTurn::new(&spec, &values, 0, MAX_LINE_BYTES).unwrap().take_first_bytes();
    assert_eq!(written, b"{\"say\":\"two\\n\\\"lines\\\"\"}\n");
}

#[test]
fn each_kind_of_turn_end_is_recognized() {
    let line = TurnEnd::Line("END".to_owned());
    assert_eq!(
        receive_until_end(line.clone(), b"a END\nEND\r\nrest\n", 99),
        (b"a END\n".to_vec(), true)
    );
    let regex = TurnEnd::Regex(Regex::new("^=+ done").unwrap());
    assert_eq!(receive_until_end(regex, b"a\n=== done: 7\n", 99), (b"a\n".to_vec(), true));
    let json = TurnEnd::Json(json!({"type": "result"}).as_object().unwrap().clone());
    let text = b"{\"type\":\"text\"}\n{\"type\":\"result\",\"x\":1}\n".to_vec();
    assert_eq!(receive_until_end(json, &text, 99), (text, true));
    assert!(!receive_until_end(line, b"END", 1).1, "a line has an end");
}

#[test]
fn a_prompt_on_its_own_line_ends_a_turn_at_once() {
    let end = || prompt("calc> ", true);
    for size in [1, 2, 99] {
        assert_eq!(
            receive_until_end(end(), b"2\n4\ncalc> ", size),
            (b"2\n4\n".to_vec(), true),
            "{size}"
        );
    }
    let text = b"calc> is its prompt\ncalc> ";
    assert_eq!(receive_until_end(end(), text, 99), (b"calc> is its prompt\n".to_vec(), true));
    assert!(
        !receive_until_end(prompt("calc> ", true), b"4\ncalc>", 99).1,
        "the prompt is not whole"
    );
}

#[test]
fn a_prompt_after_text_ends_a_turn_after_silence() {
    let mut turn = turn(prompt("> ", true), "x").unwrap();
    assert!(turn.receive(b"a > ").is_empty() && turn.may_be_over());
    assert!(
        matches!(&*turn.receive(b"b\nend> "), [StdioAction::Output(line)] if line == b"a > b\n")
    );
    assert!(turn.may_be_over());
    assert!(
        matches!(&*turn.end_on_silence(), [StdioAction::Output(text), StdioAction::End(None)] if text == b"end")
    );
    assert!(!turn.may_be_over() && !turn.has_ended_without_text());
}

#[test]
fn a_message_waits_for_the_first_prompt() {
    let mut turn = numbered_turn(prompt("> ", true), "1+1", false, 0).unwrap();
    assert!(turn.take_first_bytes().is_empty());
    assert!(turn.receive(b"Calculator 1.0\nType a sum.\n").is_empty());
    assert!(matches!(&*turn.receive(b"> "), [StdioAction::Write(message)] if message == b"1+1\n"));
    let actions = turn.receive(b"2\n> ");
    assert!(
        matches!(&*actions, [StdioAction::Output(line), StdioAction::End(None)] if line == b"2\n")
    );
    let mut silent = numbered_turn(prompt("> ", false), "1+1", false, 0).unwrap();
    assert_eq!(silent.take_first_bytes(), b"1+1\n", "it prints no prompt before the first message");
}

#[test]
fn an_echoed_message_is_not_part_of_the_answer() {
    let received_text = |output: &[u8]| {
        let mut turn = numbered_turn(prompt("> ", true), "select 1;", true, 1).unwrap();
        let actions = turn.receive(output);
        let mut text = Vec::new();
        for action in actions {
            if let StdioAction::Output(line) = action {
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
    assert!(turn.has_ended_without_text() && turn.has_output_after_end());
    let failure = turn.premature_end_mark_failure();
    assert_eq!(failure.code, Code::EmptyAnswer);
    assert!(failure.message.contains("`turn.end_regex`"), "{failure}");
}

#[test]
fn an_end_in_a_long_line_is_found_up_to_the_limit() {
    let regex = || TurnEnd::Regex(Regex::new("END$").unwrap());
    let line = |length: usize| [vec![b'x'; length - 4], b"END\n".to_vec()].concat();
    assert_eq!(receive_until_end(regex(), &line(MAX_LINE_BYTES), 4096), (Vec::new(), true));
    let actions = turn(regex(), "").unwrap().receive(&line(MAX_LINE_BYTES + 1));
    let [StdioAction::Desynchronized(failure)] = &*actions else { panic!("the turn continues") };
    assert_eq!(failure.code, Code::OutputUnreadable);
    assert!(failure.message.contains("longer than 3145728 bytes"), "{failure}");
    let json = TurnEnd::Json(json!({"type": "result"}).as_object().unwrap().clone());
    let numbers = "1,".repeat(1 << 20);
    for (name, is_lost) in [("type", true), ("kind", false)] {
        let line = format!("{{\"{name}\": \"result\",\"numbers\":[{numbers}1]}}\n");
        let actions = turn(json.clone(), "").unwrap().receive(line.as_bytes());
        let is_failure = |action: &StdioAction| matches!(action, StdioAction::Desynchronized(_));
        assert_eq!(actions.iter().any(is_failure), is_lost, "{name}");
    }
    let text = "x".repeat(2 << 20);
    let line = format!("{{\"type\":\"result\",\"text\":\"{text}\"}}\n").into_bytes();
    assert_eq!(receive_until_end(json, &line, 4096), (line, true));
}

#[test]
fn a_line_longer_than_any_end_is_passed_on_in_pieces() {
    let long = vec![b'x'; LINE_SPLIT_THRESHOLD_BYTES + 7];
    let line = [&*long, b"\n"].concat();
    let bytes = [&*line, b"END\n"].concat();
    let end = TurnEnd::Line("END".to_owned());
    assert_eq!(receive_until_end(end.clone(), &bytes, 4096), (line, true));
    let actions = turn(end, "").unwrap().receive(&long);
    assert!(matches!(&*actions, [StdioAction::Output(_)]), "{}", actions.len());
    let longer_end = String::from_utf8(long).unwrap();
    let bytes = format!("{longer_end}\n").into_bytes();
    assert_eq!(receive_until_end(TurnEnd::Line(longer_end), &bytes, 4096), (Vec::new(), true));
}

#[test]
fn a_prompt_after_a_long_line_ends_a_turn_after_silence() {
    for size in [1000, 4096, 3 << 20] {
        let long = vec![b'x'; LINE_SPLIT_THRESHOLD_BYTES + 7];
        let bytes = [&*long, b"calc> "].concat();
        let mut turn = turn(prompt("calc> ", true), "x").unwrap();
        let mut text = Vec::new();
        for action in bytes.chunks(size).flat_map(|piece| turn.receive(piece)) {
            let StdioAction::Output(bytes) = action else { panic!("only silence ends it") };
            text.extend(bytes);
        }
        assert!(turn.may_be_over(), "{size}");
        for action in turn.end_on_silence() {
            if let StdioAction::Output(bytes) = action {
                text.extend(bytes);
            }
        }
        assert!(text == long && !turn.may_be_over(), "{size}: {} bytes", text.len());
    }
}

#[test]
fn a_long_banner_keeps_the_echo_out_of_the_answer() {
    let mut turn = numbered_turn(prompt("> ", true), "1+1", true, 0).unwrap();
    let banner = format!("{}\n> ", "x".repeat(LINE_SPLIT_THRESHOLD_BYTES + 7));
    let actions: Vec<_> =
        banner.as_bytes().chunks(4096).flat_map(|piece| turn.receive(piece)).collect();
    assert!(matches!(&*actions, [StdioAction::Write(message)] if message == b"1+1\n"));
    let actions = turn.receive(b"1+1\n2\n> ");
    assert!(
        matches!(&*actions, [StdioAction::Output(line), StdioAction::End(None)] if line == b"2\n")
    );
}

#[test]
fn a_long_echoed_message_is_not_part_of_the_answer() {
    let message = "x".repeat(LINE_SPLIT_THRESHOLD_BYTES + 7);
    let mut turn = numbered_turn(prompt("> ", true), &message, true, 1).unwrap();
    let output = format!("{message}\r\n1\n> ");
    let mut text = Vec::new();
    for action in output.as_bytes().chunks(4096).flat_map(|piece| turn.receive(piece)) {
        if let StdioAction::Output(line) = action {
            text.extend(line);
        }
    }
    assert_eq!(text, b"1\n");
}

proptest! {
    #[test]
    fn turns_do_not_depend_on_the_chunks(text in "[a\\nEND]{0,60}", size in 1_usize..70) {
        let end = || TurnEnd::Line("END".to_owned());
        let bytes = format!("{text}\nEND\n").into_bytes();
        prop_assert_eq!(receive_until_end(end(), &bytes, size), receive_until_end(end(), &bytes, bytes.len()));
    }
}
