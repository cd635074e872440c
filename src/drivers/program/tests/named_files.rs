//! Tests of files that a program makes and names in its events.

use algonius_actors::model::code::Code;
use algonius_actors::model::execution::content::PartKind;
use algonius_actors::model::execution::event::{EventKind, TextChannel};
use algonius_actors::model::program::InputMethod;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::events::event_script_program;
use super::fixture::AttemptRecord;

/// Returns the names and bytes of the delivered files, each an artifact of one part.
fn delivered_files(record: &AttemptRecord) -> Vec<(String, Vec<u8>)> {
    let text = record.text(TextChannel::Parts);
    let index = |at| usize::try_from(at).unwrap();
    let files = record.events().into_iter().filter_map(|event| match event {
        EventKind::Artifact { pieces, .. } => {
            let piece = pieces.first().filter(|piece| piece.kind == PartKind::Bytes)?;
            let encoded = text.get(index(piece.text.from)..index(piece.text.to)).unwrap();
            Some((piece.filename.clone().unwrap(), STANDARD.decode(encoded).unwrap()))
        }
        _ => None,
    });
    files.collect()
}

fn warnings(record: &AttemptRecord) -> Vec<&str> {
    let warnings = record.events().into_iter().filter_map(|event| match event {
        EventKind::Warning { message } => Some(message.as_str()),
        _ => None,
    });
    warnings.collect()
}

fn file(name: &str, bytes: &[u8]) -> (String, Vec<u8>) {
    (name.to_owned(), bytes.to_vec())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_named_file_is_delivered_although_its_path_is_reused() {
    let script = r#"mkdir out; printf 'one\377' > out/a.bin
        echo '{"type":"artifact","file":{"path":"out/a.bin"}}'
        until [ -e go ]; do sleep 0.01; done
        printf two > out/a.bin; echo '{"type":"artifact","file":{"path":"out/a.bin","name":"b"}}'"#;
    let fixture = event_script_program(script, &[]);
    let mut attempt = fixture.start().await;
    while !matches!(
        attempt.next_entry().await,
        super::fixture::RecordedEntry::Event(EventKind::Artifact { .. })
    ) {}
    std::fs::write(fixture.home.path().join("go"), "").unwrap();
    assert_eq!(attempt.wait_for_end().await, Ok(()));
    attempt.clean_up().await;
    let record = AttemptRecord { result: Ok(()), entries: attempt.entries };
    assert_eq!(delivered_files(&record), [file("a.bin", b"one\xff"), file("b", b"two")]);
    assert_eq!(warnings(&record), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_in_the_execution_folder_is_delivered_before_cleanup() {
    let script = r#"made="$(dirname "$0")/report.txt"; tr a-z A-Z < "$0" > "$made"
        printf '{"type":"artifact","file":{"path":"%s","media_type":"text/plain"}}' "$made""#;
    let mut fixture = event_script_program(script, &["{{ input_file }}"]).with_input("loud");
    fixture.program.input_method = InputMethod::File;
    let record = fixture.run_to_end().await;
    assert_eq!(
        (record.failure_code(), delivered_files(&record)),
        (None, vec![file("report.txt", b"LOUD")])
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_in_a_named_file_is_masked() {
    let script = r#"printf 'it is correct-horse-battery, yes' > a
        echo '{"type":"artifact","file":{"path":"a"}}'"#;
    let mut fixture = event_script_program(script, &[]);
    fixture.secrets = vec!["correct-horse-battery".to_owned()];
    let record = fixture.run_to_end().await;
    assert_eq!(delivered_files(&record), [file("a", b"it is ***, yes")]);
}

#[tokio::test(flavor = "multi_thread")]
async fn each_undeliverable_file_is_reported_without_its_folder() {
    let script = r#"ln -s /etc/passwd link; mkfifo pipe
        for path in link /etc/passwd pipe . ../../gone gone; do
            printf '{"type":"artifact","parts":[{"text":"see"},{"file":{"path":"%s"}}]}\n' $path
        done"#;
    let record = event_script_program(script, &[]).run_to_end().await;
    assert_eq!(
        (record.failure_code(), delivered_files(&record)),
        (Some(Code::OutputUnreadable), vec![])
    );
    let outside = "was not delivered: it is outside the folders of the agent and of the execution";
    let missing = "the file `gone` was not delivered: it does not exist";
    let expected = [
        &*format!("the file `link` {outside}"),
        &*format!("the file `passwd` {outside}"),
        "the file `pipe` was not delivered: it is not a regular file",
        "a file was not delivered: it is not a regular file",
        missing,
        missing,
    ];
    assert_eq!(warnings(&record), expected);
    assert_eq!(record.result.unwrap_err().message, expected[0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_may_be_delivered_at_a_later_try() {
    let event =
        |name: &str| format!(r#"{{"type":"artifact","id":"{name}","file":{{"path":"{name}"}}}}"#);
    let script =
        r#"printf '%s\n' "$0" "$1"; printf x > a; printf '%s\n' "$0"; $2; printf '%s\n' "$1""#;
    for (command, code) in [("cp a b", None), ("true", Some(Code::OutputUnreadable))] {
        let record =
            event_script_program(script, &[&event("a"), &event("b"), command]).run_to_end().await;
        assert_eq!(record.failure_code(), code, "{command}");
    }
    let failed = r#"{"type":"failed","message":"no quota","category":"quota"}"#;
    let script = r#"printf '%s\n' "$0" "$1""#;
    let record = event_script_program(script, &[&event("a"), failed]).run_to_end().await;
    assert_eq!(
        record.failure_code(),
        Some(Code::QuotaExceeded),
        "the program's own failure comes first"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_file_fails_only_a_result() {
    for (event, code) in [
        (r#"{"type":"artifact","file":{"path":"gone"}}"#, Some(Code::OutputUnreadable)),
        (r#"{"type":"message","file":{"path":"gone"}}"#, Some(Code::OutputUnreadable)),
        (
            r#"{"type":"status","state":"completed","file":{"path":"gone"}}"#,
            Some(Code::OutputUnreadable),
        ),
        (r#"{"type":"input_required","file":{"path":"gone"}}"#, Some(Code::OutputUnreadable)),
        (r#"{"type":"status","file":{"path":"gone"}}"#, None),
    ] {
        let script = r#"echo '{"type":"text","text":"done"}'; printf '%s\n' "$0""#;
        let record = event_script_program(script, &[event]).run_to_end().await;
        assert_eq!(record.failure_code(), code, "{event}");
        assert_eq!(warnings(&record), ["the file `gone` was not delivered: it does not exist"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn delivered_files_share_the_output_limit() {
    let script = r#"head -c 3000 /dev/zero > a
        for _ in 1 2 3; do echo '{"type":"artifact","file":{"path":"a"}}'; done"#;
    let mut fixture = event_script_program(script, &[]);
    fixture.spec.limits.sizes.max_output_bytes = 9_000;
    let record = fixture.run_to_end().await;
    assert_eq!(
        (record.failure_code(), delivered_files(&record).len()),
        (Some(Code::OutputTooLarge), 2)
    );
    let clause = "it exceeds the rest of the agent's output limit";
    assert_eq!(warnings(&record), [format!("the file `a` was not delivered: {clause}")]);
    let truncation_event =
        EventKind::OutputTruncated { channel: TextChannel::Parts, dropped: 4000 };
    assert!(record.events().contains(&&truncation_event));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_too_large_ends_its_artifact() {
    let script = r#"head -c 9000 /dev/zero > big
        echo '{"type":"artifact","id":"a","text":"one","last":false}'
        echo '{"type":"artifact","id":"a","file":{"path":"big"},"append":true,"last":false}'
        echo '{"type":"artifact","id":"a","text":"three","append":true}'
        echo '{"type":"artifact","id":"b","text":"another"}'"#;
    let mut fixture = event_script_program(script, &[]);
    fixture.spec.limits.sizes.max_output_bytes = 9_000;
    let record = fixture.run_to_end().await;
    let pieces = record.events().into_iter().filter_map(|event| match event {
        EventKind::Artifact { id, pieces, .. } => {
            Some((id.as_str(), pieces.iter().map(|piece| piece.dropped).sum::<u64>()))
        }
        _ => None,
    });
    assert_eq!(pieces.collect::<Vec<_>>(), [("a", 0), ("b", 0), ("a", 12_000 + 263 - 2)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_undelivered_file_begins_an_artifact_of_its_own() {
    let script = r#"echo '{"type":"artifact","text":"A"}'
        echo '{"type":"artifact","file":{"path":"gone"},"last":false}'
        echo '{"type":"artifact","append":true,"text":"more of B"}'"#;
    let record = event_script_program(script, &[]).run_to_end().await;
    let ids: Vec<_> = record
        .events()
        .into_iter()
        .filter_map(|event| match event {
            EventKind::Artifact { id, .. } => Some(id.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(ids, ["artifact-1", "artifact-2"]);
}
