//! Tests: no bytes do harm, and chunk boundaries do not change the events.

use std::path::PathBuf;

use algonius_actors::model::program::EventDialect;
use proptest::prelude::*;

use super::{LineReader, ProgramEvent};

const DIALECTS: [(&str, EventDialect); 6] = [
    ("claude", EventDialect::Claude),
    ("qwen", EventDialect::Claude),
    ("codex", EventDialect::Codex),
    ("gemini", EventDialect::Gemini),
    ("copilot", EventDialect::Copilot),
    ("opencode", EventDialect::Opencode),
];

/// Returns the recorded output of a program.
fn recorded_output(agent: &str, case: &str) -> Vec<u8> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/corpus").join(agent);
    std::fs::read(folder.join(format!("{case}.jsonl"))).unwrap()
}

/// Returns all events as one text.
fn event_text<'b>(
    dialect: Option<EventDialect>,
    pieces: impl IntoIterator<Item = &'b [u8]>,
) -> String {
    format!("{:?}", read_events(dialect, pieces))
}

/// Returns all events, each with the number of its line.
fn read_events<'b>(
    dialect: Option<EventDialect>,
    pieces: impl IntoIterator<Item = &'b [u8]>,
) -> Vec<(u64, ProgramEvent)> {
    let mut reader = LineReader::new(dialect, 16 << 20);
    let mut events = Vec::new();
    for piece in pieces {
        events.extend(reader.decode(piece, &mut Vec::new()));
    }
    events.extend(reader.decode_end(&mut Vec::new()));
    events
}

/// Cuts the bytes at arbitrary places.
fn split_at_places<'b>(bytes: &'b [u8], places: &[usize]) -> Vec<&'b [u8]> {
    let mut places: Vec<usize> = places.iter().map(|place| place % (bytes.len() + 1)).collect();
    places.extend([0, bytes.len()]);
    places.sort_unstable();
    places.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect()
}

/// Gemini CLI may write its plans even if it may write nothing else.
#[test]
fn a_write_outside_of_the_plan_folder_is_a_denial() {
    let lines = "{\"type\":\"tool_use\",\"tool_name\":\"write_file\",\"tool_id\":\"1\"}\n\
                 {\"type\":\"tool_result\",\"tool_id\":\"1\",\"status\":\"error\",\"error\":\
                 {\"type\":\"invalid_tool_params\",\"message\":\"WHY: plan path must be within\"}}\n";
    let events_after =
        |reason| event_text(Some(EventDialect::Gemini), [lines.replace("WHY", reason).as_bytes()]);
    assert!(events_after("Access denied").contains("PermissionDenied { tool: \"write_file\" }"));
    assert!(!events_after("Broken").contains("PermissionDenied"));
}

/// Noise of a terminal before and after each line, and two events on one line, change no event.
#[test]
fn noise_around_native_lines_changes_no_event() {
    let events = |dialect, text: &str| {
        let events = read_events(Some(dialect), [text.as_bytes()]);
        format!("{:?}", events.into_iter().map(|(_, event)| event).collect::<Vec<_>>())
    };
    for (name, dialect) in DIALECTS {
        for case in ["hello", "tool-call", "401"] {
            let text = String::from_utf8(recorded_output(name, case)).unwrap();
            let lines = || text.lines().filter(|line| !line.trim().is_empty());
            assert!(lines().count() > 0, "{name} {case}");
            for (lead, tail) in [
                ("\u{1b}[?25l", "\r\n"),
                ("\u{feff}", "\u{1b}[0m\n"),
                ("10 %\r\u{1b}[K", "\n"),
                ("", ""),
            ] {
                let noisy: String = lines().map(|line| format!("{lead}{line}{tail}")).collect();
                assert_eq!(events(dialect, &noisy), events(dialect, &text), "{name} {case} {lead}");
            }
        }
    }
}

/// The answer of Claude Code stands in its result too, so that an earlier line that is lost is no loss.
#[test]
fn a_repeated_answer_makes_up_for_lost_lines() {
    let result = r#"{"type":"result","subtype":"success","is_error":false,"result":"answer"}"#;
    let events_of = |dialect, lines: &str| event_text(Some(dialect), [lines.as_bytes()]);
    let events = events_of(EventDialect::Claude, &format!("{{\"type\":\"assistant\n{result}"));
    assert!(events.contains("loss: Likely") && events.contains("AnswerRepeated"), "{events}");
    let codex = "{\"type\":\"item.comple\n{\"type\":\"turn.completed\"}\n";
    let events = events_of(EventDialect::Codex, codex);
    assert!(events.contains("loss: Likely") && !events.contains("AnswerRepeated"));
}

fn cases() -> impl Strategy<Value = (usize, &'static str)> {
    let names = prop_oneof![
        Just("hello"),
        Just("tool-call"),
        Just("file-change"),
        Just("permission-denied"),
        Just("401"),
        Just("empty"),
    ];
    (0..DIALECTS.len(), names)
}

/// Strategy for a line of JSON with unexpected values.
fn unexpected_line() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        Just("true".to_owned()),
        any::<i64>().prop_map(|number| number.to_string()),
        Just("1e308".to_owned()),
        "[a-z._ ]{0,12}".prop_map(|text| format!("{text:?}")),
        prop_oneof![Just("result"), Just("assistant"), Just("item.completed"), Just("error")]
            .prop_map(|word| format!("{word:?}")),
    ];
    let keys = prop_oneof![
        Just("type"),
        Just("subtype"),
        Just("item"),
        Just("message"),
        Just("content"),
        Just("data"),
        Just("part"),
        Just("usage"),
        Just("error"),
        Just("result"),
        Just("stats"),
        Just("state"),
    ];
    leaf.prop_recursive(4, 24, 4, move |inner| {
        let pairs = proptest::collection::vec((keys.clone(), inner.clone()), 0..4);
        prop_oneof![
            proptest::collection::vec(inner, 0..4)
                .prop_map(|items| format!("[{}]", items.join(","))),
            pairs.prop_map(|pairs| {
                let pairs = pairs.iter().map(|(key, value)| format!("{key:?}:{value}"));
                format!("{{{}}}", pairs.collect::<Vec<_>>().join(","))
            }),
        ]
    })
}

proptest! {
    #[test]
    fn events_do_not_depend_on_the_chunks_of_the_stream(
        (agent, case) in cases(),
        places in proptest::collection::vec(any::<usize>(), 0..12),
    ) {
        let (name, dialect) = DIALECTS[agent];
        let bytes = recorded_output(name, case);
        let unsplit = event_text(Some(dialect), [bytes.as_slice()]);
        prop_assert_eq!(event_text(Some(dialect), split_at_places(&bytes, &places)), unsplit);
    }

    #[test]
    fn corrupt_bytes_never_panic(
        (agent, case) in cases(),
        breaks in proptest::collection::vec((any::<usize>(), any::<u8>()), 1..20),
        end in any::<usize>(),
    ) {
        let (name, dialect) = DIALECTS[agent];
        let mut bytes = recorded_output(name, case);
        for (place, byte) in breaks {
            let place = place % bytes.len().max(1);
            bytes[place] = byte;
        }
        bytes.truncate(end % (bytes.len() + 1));
        event_text(Some(dialect), [bytes.as_slice()]);
    }

    #[test]
    fn lines_of_any_shape_never_panic(lines in proptest::collection::vec(unexpected_line(), 0..6)) {
        let bytes = lines.join("\n").into_bytes();
        for (_, dialect) in DIALECTS {
            event_text(Some(dialect), [bytes.as_slice()]);
        }
        event_text(None, [bytes.as_slice()]);
    }

    #[test]
    fn garbage_between_lines_changes_no_other_event(
        (agent, case) in cases(),
        garbage in "[a-z \\PC]{1,40}",
        place in any::<usize>(),
    ) {
        let (name, dialect) = DIALECTS[agent];
        let text = String::from_utf8(recorded_output(name, case)).unwrap();
        let mut lines: Vec<&str> = text.lines().collect();
        let garbage = format!("~{garbage}");
        lines.insert(place % (lines.len() + 1), &garbage);
        let events_with_garbage = read_events(Some(dialect), [lines.join("\n").as_bytes()]);
        let events_without_garbage = read_events(Some(dialect), [text.as_bytes()]);
        let count = |events: &[(u64, ProgramEvent)]| {
            events.iter().filter(|(_, event)| matches!(event, ProgramEvent::Malformed(_))).count()
        };
        prop_assert_eq!(count(&events_with_garbage), count(&events_without_garbage) + 1);
        let valid_event_text = |events: Vec<(u64, ProgramEvent)>| {
            let valid_events = events.into_iter().map(|(_, event)| event);
            let valid_events = valid_events.filter(|event| !matches!(event, ProgramEvent::Malformed(_)));
            format!("{:?}", valid_events.collect::<Vec<_>>())
        };
        prop_assert_eq!(valid_event_text(events_with_garbage), valid_event_text(events_without_garbage));
    }
}
