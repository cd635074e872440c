//! Tests of ACP openings: settings, stored conversations and replays of an opening.

use algonius_protocols::{Command, ProtocolKind, SessionStart};
use serde_json::{Value, json};

use crate::scripted_connection::{
    SESSION_KEY, ScriptedConnection, new_session_command, open_command,
};
use crate::timeline::{TimelineEvent, check_every_crash, new_connection};

#[test]
fn an_unconfirmed_mode_fails_the_opening() {
    let mut refusal_script = ScriptedConnection::start(&json!({}));
    refusal_script.run_command(new_session_command(Some("ask")));
    refusal_script.receive_response(&json!({"sessionId": "s", "modes": {"currentModeId": "auto"}}));
    refusal_script.receive_error_response(-32602, "no such mode");
    let mut contradiction_script = ScriptedConnection::start(&json!({}));
    contradiction_script.run_command(new_session_command(Some("ask")));
    contradiction_script
        .receive_response(&json!({"sessionId": "s", "modes": {"currentModeId": "auto"}}));
    contradiction_script
        .receive_update(&json!({"sessionUpdate": "current_mode_update", "currentModeId": "auto"}));
    contradiction_script.receive_response(&json!({}));
    for script in [refusal_script, contradiction_script] {
        let expected = "open failed ModeNotConfirmed { requested: \"ask\" }";
        assert!(script.last_step_text().starts_with(expected), "{:?}", script.step_texts);
    }
}

#[test]
fn a_mode_without_a_list_is_set_as_an_option() {
    let mut script = ScriptedConnection::start(&json!({}));
    let mut command = new_session_command(Some("ask"));
    if let Command::Open { options, model, .. } = &mut command {
        *model = Some("m2".to_owned());
        options.push(("fast".to_owned(), "true".to_owned()));
    }
    script.run_command(command);
    let option = |id: &str, category: &str, value: Value, kind: &str| json!({"id": id, "category": category, "currentValue": value, "type": kind, "options": []});
    let options = |mode: &str| {
        json!([
            option("agent-mode", "mode", json!(mode), "select"),
            option("llm", "model", json!("m1"), "select"),
            option("fast", "model_config", json!(false), "boolean"),
        ])
    };
    script.clear_messages_and_steps();
    script.receive_response(&json!({"sessionId": "s", "configOptions": options("auto")}));
    script.receive_response(&json!({"configOptions": options("ask")}));
    script.receive_response(&json!({}));
    script.receive_response(&json!({}));
    let set_params: Vec<_> = script.sent_messages.iter().map(|it| it["params"].clone()).collect();
    let expected = [
        json!({"sessionId": "s", "configId": "agent-mode", "value": "ask"}),
        json!({"sessionId": "s", "configId": "llm", "value": "m2"}),
        json!({"sessionId": "s", "configId": "fast", "value": true, "type": "boolean"}),
    ];
    assert_eq!(set_params, expected);
    assert_eq!(script.last_step_text(), "opened s mode=Some(\"ask\") of [] model=Some(\"m2\")");
}

#[test]
fn an_unknown_session_is_recognized_by_code_or_text() {
    let cases = [
        (-32002, "Session x not found", "UnknownSession"),
        (-32602, "Invalid params: session not found", "UnknownSession"),
        (-32603, "Internal error: no rollout found for thread id x", "UnknownSession"),
        (-32602, "Session x is already loaded", "Other"),
        (-32000, "Authentication required", "Authentication"),
        (-32603, "Internal error: 401 Unauthorized", "Authentication"),
    ];
    for (code, message, fault) in cases {
        let mut script = ScriptedConnection::start(&json!({"loadSession": true}));
        script.run_command(open_command(SessionStart::Resume { native_id: "x".to_owned() }, None));
        script.receive_error_response(code, message);
        assert_eq!(script.step_texts, [format!("open failed {fault}: {message}")]);
    }
}

#[test]
fn a_resumed_session_sets_its_mode_again() {
    for (capabilities, method) in [
        (json!({"loadSession": true, "sessionCapabilities": {"resume": {}}}), "session/resume"),
        (json!({"loadSession": true}), "session/load"),
    ] {
        let mut script = ScriptedConnection::start(&capabilities);
        script.run_command(open_command(
            SessionStart::Resume { native_id: "s".to_owned() },
            Some("ask"),
        ));
        assert_eq!(script.last_sent_message()["method"], method);
        let chunk = json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "old"}});
        script.receive_update(&chunk);
        script.receive_response(&json!({"modes": {"currentModeId": "auto", "availableModes": []}}));
        assert_eq!(script.last_sent_message()["method"], "session/set_mode");
        script.receive_response(&json!({}));
        assert_eq!(script.step_texts, ["opened s mode=Some(\"ask\") of [] model=None"]);
    }
    let mut script = ScriptedConnection::start(&json!({}));
    script.run_command(open_command(SessionStart::Resume { native_id: "s".to_owned() }, None));
    assert_eq!(script.step_texts, ["open failed Other: the agent cannot resume a conversation"]);
}

#[test]
fn updates_before_the_response_follow_the_opening() {
    let mut script = ScriptedConnection::start(&json!({}));
    script.run_command(new_session_command(Some("ask")));
    let notice = |text: &str| json!({"sessionUpdate": "notice", "message": text});
    script.receive_update(&notice("early"));
    script.receive_response(&json!({"sessionId": "s"}));
    script.receive_update(&notice("during"));
    script.receive_response(&json!({}));
    let warning = |text| format!("Warning {{ session: SessionKey(0), text: {text:?} }}");
    let expected = [
        "opened s mode=Some(\"ask\") of [] model=None".to_owned(),
        warning("early"),
        warning("during"),
    ];
    assert_eq!(script.step_texts, expected);
}

#[test]
fn an_early_update_without_room_is_reported() {
    let mut script = ScriptedConnection::start(&json!({}));
    script.run_command(new_session_command(None));
    let notice = |number: u32| json!({"sessionUpdate": "notice", "message": number.to_string()});
    (0..1000).for_each(|number| script.receive_update(&notice(number)));
    assert_eq!(script.step_texts, Vec::<String>::new());
    script.receive_update(&notice(1000));
    assert!(script.last_step_text().contains("too many updates"), "{}", script.last_step_text());
    script.receive_update(&notice(1001)); // Reported once.
    script.receive_response(&json!({"sessionId": "s"}));
    assert_eq!(script.step_texts.len(), 1 + 1 + 1000);
}

#[test]
fn a_long_history_of_a_resumed_session_is_no_fault() {
    let mut script = ScriptedConnection::start(&json!({"loadSession": true}));
    script.run_command(open_command(SessionStart::Resume { native_id: "s".to_owned() }, None));
    let chunk =
        json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "old"}});
    (0..2000).for_each(|_| script.receive_update(&chunk));
    script.receive_response(&json!({}));
    assert_eq!(script.step_texts, ["opened s mode=None of [] model=None"]);
}

#[test]
fn a_closed_session_ends_its_turn_and_can_be_resumed() {
    let mut script =
        ScriptedConnection::start(&json!({"sessionCapabilities": {"close": {}, "resume": {}}}));
    script.run_command(new_session_command(None));
    script.receive_response(&json!({"sessionId": "s"}));
    script.prompt("go");
    script.clear_messages_and_steps();
    script.run_command(Command::Close { session: SESSION_KEY });
    script.receive_response(&json!({}));
    script.run_command(open_command(SessionStart::Resume { native_id: "s".to_owned() }, None));
    script.receive_response(&json!({}));
    let expected = [
        "end Lost",
        "SessionClosed { session: SessionKey(0) }",
        "opened s mode=None of [] model=None",
    ];
    assert_eq!(script.step_texts, expected);
}

/// The crash happened after the output was read and before the lines for it were written.
#[test]
fn a_replay_sends_the_lines_that_are_missing() {
    let mut script = ScriptedConnection::start(&json!({}));
    script.run_command(new_session_command(Some("ask")));
    let written_before_crash = script.written_bytes.clone();
    script.receive_response(&json!({"sessionId": "s"}));
    let mut restored_connection = new_connection(ProtocolKind::Acp);
    restored_connection.replay_sent_lines(&written_before_crash);
    assert_eq!(restored_connection.handle_command(new_session_command(Some("ask"))), []);
    let steps = restored_connection.handle_output(&script.received_bytes);
    assert_eq!(
        crate::timeline::sent_bytes(&steps),
        script.written_bytes.get(written_before_crash.len()..).unwrap()
    );

    let mut script = ScriptedConnection::with_running_turn();
    let written_before_crash = script.written_bytes.clone();
    script.receive_message(&json!({"id": 0, "method": "fs/read_text_file", "params": {}}));
    let mut restored_connection = new_connection(ProtocolKind::Acp);
    restored_connection.replay_sent_lines(&written_before_crash);
    let steps = restored_connection.handle_output(&script.received_bytes);
    assert_eq!(
        crate::timeline::sent_bytes(&steps),
        script.written_bytes.get(written_before_crash.len()..).unwrap()
    );
}

/// Without the repeated command, the caller must compare the mode.
#[test]
fn a_replay_without_settings_reports_the_current_mode() {
    let mut script = ScriptedConnection::start(&json!({}));
    script.run_command(new_session_command(Some("ask")));
    let written_before_crash = script.written_bytes.clone();
    script.receive_response(&json!({"sessionId": "s", "modes": {"currentModeId": "auto"}}));
    let mut restored_script = ScriptedConnection::start(&json!({}));
    restored_script.connection = new_connection(ProtocolKind::Acp);
    restored_script.connection.replay_sent_lines(&written_before_crash);
    restored_script.receive_bytes(&script.received_bytes);
    assert_eq!(restored_script.last_step_text(), "opened s mode=Some(\"auto\") of [] model=None");
}

#[test]
fn an_agent_of_another_version_fails_initialize() {
    let mut connection = new_connection(ProtocolKind::Acp);
    _ = connection.handle_command(Command::Initialize);
    assert_eq!(connection.handle_command(new_session_command(None)), []);
    let steps = connection.handle_output(b"{\"id\":1,\"result\":{\"protocolVersion\":2}}\n");
    let step_texts: Vec<_> = steps.iter().filter_map(crate::step_text::step_text).collect();
    assert_eq!(step_texts.len(), 2, "{step_texts:?}");
    assert!(step_texts.first().unwrap().starts_with("InitializeFailed"));
    assert_eq!(step_texts.last().unwrap(), "open failed Other: initialize failed");
}

/// A replay knows the prompt of the second session when it handles the end of the first one.
#[test]
fn a_reopened_conversation_keeps_its_turn_in_a_replay() {
    let agent_response = |id: i64, result: &Value| {
        TimelineEvent::Agent(format!("{}\n", json!({"id": id, "result": result})).into_bytes())
    };
    let second_key = algonius_protocols::SessionKey(1);
    let mut resume_command =
        open_command(SessionStart::Resume { native_id: "s".to_owned() }, Some("ask"));
    if let Command::Open { session, .. } = &mut resume_command {
        *session = second_key;
    }
    let capabilities = json!({"sessionCapabilities": {"close": {}, "resume": {}}});
    let events = [
        TimelineEvent::Client(Command::Initialize),
        agent_response(1, &json!({"protocolVersion": 1, "agentCapabilities": capabilities})),
        TimelineEvent::Client(new_session_command(None)),
        agent_response(2, &json!({"sessionId": "s"})),
        TimelineEvent::Client(Command::Close { session: SESSION_KEY }),
        agent_response(3, &json!({})),
        TimelineEvent::Client(resume_command),
        agent_response(4, &json!({})),
        agent_response(5, &json!({})),
        TimelineEvent::Client(Command::Prompt { session: second_key, parts: Vec::new() }),
        agent_response(6, &json!({"stopReason": "end_turn"})),
    ];
    check_every_crash(ProtocolKind::Acp, &events);
}
