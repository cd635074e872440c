//! Tests of ACP with answers that are more than text, or have another form.

use algonius_protocols::{AnswerAttachment, ContentValue, ProtocolStep};
use serde_json::{Value, json};

use crate::scripted_connection::{SESSION_KEY, ScriptedConnection};

/// Content of another form than one block of text.
#[test]
fn content_of_another_form_is_read_or_lost_but_never_ignored() {
    let text_block = |text: &str| json!({"type": "text", "text": text});
    let content_lost_step = |content: &Value| {
        let text = content.to_string();
        let reason = "has a content of unknown form".to_owned();
        format!("{:?}", ProtocolStep::ContentLost { reason, text })
    };
    let odd_text = json!({"type": "text", "text": 7});
    let null_text = json!({"type": "text", "text": null});
    for (kind, content, expected) in [
        (
            "agent_message_chunk",
            json!([text_block("a"), text_block(""), text_block("b")]),
            vec!["Answer None \"a\"".to_owned(), "Answer None \"b\"".to_owned()],
        ),
        ("agent_message_chunk", odd_text.clone(), vec![content_lost_step(&odd_text)]),
        ("agent_message_chunk", json!("words"), vec![content_lost_step(&json!("words"))]),
        (
            "agent_message_chunk",
            json!({"type": "text"}),
            vec![content_lost_step(&json!({"type": "text"}))],
        ),
        (
            "agent_message_chunk",
            json!({"text": "a"}),
            vec![content_lost_step(&json!({"text": "a"}))],
        ),
        ("agent_message_chunk", null_text.clone(), vec![content_lost_step(&null_text)]),
        ("agent_thought_chunk", null_text.clone(), vec![]),
        ("agent_thought_chunk", Value::Null, vec![]),
        (
            "agent_message_chunk",
            json!({"type": "image"}),
            vec![content_lost_step(&json!({"type": "image"}))],
        ),
    ] {
        let mut script = ScriptedConnection::with_running_turn();
        script.clear_messages_and_steps();
        script.receive_update(&json!({"sessionUpdate": kind, "content": content}));
        assert_eq!(script.step_texts, expected, "{content}");
    }
    for content in [Value::Null, json!([])] {
        let mut script = ScriptedConnection::with_running_turn();
        script.receive_update(&json!({"sessionUpdate": "agent_message_chunk", "content": content}));
        assert!(script.last_step_text().contains("has no content"), "{content}");
    }
    for (kind, content) in
        [("agent_message_chunk", json!({"type": "hologram"})), ("agent_thought_chunk", odd_text)]
    {
        let mut script = ScriptedConnection::with_running_turn();
        script.receive_update(&json!({"sessionUpdate": kind, "content": content}));
        assert!(script.last_step_text().contains("is not shown"), "{content}");
    }
}

#[test]
fn answer_content_that_is_no_text_is_delivered() {
    let content_step = |value, name: Option<&str>, media_type: Option<&str>| {
        let (name, media_type) = (name.map(str::to_owned), media_type.map(str::to_owned));
        let content = Box::new(AnswerAttachment { value, name, media_type });
        format!("{:?}", ProtocolStep::Content { session: SESSION_KEY, content })
    };
    let bytes = || ContentValue::Base64("aGk=".to_owned());
    let url = || ContentValue::Url("https://a.example/b.txt".to_owned());
    for (block, expected) in [
        (
            json!({"type": "image", "data": "aGk=", "mimeType": "image/png"}),
            content_step(bytes(), None, Some("image/png")),
        ),
        (json!({"type": "audio", "data": "aGk="}), content_step(bytes(), None, None)),
        (
            json!({"type": "image", "data": "", "uri": "https://a.example/b.txt"}),
            content_step(url(), Some("b.txt"), None),
        ),
        (
            json!({"type": "image", "uri": "data:image/png;base64,aGk="}),
            content_step(ContentValue::Base64("data:image/png;base64,aGk=".to_owned()), None, None),
        ),
        (
            json!({"type": "resource_link", "uri": "s3://bucket/b.txt"}),
            content_step(ContentValue::Url("s3://bucket/b.txt".to_owned()), Some("b.txt"), None),
        ),
        (
            json!({"type": "resource_link", "uri": "https://a.example/b.txt", "name": "notes"}),
            content_step(url(), Some("notes"), None),
        ),
        (
            json!({"type": "image", "uri": "https://a.example/b.txt?signature=x#top"}),
            content_step(
                ContentValue::Url("https://a.example/b.txt?signature=x#top".to_owned()),
                Some("b.txt"),
                None,
            ),
        ),
        (
            json!({"type": "resource", "resource": {"uri": "file:///c.txt", "text": "words"}}),
            content_step(ContentValue::Text("words".to_owned()), Some("c.txt"), None),
        ),
        (
            json!({"type": "resource", "resource": {"uri": "x", "blob": "aGk=", "mimeType": "a/b"}}),
            content_step(bytes(), None, Some("a/b")),
        ),
    ] {
        let mut script = ScriptedConnection::with_running_turn();
        script.receive_update(&json!({"sessionUpdate": "agent_message_chunk", "content": block}));
        assert_eq!(script.step_texts, [expected], "{block}");
        // Reasoning is not delivered.
        script.receive_update(&json!({"sessionUpdate": "agent_thought_chunk", "content": block}));
        assert!(script.last_step_text().contains("is not shown"), "{block}");
    }
}

#[test]
fn an_update_without_a_kind_is_lost_only_with_content() {
    for (update, is_lost) in [
        (json!({"content": {"type": "text", "text": "a"}}), true),
        (json!({"sessionUpdate": 7, "content": "words"}), true),
        (json!({"sessionUpdate": null, "content": null}), false),
        (json!({"content": []}), false),
        (json!({"sessionUpdate": "of_a_later_release", "content": []}), false),
        (json!({}), false),
    ] {
        let mut script = ScriptedConnection::with_running_turn();
        script.receive_update(&update);
        let has_lost_content = script.step_texts.iter().any(|text| text.starts_with("ContentLost"));
        assert_eq!(has_lost_content, is_lost, "{update}");
    }
}

#[test]
fn an_address_on_the_machine_of_the_agent_is_not_delivered() {
    for block in [
        json!({"type": "resource_link", "uri": "file:///srv/project/out.png", "name": "out.png"}),
        json!({"type": "image", "uri": "out.png"}),
        json!({"type": "image", "uri": "/srv/a:b/out.png"}),
        json!({"type": "resource_link", "uri": "FILE:/srv/out.png"}),
        json!({"type": "resource", "resource": {"uri": "file:///srv/out.png"}}),
    ] {
        let mut script = ScriptedConnection::with_running_turn();
        script.receive_update(&json!({"sessionUpdate": "agent_message_chunk", "content": block}));
        let expected = "Warning { session: SessionKey(0), text: \"a link to a file of the agent's machine is not shown\" }";
        assert_eq!(script.step_texts, [expected], "{block}");
    }
}
