//! Tests: objects are read in spite of what surrounds them, and nothing else is.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{
    LineItem, MAX_ITEMS, MAX_VALUES, TOO_MANY_VALUES, contains_any_json_string, read_json_line,
};

fn parse_objects(line: &[u8]) -> Vec<Value> {
    let objects = read_json_line(line).into_iter().map(|item| match item {
        LineItem::Object(object) => object,
        LineItem::UnreadableText(text) => panic!("unreadable: {text:?}"),
    });
    objects.collect()
}

fn unreadable_texts(line: &[u8]) -> Vec<(String, &'static str)> {
    let items = read_json_line(line).into_iter().filter_map(|item| match item {
        LineItem::Object(_) => None,
        LineItem::UnreadableText(unreadable_text) => {
            Some((unreadable_text.text, unreadable_text.reason))
        }
    });
    items.collect()
}

#[test]
fn noise_around_an_object_is_skipped() {
    let prefixes: [&[u8]; 17] = [
        b"\x1b[?2004h",
        b"\x1b[1;38;5;8m",
        b"\x1b[>4;2m\x1b[=5u",
        b"\x1b]0;title\x07",
        b"\x1b]8;;http://a.example\x1b\\",
        b"\x1bP1$r0m\x1b\\",
        b"\x1b(B\x1b7\x1b=",
        b"\x1b",
        b"\xef\xbb\xbf",
        b"\xef\xbb\xbf\x1b[2K\r",
        b"\rthinking\r",
        b"10 %\r20 %\r100 %\r\x1b[K",
        b"thinking \xe9\r",
        b"\0\x08\x08 \t",
        "\u{9b}?25l".as_bytes(),
        "\u{9d}0;title\u{9c}".as_bytes(),
        b"\x1b]0;aborted\x1b[2K",
    ];
    for lead in prefixes {
        for tail in [&b""[..], b"\r", b" \x1b[0m", b"\x07\0\r"] {
            let line = [lead, br#"{"a":[1]}"#, tail].concat();
            assert_eq!(parse_objects(&line), [json!({"a": [1]})], "{}", line.escape_ascii());
        }
    }
    for blank in [&b""[..], b" \r", b"\x1b[2K\r", b"\xef\xbb\xbf", b"\x1b]0;title\x07"] {
        assert_eq!(read_json_line(blank), []);
    }
}

#[test]
fn objects_on_one_line_are_all_read() {
    let [a, b] = [json!({"a": "}{"}), json!({"b": {"c": []}})];
    for between in
        ["", " ", "\t", "\r", "\u{1b}[0m", "\rwords\r", "\0", "\r{'loss': 0.5}\r{ no }\r"]
    {
        assert_eq!(parse_objects(format!("{a}{between}{b}").as_bytes()), [a.clone(), b.clone()]);
    }
    let many = "{}".repeat(MAX_ITEMS + 3);
    let unreadable_parts = unreadable_texts(many.as_bytes());
    assert_eq!(unreadable_parts, [("{}{}{}".to_owned(), "has too many parts")]);
}

#[test]
fn objects_with_invalid_characters_are_read() {
    let object_with_text = |text: &str| json!({"a": text});
    for (line, object) in [
        (&b"{\"a\":\"\xe9\"}"[..], object_with_text("\u{fffd}")),
        (b"{\"a\":\"caf\xe9 \xff\"}", object_with_text("caf\u{fffd} \u{fffd}")),
        (br#"{"a":"\ud800"}"#, object_with_text("\u{fffd}")),
        (br#"{"a":"x\udc00\ud83dy"}"#, object_with_text("x\u{fffd}\u{fffd}y")),
        (br#"{"a":"\ud83d\ud83d\ude00"}"#, object_with_text("\u{fffd}\u{1f600}")),
        (br#"{"a":"\\ud800\ud800"}"#, object_with_text("\\ud800\u{fffd}")),
        (
            b"{\"a\":\"one\ttwo\x1b[1mthree\rfour\"}",
            object_with_text("one\ttwo\u{1b}[1mthree\rfour"),
        ),
        (b"{\"a\":\x1b[32m\"green\"\x1b[0m}", object_with_text("green")),
        (
            br#"{"a":[NaN,Infinity,-Infinity,-1],"NaN":1}"#,
            json!({"a": [null, null, null, -1], "NaN": 1}),
        ),
    ] {
        assert_eq!(parse_objects(line), std::slice::from_ref(&object), "{}", line.escape_ascii());
        let twice = [line, b"\r", line].concat();
        assert_eq!(parse_objects(&twice), [object.clone(), object], "{}", twice.escape_ascii());
    }
}

#[test]
fn text_without_an_object_is_returned() {
    for (line, text, reason) in [
        ("plain words", "plain words", "is not JSON"),
        ("plain words\r", "plain words", "is not JSON"),
        ("\u{1b}[1mplain\u{1b}[0m", "plain\u{1b}[0m", "is not JSON"),
        ("[1]", "[1]", "is not a JSON object"),
        ("7\r", "7", "is not a JSON object"),
        (r#"{"a":"cut"#, r#"{"a":"cut"#, "is not JSON"),
        (r#"{"a":1,}"#, r#"{"a":1,}"#, "is not JSON"),
        (r#"data: {"a":1}"#, r#"data: {"a":1}"#, "is not JSON"),
        (r#"{"a":1} words"#, "words", "is not JSON"),
        ("{\"a\":\"cut\r{\"b\":1}", "{\"a\":\"cut", "is not JSON"),
        ("\u{1b}]0;no end {\"a\":1}", "]0;no end {\"a\":1}", "is not JSON"),
    ] {
        assert_eq!(unreadable_texts(line.as_bytes()), [(text.to_owned(), reason)], "{line}");
    }
}

#[test]
fn a_lost_message_is_recognized() {
    let may_be_message = |line: &str| {
        let items = read_json_line(line.as_bytes());
        items.into_iter().any(|item| match item {
            LineItem::UnreadableText(unreadable_text) => unreadable_text.may_be_message(
                |object| object.get("type").is_some(),
                |text| contains_any_json_string(text, &["type"]),
            ),
            LineItem::Object(_) => false,
        })
    };
    for line in [
        r#"{"type":"text","text":"cut"#,
        r#"{ "type": bad }"#,
        r#"loading... {"type":"text"}"#,
        r#"data: {"type":"text"}"#,
        r#"[{"type":"text"}]"#,
        "{\"type\":\"cut\r{}",
        "loading {\"type\":\"text\"}\r{}",
        &"{}".repeat(MAX_ITEMS + 1),
    ] {
        assert!(may_be_message(line), "{line}");
    }
    for line in ["words", "{", "{ words }", "[1]", r#"INFO {"level":1}"#, r#"{"type":1}{"a":2} ok"#]
    {
        assert!(!may_be_message(line), "{line}");
    }
}

#[test]
fn a_line_with_too_many_values_is_lost() {
    let line = format!("{{\"type\":\"data\",\"data\":[0{}]}}", ",0".repeat(MAX_VALUES));
    let items = read_json_line(line.as_bytes());
    let [LineItem::UnreadableText(unreadable_text)] = &*items else {
        panic!("{} items", items.len())
    };
    assert_eq!(unreadable_text.reason, TOO_MANY_VALUES);
    assert!(unreadable_text.may_be_message(
        |object| object.get("type").is_some(),
        |text| contains_any_json_string(text, &["type"])
    ));
    // A stray quotation mark before the object changes nothing.
    for lead in ["\"\r", "x \"\r", "\"\u{1b}[2K\r"] {
        assert_eq!(
            unreadable_texts(format!("{lead}{line}{{}}").as_bytes()),
            [(line.clone(), TOO_MANY_VALUES)]
        );
    }
    // The objects of a line share the limit.
    let half = format!("{{\"data\":[0{}]}}", ",0".repeat(MAX_VALUES / 2));
    let lost = unreadable_texts(format!("{half}{half}{{}}").as_bytes());
    assert_eq!(lost, [(half, TOO_MANY_VALUES)]);
    let text = json!({"text": "\",[{".repeat(MAX_VALUES)});
    assert_eq!(parse_objects(text.to_string().as_bytes()), [text]);
}

#[test]
fn progress_that_is_overwritten_hides_no_object() {
    let line = format!("{}{{\"type\":\"text\"}}", "{'loss': 0.5}\r".repeat(2 * MAX_ITEMS));
    assert_eq!(parse_objects(line.as_bytes()), [json!({"type": "text"})]);
}

/// Without limits these lines would take minutes, and the test would be ended.
#[test]
fn a_hostile_line_is_read_in_bounded_time() {
    for piece in [
        "\u{9d}",
        "\u{90}x",
        "{\"a\r",
        "\r{\"a\":[1,",
        "{",
        "{\"a\":",
        "[{\"a\":\"{",
        "\r{\"",
        "\u{1b}]",
        "x\r",
        "{'loss': 0.5}\r",
    ] {
        classify_all_texts(&piece.repeat(400_000));
    }
    for lead in ["x ", "", "x\r"] {
        // Each of the objects is read up to the end of the line.
        classify_all_texts(&format!("{lead}{}\"{}", "{\"a\":".repeat(64), "a".repeat(30 << 20)));
    }
}

fn classify_all_texts(line: &str) {
    for item in read_json_line(line.as_bytes()) {
        if let LineItem::UnreadableText(unreadable_text) = item {
            unreadable_text
                .may_be_message(|_| false, |text| contains_any_json_string(text, &["type"]));
        }
    }
}

proptest! {
    /// Whatever precedes an object, except other text, its content is read unchanged.
    #[test]
    fn an_object_is_read_whole(
        text in "\\PC{0,20}|[\\x00-\\x7f]{0,20}",
        lead in "(\x1b\\[[0-9;]{0,4}[a-z]|\x1b\\][^\x07\x1b{\u{80}-\u{9f}]{0,5}\x07|[^\r\n{]{0,5}\r|\u{feff}| ){0,4}",
    ) {
        let object = json!({"type": "text", "text": text});
        let line = format!("{lead}{object}");
        prop_assert_eq!(parse_objects(line.as_bytes()), [object]);
    }

    #[test]
    fn any_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let size = bytes.len();
        prop_assert!(read_json_line(&bytes).len() <= size);
    }

    /// Text that is cut anywhere is an unreadable text, and never another object.
    #[test]
    fn a_cut_object_is_lost(text in "[a-z\"\\\\{} ]{0,20}", size in 2_usize..60) {
        let line = json!({"type": "text", "text": text}).to_string();
        let cut = line.get(..size.min(line.len() - 1)).unwrap();
        let items = read_json_line(cut.as_bytes());
        let [LineItem::UnreadableText(unreadable_text)] = &*items else { panic!("{items:?}") };
        prop_assert!(unreadable_text.may_be_message(|_| false, |text| contains_any_json_string(text, &["type"])));
    }
}
