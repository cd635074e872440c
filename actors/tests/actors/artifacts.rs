//! Artifacts that an attempt makes in parts, in virtual time.

use algonius_actors::decide::output::artifact_stream::ArtifactPiece;
use algonius_actors::model::execution::content::Part;
use algonius_actors::model::execution::event::EventKind;
use algonius_actors::model::id::ExecutionId;
use algonius_actors::ports::ledger::Ledger;
use algonius_actors::testing::{ScriptedAttempt, TestTree};

fn piece(id: &str, text: &str, append: bool, last: bool) -> ArtifactPiece<Part> {
    let (id, parts) = (id.to_owned(), vec![Part::text(text)]);
    ArtifactPiece { id, name: None, description: None, parts, append, last }
}

/// What was made: the id, the text, and whether it was the last of it.
async fn artifact_events(tree: &TestTree, id: ExecutionId) -> Vec<(String, String, bool)> {
    let mut artifacts = Vec::new();
    for event in tree.ledger.events(id, 0).await.unwrap() {
        let EventKind::Artifact { id: artifact, pieces, last, .. } = event.data else { continue };
        let mut text = String::new();
        for piece in pieces {
            text += &tree.ledger.text(id, piece.text).await.unwrap();
        }
        artifacts.push((artifact, text, last));
    }
    artifacts
}

fn artifact_event(id: &str, text: &str, last: bool) -> (String, String, bool) {
    (id.to_owned(), text.to_owned(), last)
}

/// The token is put together here, so that no reader of the source takes it for a real one.
fn token_halves() -> [String; 2] {
    [format!("{}{}", "gh", "p_aB3dE5fG7hI9jK1"), "mN2oP4qR6sT8uV0wX2yZ4".to_owned()]
}

#[tokio::test(start_paused = true)]
async fn a_secret_split_across_chunks_is_absent_from_the_ledger() {
    let tree = TestTree::new().await;
    let [first, second] = token_halves();
    let attempt = ScriptedAttempt::ok(5).with_artifacts([
        piece("log", &format!("begun\nwith {first}"), false, false),
        piece("note", "aside", false, true),
        piece("log", &format!("{second} and on\nen"), true, false),
        piece("log", "ded", true, true),
    ]);
    tree.script("work", [attempt]);
    let id = tree.submit("work").await.unwrap();
    assert_eq!(tree.wait_for_end(id).await, "completed");
    let artifacts = artifact_events(&tree, id).await;
    let redacted = artifacts.get(2).map(|artifact| artifact.1.clone()).unwrap_or_default();
    let expected = [
        artifact_event("log", "begun\n", false),
        artifact_event("note", "aside", true),
        artifact_event("log", &redacted, false),
        artifact_event("log", "ended", true),
    ];
    assert_eq!(artifacts, expected);
    assert!(redacted.starts_with("with ") && redacted.ends_with(" and on\n"), "{redacted}");
    assert!(!redacted.contains("E5fG7h") && !redacted.contains("qR6sT8"), "{redacted}");
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn held_back_output_is_recorded_when_the_work_ends() {
    let tree = TestTree::new().await;
    tree.script(
        "work",
        [ScriptedAttempt::ok(5).with_artifacts([piece("log", "one\ntwo", false, false)])],
    );
    let id = tree.submit("work").await.unwrap();
    tree.advance_to(4).await;
    assert_eq!(artifact_events(&tree, id).await, [artifact_event("log", "one\n", false)]);
    assert_eq!(tree.wait_for_end(id).await, "completed");
    assert_eq!(
        artifact_events(&tree, id).await,
        [artifact_event("log", "one\n", false), artifact_event("log", "two", true)]
    );
    tree.end().await;
}
