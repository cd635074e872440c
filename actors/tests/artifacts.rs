//! What an attempt makes piece by piece, in virtual time.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use algonius_actors::decide::output::artifact_stream::ArtifactPiece;
use algonius_actors::model::execution::content::Part;
use algonius_actors::model::execution::event::EventKind;
use algonius_actors::model::id::ExecutionId;
use algonius_actors::ports::ledger::Ledger;
use algonius_actors::testing::{Act, World};

fn piece(id: &str, text: &str, append: bool, last: bool) -> ArtifactPiece<Part> {
    let (id, parts) = (id.to_owned(), vec![Part::text(text)]);
    ArtifactPiece { id, name: None, description: None, parts, append, last }
}

/// What was made: the id, the text, and whether it was the last of it.
async fn made(world: &World, id: ExecutionId) -> Vec<(String, String, bool)> {
    let mut made = Vec::new();
    for event in world.ledger.events(id, 0).await.unwrap() {
        let EventKind::Artifact { id: artifact, pieces, last, .. } = event.data else { continue };
        let mut text = String::new();
        for piece in pieces {
            text += &world.ledger.text(id, piece.text).await.unwrap();
        }
        made.push((artifact, text, last));
    }
    made
}

fn told(id: &str, text: &str, last: bool) -> (String, String, bool) {
    (id.to_owned(), text.to_owned(), last)
}

/// The token is put together here, so that no reader of the source takes it for a real one.
fn halves() -> [String; 2] {
    [format!("{}{}", "gh", "p_aB3dE5fG7hI9jK1"), "mN2oP4qR6sT8uV0wX2yZ4".to_owned()]
}

#[tokio::test(start_paused = true)]
async fn a_secret_split_across_chunks_is_absent_from_the_ledger() {
    let world = World::new().await;
    let [first, second] = halves();
    let acts = Act::ok(5).making([
        piece("log", &format!("begun\nwith {first}"), false, false),
        piece("note", "aside", false, true),
        piece("log", &format!("{second} and on\nen"), true, false),
        piece("log", "ded", true, true),
    ]);
    world.script("work", [acts]);
    let id = world.submit("work").await.unwrap();
    assert_eq!(world.wait(id).await, "completed");
    let made = made(&world, id).await;
    let masked = made.get(2).map(|made| made.1.clone()).unwrap_or_default();
    let expected = [
        told("log", "begun\n", false),
        told("note", "aside", true),
        told("log", &masked, false),
        told("log", "ended", true),
    ];
    assert_eq!(made, expected);
    assert!(masked.starts_with("with ") && masked.ends_with(" and on\n"), "{masked}");
    assert!(!masked.contains("E5fG7h") && !masked.contains("qR6sT8"), "{masked}");
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn held_back_output_is_recorded_when_the_work_ends() {
    let world = World::new().await;
    world.script("work", [Act::ok(5).making([piece("log", "one\ntwo", false, false)])]);
    let id = world.submit("work").await.unwrap();
    world.at(4).await;
    assert_eq!(made(&world, id).await, [told("log", "one\n", false)]);
    assert_eq!(world.wait(id).await, "completed");
    assert_eq!(made(&world, id).await, [told("log", "one\n", false), told("log", "two", true)]);
    world.end().await;
}
