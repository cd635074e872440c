//! Tests of the interactive fake agents, with the project's own state machine as its client.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a helper that cannot help fails the test")]

mod client;

use std::fs;

use algonius_protocols::{
    AgentRequestKind, Command, FormAction, OpenFault, ProtocolKind, ProtocolStep, RequestAnswer,
    TurnOutcome,
};
use serde_json::json;

use crate::client::{ProtocolClient, SESSION_KEY};

#[test]
fn a_prompt_without_instructions_is_echoed() {
    let mut client = ProtocolClient::open(&[]);
    assert_eq!(client.run_turn("hello"), "ECHO: hello");
    assert_eq!(client.run_turn("[[say one]] [[think x]] [[burst 2]]"), "one1 2 ");
    assert_eq!(client.turn_outcomes, [TurnOutcome::EndTurn, TurnOutcome::EndTurn]);
}

#[test]
fn a_tool_runs_once_after_permission() {
    let mut client = ProtocolClient::open(&[]);
    client.send_prompt("[[tool Bash command=\"git status\"]] [[say done]]");
    let request = client.wait_for_request();
    let AgentRequestKind::Permission { call, .. } = &request.kind else { panic!("{request:?}") };
    assert_eq!(call.command.as_deref(), Some("git status"));
    assert_eq!(client.executed_tools(), Vec::<String>::new());
    client.answer(&request, RequestAnswer::Allow);
    client.wait_for_turn_end();
    client.send_prompt("[[tool Bash command=other id=second]]");
    let request = client.wait_for_request();
    client.answer(&request, RequestAnswer::Deny { message: None });
    client.wait_for_turn_end();
    assert_eq!(client.executed_tools(), ["call-1\tgit status"]);
    assert_eq!(client.unexpected_answer_count(), 0);
}

#[test]
fn tools_run_unasked_outside_of_the_asking_modes() {
    let mut client = ProtocolClient::open(&[("FAKE_ACP_MODES", "auto,ask")]);
    client.run_turn("[[tool Bash command=a]]");
    client.send_command(Command::SetMode { session: SESSION_KEY, mode: "ask".to_owned() });
    client.send_prompt("[[tool Bash command=b unasked]] [[tool Bash command=c]]");
    let request = client.wait_for_request();
    client.answer(&request, RequestAnswer::Cancel);
    client.wait_for_turn_end();
    assert_eq!(client.executed_tools(), ["call-1\ta", "call-1\tb"]);
}

#[test]
fn two_requests_are_open_at_once() {
    let mut client = ProtocolClient::open(&[]);
    client.send_prompt("[[ask-twice one two]] [[say done]]");
    let (first, second) = (client.wait_for_request(), client.wait_for_request());
    client.answer(&second, RequestAnswer::Allow);
    client.answer(&first, RequestAnswer::Allow);
    client.wait_for_turn_end();
    assert_eq!(client.executed_tools(), ["call-2\ttwo", "call-1\tone"]);
    assert_eq!(client.answer_text, "done");
}

#[test]
fn an_edit_changes_the_file_after_permission() {
    let mut client = ProtocolClient::open(&[]);
    let file = client.folder.path().join("a.txt");
    fs::write(&file, "one two").unwrap();
    client.send_prompt(&format!("[[edit {} two 2]]", file.display()));
    let request = client.wait_for_request();
    let AgentRequestKind::Permission { call, .. } = &request.kind else { panic!("{request:?}") };
    assert_eq!(call.diffs.first().unwrap().new, "2");
    client.answer(&request, RequestAnswer::Allow);
    client.wait_for_turn_end();
    assert_eq!(fs::read_to_string(&file).unwrap(), "one 2");
}

#[test]
fn a_form_returns_its_values() {
    let mut client = ProtocolClient::open(&[]);
    client.send_prompt("[[form \"Which one?\" colour=string]]");
    let request = client.wait_for_request();
    let accept = FormAction::Accept(json!({"colour": "red"}));
    client.answer(&request, RequestAnswer::Form { action: accept });
    client.wait_for_turn_end();
    assert_eq!(client.answer_text, "FORM: {\"colour\":\"red\"}");
    assert_eq!(client.run_turn("[[method fs/read_text_file]]"), "METHOD: -32601");
}

#[test]
fn faulty_requests_are_answered_and_reported() {
    for (prompt, error_count) in [
        ("[[foreign-session]]", 1),
        ("[[reuse-id]]", 1),
        ("[[malformed]]", 1),
        ("[[words hello]]", 1),
        ("[[huge 2000000]]", 1),
        ("[[withdraw]]", 0),
    ] {
        let mut client = ProtocolClient::open(&[]);
        client.run_turn(&format!("{prompt} [[wait 0.05]]"));
        assert_eq!(client.protocol_error_count, error_count, "{prompt}");
        assert_eq!(client.unexpected_answer_count(), 0, "{prompt}");
    }
    let mut client = ProtocolClient::open(&[]);
    client.run_turn("[[late-ask]]");
    client.wait_for_step(|step| matches!(step, ProtocolStep::ProtocolError { .. }));
    client.run_turn("again");
    assert_eq!((client.protocol_error_count, client.unexpected_answer_count()), (1, 0));
}

#[test]
fn a_cancellation_ends_the_turn_unless_it_is_ignored() {
    for setting in ["end", "notify", "wait"] {
        let mut client = ProtocolClient::open(&[("FAKE_ACP_CANCEL", setting)]);
        client.send_prompt("[[tool Bash command=a]]");
        _ = client.wait_for_request();
        client.send_command(Command::Cancel { session: SESSION_KEY });
        client.wait_for_turn_end();
        assert_eq!(client.turn_outcomes, [TurnOutcome::Cancelled], "{setting}");
        assert_eq!(client.unexpected_answer_count(), 0, "{setting}");
    }
    let mut client = ProtocolClient::open(&[]);
    client.send_prompt("[[ignore-cancel]] [[say first]] [[wait 0.1]] [[say second]]");
    client.wait_for_step(|step| matches!(step, ProtocolStep::Text { .. }));
    client.send_command(Command::Cancel { session: SESSION_KEY });
    client.wait_for_turn_end();
    assert_eq!(
        (client.answer_text.as_str(), client.turn_outcomes.as_slice()),
        ("firstsecond", &[TurnOutcome::EndTurn][..])
    );
}

#[test]
fn a_rejection_has_the_effect_of_the_setting() {
    for (setting, text, end) in [
        ("continue", "after", TurnOutcome::EndTurn),
        ("cancelled", "", TurnOutcome::Cancelled),
        ("end", "", TurnOutcome::EndTurn),
    ] {
        let mut client = ProtocolClient::open(&[("FAKE_ACP_AFTER_REJECTION", setting)]);
        client.send_prompt("[[tool Bash command=a]] [[say after]]");
        let request = client.wait_for_request();
        client.answer(&request, RequestAnswer::Deny { message: None });
        client.wait_for_turn_end();
        assert_eq!(
            (client.answer_text.as_str(), &client.turn_outcomes),
            (text, &vec![end]),
            "{setting}"
        );
    }
}

#[test]
fn a_second_process_knows_the_first_turn() {
    for method in ["resume", "load"] {
        let mut client = ProtocolClient::open(&[("FAKE_ACP_RESUME", method)]);
        client.run_turn("remember heron");
        let mut next = client.restart();
        assert_eq!(next.run_turn("[[recall]]"), "remember heron", "{method}");
    }
    let client = ProtocolClient::open(&[("FAKE_ACP_RESUME", "none")]);
    assert_eq!(client.restart_and_resume("x").err(), Some(OpenFault::Other));
    for code in ["-32002", "-32602", "-32603"] {
        let client = ProtocolClient::open(&[("FAKE_ACP_UNKNOWN", code)]);
        assert_eq!(client.restart_and_resume("x").err(), Some(OpenFault::UnknownSession), "{code}");
    }
}

#[test]
fn an_unconfirmed_mode_fails_the_opening() {
    for confirm in ["no", "silent"] {
        let settings = [("FAKE_ACP_CONFIRM", confirm), ("FAKE_ACP_MODES", "auto,ask")];
        let fault = ProtocolClient::start(&settings).open_session(None, Some("ask")).err().unwrap();
        assert_eq!(fault, OpenFault::ModeNotConfirmed { requested: "ask".to_owned() });
    }
}

#[test]
fn the_end_of_the_process_loses_the_turn() {
    let mut client = ProtocolClient::open(&[]);
    client.send_prompt("[[say half]] [[exit 3]]");
    client.wait_for_turn_end();
    assert_eq!(
        (client.answer_text.as_str(), client.turn_outcomes.as_slice()),
        ("half", &[TurnOutcome::Lost][..])
    );
    assert_eq!(client.child.wait().unwrap().code(), Some(3));
    let mut client = ProtocolClient::open(&[]);
    client.run_turn("[[usage input=5 output=2 cost=0.5]] [[auth-error]]");
    let [TurnOutcome::Failed { is_authentication_error: true, .. }] =
        client.turn_outcomes.as_slice()
    else {
        panic!("{:?}", client.turn_outcomes);
    };
}

#[test]
fn the_other_protocols_follow_the_same_instructions() {
    for (role, kind) in [
        ("claude-control", ProtocolKind::ClaudeControl),
        ("codex-app-server", ProtocolKind::CodexAppServer),
    ] {
        let mut client = ProtocolClient::open_role(&[role], kind);
        assert_eq!(client.run_turn("hello"), "ECHO: hello", "{role}");
        assert_eq!(client.run_turn("[[think x]] [[burst 2]] [[recall]]"), "1 2 hello", "{role}");
        client.send_prompt("[[tool Bash command=one]] [[tool Bash command=two]] [[tool Bash command=three unasked]]");
        let request = client.wait_for_request();
        client.answer(&request, RequestAnswer::Allow);
        let request = client.wait_for_request();
        client.answer(&request, RequestAnswer::Deny { message: None });
        client.wait_for_turn_end();
        assert_eq!(client.executed_tools(), ["call-1\tone", "call-3\tthree"], "{role}");
        client.send_prompt("[[malformed]] [[tool Bash command=four]]");
        _ = client.wait_for_request();
        client.send_command(Command::Cancel { session: SESSION_KEY });
        client.wait_for_turn_end();
        client.send_prompt("[[say waits]] [[hang]]");
        client.wait_for_step(|step| matches!(step, ProtocolStep::Text { .. }));
        client.send_command(Command::Cancel { session: SESSION_KEY });
        client.wait_for_turn_end();
        client.run_turn("[[auth-error]]");
        client.run_turn("[[exit 0]]");
        let is_authentication_failure = |end: &TurnOutcome| {
            matches!(end, TurnOutcome::Failed { is_authentication_error: true, .. })
        };
        let [.., hung, cancelled, failure, lost] = client.turn_outcomes.as_slice() else {
            panic!("{role}")
        };
        assert_eq!(
            (hung, cancelled, lost),
            (&TurnOutcome::Cancelled, &TurnOutcome::Cancelled, &TurnOutcome::Lost)
        );
        assert!(is_authentication_failure(failure), "{role}: {failure:?}");
        assert_eq!(
            (
                client.protocol_error_count,
                client.unexpected_answer_count(),
                client.executed_tools().len()
            ),
            (1, 0, 2),
            "{role}"
        );
    }
}
