//! Tests of growing artifacts: what is shown and when, and that no split reveals what the whole text hides.

use std::sync::{Arc, LazyLock};

use algonius_redact::Redactor;
use proptest::prelude::*;
use serde_json::json;

use super::{ArtifactPiece, ArtifactStream, MAX_OPEN_TEXTS};
use crate::decide::output::redact_parts::assign_ranges;
use crate::model::execution::AttemptId;
use crate::model::execution::content::{Content, Part, PartKind};
use crate::model::execution::event::{TextChannel, TextRange};

const SECRET: &str = "correct-horse-battery";

/// Id, parts, `append` and `last` of a piece.
type VisiblePiece = (String, Vec<(PartKind, String)>, bool, bool);

/// Redactor, built once because the construction is expensive.
static REDACTOR: LazyLock<Arc<Redactor>> =
    LazyLock::new(|| Arc::new(Redactor::new([SECRET.to_owned()])));

fn artifact_stream() -> ArtifactStream {
    ArtifactStream::new(Arc::clone(&REDACTOR))
}

fn artifact_piece(id: &str, parts: Vec<Part>, append: bool, last: bool) -> ArtifactPiece<Part> {
    ArtifactPiece { id: id.to_owned(), name: None, description: None, parts, append, last }
}

fn first_piece(id: &str, text: &str) -> ArtifactPiece<Part> {
    artifact_piece(id, vec![Part::text(text)], false, false)
}

fn next_piece(id: &str, text: &str) -> ArtifactPiece<Part> {
    artifact_piece(id, vec![Part::text(text)], true, false)
}

fn last_piece(id: &str, text: &str) -> ArtifactPiece<Part> {
    artifact_piece(id, vec![Part::text(text)], true, true)
}

fn data_part() -> Part {
    Part { content: Content::Data(json!([])), filename: None, media_type: None }
}

/// Returns the visible pieces of all events, including the end.
fn visible_pieces(
    input_pieces: impl IntoIterator<Item = ArtifactPiece<Part>>,
) -> Vec<VisiblePiece> {
    let mut stream = artifact_stream();
    let mut pieces: Vec<_> =
        input_pieces.into_iter().flat_map(|piece| stream.push(piece)).collect();
    pieces.extend(stream.finish());
    let visible = pieces.into_iter().map(|ArtifactPiece { id, parts, append, last, .. }| {
        let attempt_id = AttemptId::FIRST;
        let stored = assign_ranges(
            parts,
            TextRange { attempt_id, channel: TextChannel::Parts, from: 0, to: 0 },
        );
        let to_index = |offset| usize::try_from(offset).unwrap();
        let text_in_range = |range: TextRange| {
            stored.text.get(to_index(range.from)..to_index(range.to)).unwrap().to_owned()
        };
        (
            id,
            stored.parts.iter().map(|piece| (piece.kind, text_in_range(piece.text))).collect(),
            append,
            last,
        )
    });
    visible.collect()
}

fn visible_piece(id: &str, text: &str, append: bool, last: bool) -> VisiblePiece {
    (id.to_owned(), vec![(PartKind::Text, text.to_owned())], append, last)
}

#[test]
fn a_secret_split_across_chunks_is_masked() {
    let input_pieces =
        [first_piece("a", "so\nit is correct-hor"), last_piece("a", "se-battery, yes")];
    let expected = [
        visible_piece("a", "so\n", false, false),
        visible_piece("a", "it is ***, yes", true, true),
    ];
    assert_eq!(visible_pieces(input_pieces), expected);
}

#[test]
fn other_artifacts_do_not_hide_a_split_secret() {
    let input_pieces = [
        first_piece("a", "correct-hor"),
        artifact_piece("b", vec![Part::text("whole")], false, true),
        first_piece("c", "correct-"),
        last_piece("a", "se-battery"),
        last_piece("c", "er"),
    ];
    let expected = [
        visible_piece("a", "", false, false),
        visible_piece("b", "whole", false, true),
        visible_piece("c", "", false, false),
        visible_piece("a", "***", true, true),
        visible_piece("c", "correct-er", true, true),
    ];
    assert_eq!(visible_pieces(input_pieces), expected);
}

#[test]
fn an_unchanged_chunk_is_suppressed_but_the_end_is_sent() {
    let input_pieces =
        [first_piece("a", "o"), next_piece("a", "n"), next_piece("a", "e\n"), last_piece("a", "")];
    let expected = [
        visible_piece("a", "", false, false),
        visible_piece("a", "one\n", true, false),
        visible_piece("a", "", true, true),
    ];
    assert_eq!(visible_pieces(input_pieces), expected);
}

#[test]
fn an_open_artifact_is_closed_with_its_held_back_text() {
    let input_pieces =
        [first_piece("a", "one\ntw"), first_piece("b", "three\n"), next_piece("a", "o")];
    let expected = [
        visible_piece("a", "one\n", false, false),
        visible_piece("b", "three\n", false, false),
        visible_piece("b", "", true, true),
        visible_piece("a", "two", true, true),
    ];
    assert_eq!(visible_pieces(input_pieces), expected);
}

#[test]
fn a_data_part_ends_the_text_before_it() {
    let mixed_parts = vec![Part::text("se-battery "), data_part(), Part::text("and correct-hor")];
    let input_pieces = [
        first_piece("a", "correct-hor"),
        artifact_piece("a", mixed_parts, true, false),
        next_piece("a", "ror"),
    ];
    let visible_text = |text: &str| (PartKind::Text, text.to_owned());
    let parts = vec![visible_text("*** "), (PartKind::Data, "[]".to_owned())];
    let expected = [
        visible_piece("a", "", false, false),
        ("a".to_owned(), parts, true, false),
        visible_piece("a", "and correct-horror", true, true),
    ];
    assert_eq!(visible_pieces(input_pieces), expected);
}

#[test]
fn consecutive_text_parts_are_redacted_as_one() {
    let mixed_parts = vec![data_part(), Part::text("correct-hor"), Part::text("se-battery")];
    let parts = vec![(PartKind::Data, "[]".to_owned()), (PartKind::Text, "***".to_owned())];
    assert_eq!(
        visible_pieces([artifact_piece("a", mixed_parts, true, true)]),
        [("a".to_owned(), parts, true, true)]
    );
}

#[test]
fn a_replaced_artifact_releases_its_held_back_text() {
    let input_pieces =
        [first_piece("a", "old"), artifact_piece("a", vec![Part::text("new")], false, true)];
    let expected = [
        visible_piece("a", "", false, false),
        visible_piece("a", "old", true, false),
        visible_piece("a", "new", false, true),
    ];
    assert_eq!(visible_pieces(input_pieces), expected);
}

#[test]
fn too_many_open_texts_release_the_least_recently_used() {
    let mut stream = artifact_stream();
    for number in 0..MAX_OPEN_TEXTS {
        assert_eq!(stream.push(first_piece(&number.to_string(), "held")).len(), 1);
    }
    stream.push(next_piece("0", " on"));
    let released = stream.push(first_piece("new", "held"));
    let ids: Vec<_> = released.iter().map(|piece| (piece.id.as_str(), piece.last)).collect();
    assert_eq!(ids, [("new", false), ("1", false)]);
    assert_eq!(stream.finish().len(), MAX_OPEN_TEXTS);
}

proptest! {
    #[test]
    fn redacted_chunks_equal_the_redacted_whole(
        words in prop::collection::vec(prop::sample::select(vec![
            "see ", "correct-horse-battery", "correct-horse", "\n", "password: ", "Hunter22", " x",
        ]), 1..12),
        cuts in prop::collection::vec(0_usize..200, 0..6),
    ) {
        let text = words.concat();
        let mut boundaries: Vec<_> = cuts.into_iter().map(|cut| cut.min(text.len())).collect();
        boundaries.extend([0, text.len()]);
        boundaries.sort_unstable();
        let pieces = boundaries.windows(2).map(|range| text.get(range[0]..range[1]).unwrap());
        let mut input_pieces: Vec<_> = pieces.map(|piece| next_piece("a", piece)).collect();
        input_pieces[0].append = false;
        let visible_parts = visible_pieces(input_pieces).into_iter().flat_map(|visible| visible.1);
        let visible_text: String = visible_parts.map(|part| part.1).collect();
        prop_assert_eq!(visible_text, REDACTOR.redact(&text).into_owned());
    }
}
