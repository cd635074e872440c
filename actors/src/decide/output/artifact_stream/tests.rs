//! Tests of growing artifacts: what is shown and when, and that no split reveals what the whole text hides.

use std::sync::{Arc, LazyLock};

use algonius_redact::Redactor;
use proptest::prelude::*;
use serde_json::json;

use super::{ArtifactPiece, Growth, MOST};
use crate::decide::output::redact_parts::place;
use crate::model::execution::AttemptId;
use crate::model::execution::content::{Content, Part, PartKind};
use crate::model::execution::event::{TextChannel, TextRange};

const SECRET: &str = "correct-horse-battery";

/// Id, parts, `append` and `last` of a piece.
type Told = (String, Vec<(PartKind, String)>, bool, bool);

/// Redactor, built once because the construction is expensive.
static REDACTOR: LazyLock<Arc<Redactor>> =
    LazyLock::new(|| Arc::new(Redactor::new([SECRET.to_owned()])));

fn growth() -> Growth {
    Growth::new(Arc::clone(&REDACTOR))
}

fn made(id: &str, parts: Vec<Part>, append: bool, last: bool) -> ArtifactPiece<Part> {
    ArtifactPiece { id: id.to_owned(), name: None, description: None, parts, append, last }
}

fn begun(id: &str, text: &str) -> ArtifactPiece<Part> {
    made(id, vec![Part::text(text)], false, false)
}

fn more(id: &str, text: &str) -> ArtifactPiece<Part> {
    made(id, vec![Part::text(text)], true, false)
}

fn ended(id: &str, text: &str) -> ArtifactPiece<Part> {
    made(id, vec![Part::text(text)], true, true)
}

fn data() -> Part {
    Part { content: Content::Data(json!([])), filename: None, media_type: None }
}

/// Returns the visible pieces of all events, including the end.
fn all(events: impl IntoIterator<Item = ArtifactPiece<Part>>) -> Vec<Told> {
    let mut growth = growth();
    let mut shown: Vec<_> = events.into_iter().flat_map(|made| growth.take(made)).collect();
    shown.extend(growth.end());
    let told = shown.into_iter().map(|ArtifactPiece { id, parts, append, last, .. }| {
        let stamp = AttemptId::FIRST;
        let kept = place(
            parts,
            TextRange { attempt_id: stamp, channel: TextChannel::Parts, from: 0, to: 0 },
        );
        let place = |at| usize::try_from(at).unwrap();
        let text =
            |span: TextRange| kept.text.get(place(span.from)..place(span.to)).unwrap().to_owned();
        (id, kept.pieces.iter().map(|piece| (piece.kind, text(piece.text))).collect(), append, last)
    });
    told.collect()
}

fn told(id: &str, text: &str, append: bool, last: bool) -> Told {
    (id.to_owned(), vec![(PartKind::Text, text.to_owned())], append, last)
}

#[test]
fn a_secret_split_across_chunks_is_masked() {
    let events = [begun("a", "so\nit is correct-hor"), ended("a", "se-battery, yes")];
    let expected = [told("a", "so\n", false, false), told("a", "it is ***, yes", true, true)];
    assert_eq!(all(events), expected);
}

#[test]
fn other_artifacts_do_not_hide_a_split_secret() {
    let events = [
        begun("a", "correct-hor"),
        made("b", vec![Part::text("whole")], false, true),
        begun("c", "correct-"),
        ended("a", "se-battery"),
        ended("c", "er"),
    ];
    let expected = [
        told("a", "", false, false),
        told("b", "whole", false, true),
        told("c", "", false, false),
        told("a", "***", true, true),
        told("c", "correct-er", true, true),
    ];
    assert_eq!(all(events), expected);
}

#[test]
fn an_unchanged_chunk_is_suppressed_but_the_end_is_sent() {
    let events = [begun("a", "o"), more("a", "n"), more("a", "e\n"), ended("a", "")];
    let expected =
        [told("a", "", false, false), told("a", "one\n", true, false), told("a", "", true, true)];
    assert_eq!(all(events), expected);
}

#[test]
fn an_open_artifact_is_closed_with_its_held_back_text() {
    let events = [begun("a", "one\ntw"), begun("b", "three\n"), more("a", "o")];
    let expected = [
        told("a", "one\n", false, false),
        told("b", "three\n", false, false),
        told("b", "", true, true),
        told("a", "two", true, true),
    ];
    assert_eq!(all(events), expected);
}

#[test]
fn a_data_part_ends_the_text_before_it() {
    let mixed = vec![Part::text("se-battery "), data(), Part::text("and correct-hor")];
    let events = [begun("a", "correct-hor"), made("a", mixed, true, false), more("a", "ror")];
    let text = |text: &str| (PartKind::Text, text.to_owned());
    let parts = vec![text("*** "), (PartKind::Data, "[]".to_owned())];
    let expected = [
        told("a", "", false, false),
        ("a".to_owned(), parts, true, false),
        told("a", "and correct-horror", true, true),
    ];
    assert_eq!(all(events), expected);
}

#[test]
fn consecutive_text_parts_are_redacted_as_one() {
    let both = vec![data(), Part::text("correct-hor"), Part::text("se-battery")];
    let parts = vec![(PartKind::Data, "[]".to_owned()), (PartKind::Text, "***".to_owned())];
    assert_eq!(all([made("a", both, true, true)]), [("a".to_owned(), parts, true, true)]);
}

#[test]
fn a_replaced_artifact_releases_its_held_back_text() {
    let events = [begun("a", "old"), made("a", vec![Part::text("new")], false, true)];
    let expected =
        [told("a", "", false, false), told("a", "old", true, false), told("a", "new", false, true)];
    assert_eq!(all(events), expected);
}

#[test]
fn too_many_open_texts_release_the_least_recently_used() {
    let mut growth = growth();
    for number in 0..MOST {
        assert_eq!(growth.take(begun(&number.to_string(), "held")).len(), 1);
    }
    growth.take(more("0", " on"));
    let shown = growth.take(begun("new", "held"));
    let ids: Vec<_> = shown.iter().map(|made| (made.id.as_str(), made.last)).collect();
    assert_eq!(ids, [("new", false), ("1", false)]);
    assert_eq!(growth.end().len(), MOST);
}

proptest! {
    #[test]
    fn redacted_chunks_equal_the_redacted_whole(
        words in prop::collection::vec(prop::sample::select(vec![
            "see ", "correct-horse-battery", "correct-horse", "\n", "password: ", "Hunter22", " x",
        ]), 1..12),
        cuts in prop::collection::vec(0_usize..200, 0..6),
    ) {
        let whole = words.concat();
        let mut places: Vec<_> = cuts.into_iter().map(|cut| cut.min(whole.len())).collect();
        places.extend([0, whole.len()]);
        places.sort_unstable();
        let pieces = places.windows(2).map(|two| whole.get(two[0]..two[1]).unwrap());
        let mut events: Vec<_> = pieces.map(|piece| more("a", piece)).collect();
        events[0].append = false;
        let shown = all(events).into_iter().flat_map(|told| told.1);
        let shown: String = shown.map(|part| part.1).collect();
        prop_assert_eq!(shown, REDACTOR.redact(&whole).into_owned());
    }
}
