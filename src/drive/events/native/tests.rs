//! No bytes do harm, and wherever they are cut they say the same.

use std::path::PathBuf;

use algonius_actors::model::program::Dialect;
use proptest::prelude::*;

use crate::drive::events::reader::Reader;

const KINDS: [(&str, Dialect); 6] = [
    ("claude", Dialect::Claude),
    ("qwen", Dialect::Claude),
    ("codex", Dialect::Codex),
    ("gemini", Dialect::Gemini),
    ("copilot", Dialect::Copilot),
    ("opencode", Dialect::Opencode),
];

/// What was recorded of a program.
fn recorded(agent: &str, case: &str) -> Vec<u8> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/corpus").join(agent);
    std::fs::read(folder.join(format!("{case}.jsonl"))).unwrap()
}

/// All that is said, as one text.
fn said<'b>(dialect: Option<Dialect>, pieces: impl IntoIterator<Item = &'b [u8]>) -> String {
    let mut reader = Reader::new(dialect);
    let mut events = Vec::new();
    for piece in pieces {
        events.extend(reader.take(piece));
    }
    events.extend(reader.end());
    format!("{events:?}")
}

/// The bytes, cut at places that may lie anywhere.
fn cut<'b>(bytes: &'b [u8], places: &[usize]) -> Vec<&'b [u8]> {
    let mut places: Vec<usize> = places.iter().map(|place| place % (bytes.len() + 1)).collect();
    places.extend([0, bytes.len()]);
    places.sort_unstable();
    places.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect()
}

/// Gemini CLI may write its plans even where it may write nothing else.
#[test]
fn what_lies_outside_of_its_plans_was_denied() {
    let lines = "{\"type\":\"tool_use\",\"tool_name\":\"write_file\",\"tool_id\":\"1\"}\n\
                 {\"type\":\"tool_result\",\"tool_id\":\"1\",\"status\":\"error\",\"error\":\
                 {\"type\":\"invalid_tool_params\",\"message\":\"WHY: plan path must be within\"}}\n";
    let told = |why| said(Some(Dialect::Gemini), [lines.replace("WHY", why).as_bytes()]);
    assert!(told("Access denied").contains("PermissionDenied { tool: \"write_file\" }"));
    assert!(!told("Broken").contains("PermissionDenied"));
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
    (0..KINDS.len(), names)
}

/// A line of JSON in which anything may stand where something else is expected.
fn strange() -> impl Strategy<Value = String> {
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
    fn wherever_the_bytes_are_cut_they_say_the_same(
        (agent, case) in cases(),
        places in proptest::collection::vec(any::<usize>(), 0..12),
    ) {
        let (name, dialect) = KINDS[agent];
        let bytes = recorded(name, case);
        let whole = said(Some(dialect), [bytes.as_slice()]);
        prop_assert_eq!(said(Some(dialect), cut(&bytes, &places)), whole);
    }

    #[test]
    fn bytes_that_are_broken_anywhere_do_no_harm(
        (agent, case) in cases(),
        breaks in proptest::collection::vec((any::<usize>(), any::<u8>()), 1..20),
        end in any::<usize>(),
    ) {
        let (name, dialect) = KINDS[agent];
        let mut bytes = recorded(name, case);
        for (place, byte) in breaks {
            let place = place % bytes.len().max(1);
            bytes[place] = byte;
        }
        bytes.truncate(end % (bytes.len() + 1));
        said(Some(dialect), [bytes.as_slice()]);
    }

    #[test]
    fn lines_of_any_shape_do_no_harm(lines in proptest::collection::vec(strange(), 0..6)) {
        let bytes = lines.join("\n").into_bytes();
        for (_, dialect) in KINDS {
            said(Some(dialect), [bytes.as_slice()]);
        }
        said(None, [bytes.as_slice()]);
    }

    #[test]
    fn garbage_between_lines_changes_nothing_but_that_it_is_noted(
        (agent, case) in cases(),
        garbage in "[a-z \\PC]{1,40}",
        place in any::<usize>(),
    ) {
        let (name, dialect) = KINDS[agent];
        let text = String::from_utf8(recorded(name, case)).unwrap();
        let mut lines: Vec<&str> = text.lines().collect();
        let garbage = format!("~{garbage}");
        lines.insert(place % (lines.len() + 1), &garbage);
        let with = said(Some(dialect), [lines.join("\n").as_bytes()]);
        let without = said(Some(dialect), [text.as_bytes()]);
        let bare = |said: &str| said.replace("Unknown, ", "").replace(", Unknown", "").replace("Unknown", "");
        prop_assert_eq!(bare(&with), bare(&without));
    }
}
