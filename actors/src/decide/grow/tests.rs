//! What of growing artifacts is shown, when, and that no cut shows what the whole hides.

use std::sync::{Arc, LazyLock};

use proptest::prelude::*;
use serde_json::json;

use super::{Growth, MOST, Made};
use crate::decide::keep::lay;
use crate::decide::redact::Redactor;
use crate::model::content::{Content, Kind, Part};
use crate::model::event::{Channel, Span};
use crate::model::execution::Stamp;

const SECRET: &str = "correct-horse-battery";

/// The id, the parts, `append` and `last`.
type Told = (String, Vec<(Kind, String)>, bool, bool);

/// Costly to build, so built once.
static REDACTOR: LazyLock<Arc<Redactor>> =
    LazyLock::new(|| Arc::new(Redactor::new([SECRET.to_owned()])));

fn growth() -> Growth {
    Growth::new(Arc::clone(&REDACTOR))
}

fn made(id: &str, parts: Vec<Part>, append: bool, last: bool) -> Made<Part> {
    Made { id: id.to_owned(), name: None, description: None, parts, append, last }
}

fn begun(id: &str, text: &str) -> Made<Part> {
    made(id, vec![Part::text(text)], false, false)
}

fn more(id: &str, text: &str) -> Made<Part> {
    made(id, vec![Part::text(text)], true, false)
}

fn ended(id: &str, text: &str) -> Made<Part> {
    made(id, vec![Part::text(text)], true, true)
}

fn data() -> Part {
    Part { content: Content::Data(json!([])), filename: None, media_type: None }
}

/// What is told of each event, and at the end.
fn all(events: impl IntoIterator<Item = Made<Part>>) -> Vec<Told> {
    let mut growth = growth();
    let mut shown: Vec<_> = events.into_iter().flat_map(|made| growth.take(made)).collect();
    shown.extend(growth.end());
    let told = shown.into_iter().map(|Made { id, parts, append, last, .. }| {
        let stamp = Stamp::FIRST;
        let kept = lay(parts, Span { stamp, channel: Channel::Parts, from: 0, to: 0 });
        let place = |at| usize::try_from(at).unwrap();
        let text = |span: Span| kept.text.get(place(span.from)..place(span.to)).unwrap().to_owned();
        (id, kept.pieces.iter().map(|piece| (piece.of, text(piece.text))).collect(), append, last)
    });
    told.collect()
}

fn told(id: &str, text: &str, append: bool, last: bool) -> Told {
    (id.to_owned(), vec![(Kind::Text, text.to_owned())], append, last)
}

#[test]
fn a_secret_that_is_cut_in_two_is_masked() {
    let events = [begun("a", "so\nit is correct-hor"), ended("a", "se-battery, yes")];
    let expected = [told("a", "so\n", false, false), told("a", "it is ***, yes", true, true)];
    assert_eq!(all(events), expected);
}

#[test]
fn other_artifacts_between_do_not_hide_the_cut() {
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
fn what_shows_nothing_new_is_not_told_and_the_end_always_is() {
    let events = [begun("a", "o"), more("a", "n"), more("a", "e\n"), ended("a", "")];
    let expected =
        [told("a", "", false, false), told("a", "one\n", true, false), told("a", "", true, true)];
    assert_eq!(all(events), expected);
}

#[test]
fn what_the_agent_leaves_open_is_ended_with_all_that_was_held_back() {
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
fn a_part_that_is_no_text_ends_the_text_before_it() {
    let mixed = vec![Part::text("se-battery "), data(), Part::text("and correct-hor")];
    let events = [begun("a", "correct-hor"), made("a", mixed, true, false), more("a", "ror")];
    let text = |text: &str| (Kind::Text, text.to_owned());
    let parts = vec![text("*** "), (Kind::Data, "[]".to_owned())];
    let expected = [
        told("a", "", false, false),
        ("a".to_owned(), parts, true, false),
        told("a", "and correct-horror", true, true),
    ];
    assert_eq!(all(events), expected);
}

#[test]
fn texts_that_are_appended_together_are_one() {
    let both = vec![data(), Part::text("correct-hor"), Part::text("se-battery")];
    let parts = vec![(Kind::Data, "[]".to_owned()), (Kind::Text, "***".to_owned())];
    assert_eq!(all([made("a", both, true, true)]), [("a".to_owned(), parts, true, true)]);
}

#[test]
fn an_artifact_that_begins_anew_loses_nothing_of_the_old_one() {
    let events = [begun("a", "old"), made("a", vec![Part::text("new")], false, true)];
    let expected =
        [told("a", "", false, false), told("a", "old", true, false), told("a", "new", false, true)];
    assert_eq!(all(events), expected);
}

#[test]
fn of_too_many_open_texts_the_one_that_rested_longest_is_shown() {
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
    fn no_cut_shows_what_the_whole_hides(
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
