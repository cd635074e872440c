//! Tests of events and of the lines that are none.

use super::ResultLoss::{Likely, None as Nothing, Possible};
use super::{EventContent, EventLine, ProgramEvent};
use crate::drivers::adapters::file_parts::{NamedFile, ReportedPart};
use algonius_actors::model::execution::content::{Content, Part};

fn read_events(line: &str) -> Vec<ProgramEvent> {
    let mut event_line = EventLine::new(1 << 20);
    event_line.extend(line.as_bytes(), &mut Vec::new());
    event_line.parse_events()
}

fn read_valid_event(line: &str) -> Option<ProgramEvent> {
    let event = read_events(line).into_iter().next()?;
    (!matches!(event, ProgramEvent::Malformed(_))).then_some(event)
}

#[test]
fn a_malformed_line_keeps_its_reason_and_its_text() {
    for (line, reason, loss) in [
        ("plain words", "is not JSON", Possible),
        (r#"{"type":"text","text":"cut"#, "is not JSON", Likely),
        (r#"{ "type": "text", }"#, "is not JSON", Likely),
        (r#"words {"type":"text","text":"a"}"#, "is not JSON", Likely),
        (r#"[{"type":"artifact"}]"#, "is not a JSON object", Likely),
        (r#"words {"type":"usage","input_tokens":1}"#, "is not JSON", Possible),
        ("[1]", "is not a JSON object", Possible),
        (r#"{"text":"a"}"#, "has no `type`", Possible),
        (r#"{"type":7}"#, "has no `type`", Possible),
        (r#"{"type":"text","words":"a"}"#, "does not have the fields of its `type`", Likely),
        (r#"{"type":"tool_call"}"#, "does not have the fields of its `type`", Nothing),
        (r#"log: {"type":"text","text":"a\udc80"}"#, "is not JSON", Likely),
        (r#"log: {"type":"text","text":"cut"#, "is not JSON", Likely),
        (r#"{{{{{"type":"text","text":"a"}"#, "is not JSON", Likely),
        (r#"end {"type":"status","state":"completed","text":"a"}"#, "is not JSON", Likely),
        (r#"log: {"items":[{"type":"text","text":"a"}]}"#, "is not JSON", Possible),
        (r#"log: {"level":Some("x")}"#, "is not JSON", Possible),
        (r#"end {"type":"status","state":"failed","text":"a"}"#, "is not JSON", Likely),
        (r#"{"state":1,"type":"status"}"#, "does not have the fields of its `type`", Likely),
        (r#"{"type":"later"}"#, "has an unknown `type`", Possible),
        (
            r#"{"message":{"why":7},"type":"failed"}"#,
            "does not have the fields of its `type`",
            Likely,
        ),
    ] {
        let events = read_events(line);
        let [ProgramEvent::Malformed(error)] = &*events else { panic!("{line}: {events:?}") };
        let text = error.text.as_str().replace("\"", "");
        assert_eq!((&*error.reason, text), (reason, line.replace("\"", "")));
        assert_eq!(error.loss, loss, "{line}");
    }
    let mut long = EventLine::new(5);
    let mut dropped = Vec::new();
    for piece in [b"1234", b"5678"] {
        long.extend(piece, &mut dropped);
    }
    assert_eq!(dropped, b"12345678");
    let events = long.parse_events();
    let [ProgramEvent::Malformed(error)] = &*events else { panic!("{events:?}") };
    assert_eq!((&*error.reason, &*error.text), ("is longer than 5 bytes", ""));
    assert_eq!(error.loss, Likely);
}

#[test]
fn the_events_of_a_line_are_read_in_order() {
    let line = "\u{1b}[2K{\"type\":\"text\",\"text\":\"a\"}\u{1b}[0m {\"type\":\"later\"}\r{\"type\":\"thinking\"} end";
    let events = read_events(line);
    let [
        ProgramEvent::Text { text },
        ProgramEvent::Malformed(unknown),
        ProgramEvent::Thinking {},
        ProgramEvent::Malformed(words),
    ] = &*events
    else {
        panic!("{events:?}")
    };
    assert_eq!((&**text, &*unknown.reason, &*words.text), ("a", "has an unknown `type`", "end"));
    assert!(read_events(" \r").is_empty() && read_events("\u{feff}\u{1b}[0m").is_empty());
}

fn reported_parts(content: &str) -> Option<Vec<ReportedPart>> {
    match read_valid_event(&format!(r#"{{"type":"message",{content}}}"#))? {
        ProgramEvent::Message { content } => content.into_parts(),
        _ => None,
    }
}

fn parts(content: &str) -> Option<Vec<Part>> {
    let parts = reported_parts(content)?.into_iter().map(|part| match part {
        ReportedPart::Part(part) => Some(part),
        ReportedPart::NamedFile(_) => None,
    });
    parts.collect()
}

fn contents(content: &str) -> Option<Vec<Content>> {
    parts(content).map(|parts| parts.into_iter().map(|part| part.content).collect())
}

#[test]
fn each_form_of_a_part_is_parsed() {
    let bytes = || Some(vec![Content::Bytes("aGk=".to_owned())]);
    assert_eq!(contents(r#""text":"a""#), Some(vec![Content::Text("a".to_owned())]));
    assert_eq!(contents(r#""data":null"#), Some(vec![Content::Data(().into())]));
    assert_eq!(contents(r#""file":{"bytes":"aGk="}"#), bytes());
    assert_eq!(contents(r#""file":{"text":"hi"}"#), bytes());
    let parts = parts(r#""parts":[{"text":""},{"url":"u","name":"n","media_type":"m"}]"#);
    let url = parts.unwrap().pop().unwrap();
    assert_eq!(url.content, Content::Url("u".to_owned()));
    assert_eq!((url.filename.as_deref(), url.media_type.as_deref()), (Some("n"), Some("m")));
}

/// A program may give several contents at once, and the names of A2A.
#[test]
fn no_member_with_content_is_dropped() {
    let [text, file] = &*reported_parts(r#""text":"see","file":{"path":"out/a.png"}"#).unwrap()
    else {
        panic!("two parts");
    };
    assert!(matches!(text, ReportedPart::Part(Part { content: Content::Text(_), .. })));
    assert!(matches!(file, ReportedPart::NamedFile(_)));
    let list = r#""parts":[{"text":"a","data":1},{"url":"u"}],"text":"b""#;
    let text = |text: &str| Content::Text(text.to_owned());
    let expected = [text("a"), Content::Data(1.into()), Content::Url("u".to_owned()), text("b")];
    assert_eq!(contents(list).unwrap(), expected);
    for typed in [
        r#""text":"a,b","media_type":"text/csv""#,
        r#""data":[],"mimeType":"text/csv""#,
        r#""file":{"bytes":"aGk=","mimeType":"text/csv"}"#,
        r#""file":{"text":"a,b"},"mediaType":"text/csv""#,
        r#""parts":[{"url":"u","mediaType":"text/csv"}]"#,
    ] {
        let part = parts(typed).unwrap().remove(0);
        assert_eq!(part.media_type.as_deref(), Some("text/csv"), "{typed}");
    }
    for named in [
        r#""file":{"bytes":"aGk=","filename":"a.csv"}"#,
        r#""file":{"bytes":"aGk=","name":"a.csv","filename":"b.csv"}"#,
        r#""file":{"bytes":"aGk="},"filename":"a.csv""#,
    ] {
        assert_eq!(parts(named).unwrap().remove(0).filename.as_deref(), Some("a.csv"), "{named}");
    }
}

/// Many programs write all members of their own data type.
#[test]
fn members_without_content_change_nothing() {
    for content in [
        r#""text":"a","data":null,"file":null,"url":null,"parts":null"#,
        r#""text":"a","file":"src/a.rs","name":7"#,
        r#""parts":[{"text":"a","data":null,"url":{}}],"data":null"#,
        r#""text":"a","media_type":null,"mimeType":[]"#,
    ] {
        assert_eq!(contents(content).unwrap(), [Content::Text("a".to_owned())], "{content}");
    }
    let typed = r#""file":{"bytes":"aGk=","media_type":"a/b","mediaType":"a/b","mimeType":"a/b"}"#;
    assert_eq!(parts(typed).unwrap().remove(0).media_type.as_deref(), Some("a/b"));
}

#[test]
fn malformed_artifact_parts_are_rejected() {
    for content in [
        r#""parts":[]"#,
        r#""parts":[{"text":1}]"#,
        r#""parts":[{"text":"a"},{}]"#,
        r#""text":1,"data":{}"#,
        r#""file":{"bytes":"?"}"#,
        r#""file":{"bytes":"aGk=","text":"hi"}"#,
        r#""file":{"path":"a","text":"hi"}"#,
        r#""file":{"name":"a"}"#,
        r#""more":1"#,
    ] {
        assert_eq!(reported_parts(content), None, "{content}");
    }
}

#[test]
fn a_file_part_may_be_only_a_path() {
    let some_text = |text: &str| Some(text.to_owned());
    let named = |path: &str, name, media_type| {
        Some(vec![ReportedPart::NamedFile(NamedFile { path: path.to_owned(), name, media_type })])
    };
    assert_eq!(reported_parts(r#""file":{"path":"out/a.txt"}"#), named("out/a.txt", None, None));
    let full = r#""parts":[{"file":{"path":"/a","name":"n","media_type":"m"}}]"#;
    assert_eq!(reported_parts(full), named("/a", some_text("n"), some_text("m")));
}

#[test]
fn an_artifact_is_complete_by_default() {
    let Some(ProgramEvent::Artifact(artifact)) =
        read_valid_event(r#"{"type":"artifact","name":"n","url":"u"}"#)
    else {
        panic!("not read");
    };
    assert_eq!((artifact.append, artifact.last, artifact.id), (false, true, None));
    assert_eq!(artifact.name.as_deref(), Some("n"));
    assert_eq!(artifact.content.into_parts().unwrap().len(), 1);
}

#[test]
fn an_event_in_another_form_has_its_effect() {
    for (line, expected) in [
        (r#"{"type":"status","state":"failed","text":"why"}"#, r#"Failed("why", "")"#),
        (
            r#"{"type":"status","state":"TASK_STATE_FAILED","message":"why","category":"quota"}"#,
            r#"Failed("why", "quota")"#,
        ),
        (r#"{"type":"status","state":"canceled"}"#, r#"Failed("", "")"#),
        (r#"{"type":"status","state":"Rejected","text":"no"}"#, r#"Rejected("no")"#),
        (r#"{"type":"status","state":"input-required","text":"which?"}"#, r#"Question("which?")"#),
        (
            r#"{"type":"status","state":"auth_required","message":"log in"}"#,
            r#"Auth(None, "log in")"#,
        ),
        (
            r#"{"type":"status","state":"COMPLETED","text":"done"}"#,
            r#"Status("completed", "done")"#,
        ),
        (r#"{"type":"status","state":"working","text":"at it"}"#, r#"Status("working", "at it")"#),
        (r#"{"type":"status","message":"at it"}"#, r#"Status("", "at it")"#),
        (
            r#"{"type":"status","state":"failed_over","text":"at it"}"#,
            r#"Status("failed_over", "at it")"#,
        ),
        (r#"{"type":"failed","text":"why"}"#, r#"Failed("why", "")"#),
        (r#"{"type":"failed","message":null,"error":{"message":"why"}}"#, r#"Failed("why", "")"#),
        (r#"{"type":"failed","message":"","error":"why"}"#, r#"Failed("why", "")"#),
        (
            r#"{"type":"status","state":"failed","parts":[{"text":"one"},{"text":"two"}]}"#,
            r#"Failed("one two", "")"#,
        ),
        (
            r#"{"type":"status","state":"failed","message":{"role":"agent","parts":[{"text":"why"}]}}"#,
            r#"Failed("why", "")"#,
        ),
        (
            r#"{"type":"status","state":"input-required","message":{"parts":[{"text":"which?"}]}}"#,
            r#"Question("which?")"#,
        ),
        (
            r#"{"type":"status","state":"completed","message":{"parts":[{"text":"done"}]}}"#,
            r#"Status("completed", "done")"#,
        ),
        (r#"{"type":"failed","message":{"text":"disk full"}}"#, r#"Failed("disk full", "")"#),
        (r#"{"type":"failed","message":{"message":"disk full"}}"#, r#"Failed("disk full", "")"#),
        (
            r#"{"type":"status","state":"completed","message":{"text":"done"}}"#,
            r#"Status("completed", "done")"#,
        ),
        (r#"{"type":"failed","message":"why","text":"more"}"#, r#"Failed("why", "")"#),
        (r#"{"type":"rejected","text":"no"}"#, r#"Rejected("no")"#),
        (r#"{"type":"input_required","message":"which?"}"#, r#"Question("which?")"#),
        (
            r#"{"type":"auth_required","url":"https://a.example","message":"log in"}"#,
            r#"Auth(Some("https://a.example"), "log in")"#,
        ),
    ] {
        let event = read_valid_event(line).unwrap_or_else(|| panic!("{line}"));
        assert_eq!(summary(event), expected, "{line}");
    }
}

fn summary(event: ProgramEvent) -> String {
    let text = |content: Option<EventContent>| {
        let parts = content.and_then(EventContent::into_parts).unwrap_or_default();
        let texts = parts.into_iter().map(|part| match part {
            ReportedPart::Part(Part {
                content: Content::Text(text) | Content::Url(text), ..
            }) => text,
            ReportedPart::Part(Part { content: Content::Data(data), .. }) => data.to_string(),
            other => format!("{other:?}"),
        });
        texts.collect::<Vec<_>>().join(" ")
    };
    match event {
        ProgramEvent::Failed(failure) => {
            format!("Failed({:?}, {:?})", failure.message, failure.category)
        }
        ProgramEvent::Rejected { message } => format!("Rejected({message:?})"),
        ProgramEvent::InputRequired { content } => format!("Question({:?})", text(content)),
        ProgramEvent::AuthRequired { url, content } => {
            format!("Auth({url:?}, {:?})", text(content))
        }
        ProgramEvent::Status { state, content } => {
            format!("Status({state:?}, {:?})", text(content))
        }
        other => format!("{other:?}"),
    }
}

#[test]
fn content_beside_a_failure_is_progress() {
    for (line, expected) in [
        (
            r#"{"type":"status","state":"failed","text":"why","url":"https://a.example"}"#,
            [r#"Status("", "why https://a.example")"#, r#"Failed("why", "")"#],
        ),
        (
            r#"{"type":"rejected","parts":[{"text":"no"},{"data":{"n":1}}]}"#,
            [r#"Status("", "no {\"n\":1}")"#, r#"Rejected("no")"#],
        ),
        (
            r#"{"type":"status","state":"failed","message":{"parts":[{"text":"why"},{"data":[7]}]}}"#,
            [r#"Status("", "why [7]")"#, r#"Failed("why", "")"#],
        ),
        (r#"{"type":"failed","data":[1]}"#, [r#"Status("", "[1]")"#, r#"Failed("", "")"#]),
    ] {
        let events: Vec<_> = read_events(line).into_iter().map(summary).collect();
        assert_eq!(events, expected, "{line}");
    }
}
