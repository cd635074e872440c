//! Tests with recorded transcripts of real agents.

use algonius_protocols::ProtocolKind;
use serde_json::{Value, json};

use crate::step_text::step_text;
use crate::timeline::{TimelineEvent, check_every_crash, new_connection, run_timeline, sent_bytes};
use crate::transcript::{
    TranscriptMessage, normalize_client_message, read_transcript, transcript_events,
    transcript_folder,
};

/// Environment variable that makes the tests write the expected steps instead of comparing them.
const REWRITE_VARIABLE: &str = "ALGONIUS_REWRITE_SNAPSHOTS";

/// Recorded transcripts with their protocols.
pub(crate) const TRANSCRIPTS: &[(ProtocolKind, &str)] = &[
    (ProtocolKind::Acp, "claude/session"),
    (ProtocolKind::Acp, "claude/load"),
    (ProtocolKind::Acp, "claude/consent"),
    (ProtocolKind::Acp, "codex/session"),
    (ProtocolKind::Acp, "codex/load"),
    (ProtocolKind::Acp, "codex/zed"),
    (ProtocolKind::Acp, "codex/zed-load"),
    (ProtocolKind::Acp, "codex/consent"),
    (ProtocolKind::Acp, "codex/resume-after-kill"),
    (ProtocolKind::Acp, "copilot/session"),
    (ProtocolKind::Acp, "copilot/load"),
    (ProtocolKind::Acp, "copilot/consent"),
    (ProtocolKind::Acp, "gemini/session"),
    (ProtocolKind::Acp, "gemini/load"),
    (ProtocolKind::Acp, "gemini/consent"),
    (ProtocolKind::Acp, "opencode/session"),
    (ProtocolKind::Acp, "opencode/load"),
    (ProtocolKind::Acp, "opencode/consent"),
    (ProtocolKind::Acp, "qwen/session"),
    (ProtocolKind::Acp, "qwen/load"),
    (ProtocolKind::CodexAppServer, "turns"),
    (ProtocolKind::ClaudeControl, "allow"),
];

fn all_transcripts() -> Vec<(ProtocolKind, &'static str, Vec<TranscriptMessage>, Vec<TimelineEvent>)>
{
    let load = |(kind, name): &(ProtocolKind, &'static str)| {
        let messages = read_transcript(*kind, name);
        let events = transcript_events(&messages);
        (*kind, *name, messages, events)
    };
    TRANSCRIPTS.iter().map(load).collect()
}

#[test]
fn every_transcript_gives_the_expected_steps() {
    for (kind, name, _, events) in all_transcripts() {
        let steps = run_timeline(kind, &events).concat();
        let step_texts: String =
            steps.iter().filter_map(step_text).map(|line| line + "\n").collect();
        let file = transcript_folder(kind).join(format!("{name}.steps"));
        if std::env::var_os(REWRITE_VARIABLE).is_some() {
            std::fs::write(&file, &step_texts).unwrap();
        }
        let expected = std::fs::read_to_string(&file).unwrap_or_default();
        assert_eq!(step_texts, expected, "{name} (set {REWRITE_VARIABLE}=1 to write the file)");
    }
}

/// The recorded client did not know forms, so its refusal of one is not compared.
#[test]
fn the_adapter_sends_what_the_recorded_client_sent() {
    for (kind, name, messages, events) in all_transcripts() {
        let written = sent_bytes(&run_timeline(kind, &events).concat());
        let lines = written.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        let lines = lines
            .map(|line| normalize_client_message(&serde_json::from_slice::<Value>(line).unwrap()));
        let recorded_messages = messages.iter().filter(|message| message.is_from_client);
        let recorded_messages =
            recorded_messages.map(|message| match normalize_client_message(&message.value) {
                refusal if is_form_refusal(&messages, &refusal) => {
                    json!({"jsonrpc": "2.0", "id": refusal["id"], "result": {"action": "decline"}})
                }
                other => other,
            });
        assert_eq!(lines.collect::<Vec<_>>(), recorded_messages.collect::<Vec<_>>(), "{name}");
    }
}

fn is_form_refusal(messages: &[TranscriptMessage], message: &Value) -> bool {
    let is_form = |it: &TranscriptMessage| {
        it.value["method"] == "elicitation/create" && it.value["id"] == message["id"]
    };
    message.get("error").is_some() && messages.iter().any(is_form)
}

#[test]
fn pieces_of_one_byte_give_the_same_steps() {
    for (kind, name, _, events) in all_transcripts() {
        let (mut unsplit_connection, mut bytewise_connection) =
            (new_connection(kind), new_connection(kind));
        for event in &events {
            match event {
                TimelineEvent::Client(command) => {
                    assert_eq!(
                        unsplit_connection.handle_command(command.clone()),
                        bytewise_connection.handle_command(command.clone())
                    );
                }
                TimelineEvent::Agent(bytes) => {
                    let steps: Vec<_> = bytes
                        .iter()
                        .flat_map(|byte| bytewise_connection.handle_output(&[*byte]))
                        .collect();
                    assert_eq!(unsplit_connection.handle_output(bytes), steps, "{name}");
                }
            }
        }
    }
}

#[test]
fn a_crash_at_any_event_changes_nothing() {
    for (kind, _, _, events) in all_transcripts() {
        check_every_crash(kind, &events);
    }
}
