//! Registered values and the vendors' literals, found together in one pass over the bytes.

use std::ops::Range;

use aho_corasick::{AhoCorasick, AhoCorasickKind};

use super::encode::{SHORTEST, forms};
use super::rules::{by_shapes, words};
use super::shapes::SHAPES;
use super::sieve::{Literal, Sieve};
use super::span::{Form, Span};

/// Up to this many bytes of patterns the fastest automaton is affordable.
const FAST: usize = 12 * 1024;

/// Only so much of a form is searched for; the rest is compared. This keeps the automaton small.
const HEAD: usize = SHORTEST;

/// The literals of all shapes, then the forms of all registered values.
pub(super) struct Exact {
    /// Finds literals, and heads of forms.
    automaton: Option<AhoCorasick>,
    /// Tells where literals, heads and key words may be. Nothing where one of them is not searched for.
    sieve: Option<Sieve>,
    patterns: Vec<Vec<u8>>,
    /// The shape of each literal; patterns beyond are forms.
    shapes: Vec<usize>,
    /// The beginnings, each up to a line end, of forms of more than one line.
    beginnings: Vec<Vec<u8>>,
    longest: usize,
}

impl Exact {
    pub(super) fn new(registered: impl IntoIterator<Item = String>) -> Self {
        let literals = || {
            SHAPES
                .iter()
                .enumerate()
                .flat_map(|(row, shape)| shape.literals.iter().map(move |text| (row, text)))
        };
        let shapes: Vec<usize> = literals().map(|(row, _)| row).collect();
        let mut values: Vec<Vec<u8>> =
            registered.into_iter().flat_map(|value| forms(&value)).collect();
        values.sort_unstable();
        values.dedup();
        let longest = values.iter().map(Vec::len).max().unwrap_or(0);
        let beginnings = values.iter().flat_map(|value| beginnings(value)).collect();
        let patterns: Vec<Vec<u8>> =
            literals().map(|(_, text)| text.as_bytes().to_vec()).chain(values).collect();
        let heads = || {
            let (literals, forms) = patterns.split_at_checked(shapes.len()).unwrap_or_default();
            let heads = forms.iter().map(|form| form.get(..HEAD).unwrap_or(form));
            literals.iter().map(Vec::as_slice).chain(heads)
        };
        let size: usize = heads().map(<[u8]>::len).sum();
        let kind = (size <= FAST).then_some(AhoCorasickKind::DFA);
        let automaton = AhoCorasick::builder().kind(kind).build(heads()).ok();
        let sieve = words().filter(|_| automaton.is_some()).map(|words| {
            let words = words.map(|word| Literal::Word(word.as_bytes()));
            Sieve::new(heads().map(Literal::Exact).chain(words))
        });
        Self { automaton, sieve, patterns, shapes, beginnings, longest }
    }

    /// The length of the longest form of a registered value.
    pub(super) const fn longest(&self) -> usize {
        self.longest
    }

    /// Where a literal, the head of a form or a key word may be: each of them lies within one of the places,
    /// which are in order.
    pub(super) fn places(&self, text: &[u8]) -> Vec<Range<usize>> {
        let everywhere = || std::iter::once(0..text.len()).collect();
        self.sieve.as_ref().map_or_else(everywhere, |sieve| sieve.places(text))
    }

    /// The first literal or form from `at` on.
    pub(super) fn next(&self, text: &[u8], at: usize) -> Option<(usize, usize)> {
        let Some(automaton) = self.automaton.as_ref() else { return Some((at, at)) };
        automaton.find(text.get(at..)?).map(|found| (at + found.start(), at + found.end()))
    }

    /// Finds registered values, and runs the shapes whose literals are in the line.
    pub(super) fn spans(&self, line: &[u8], spans: &mut Vec<Span>) {
        let mut shapes = 0_u128;
        let mut visit = |number: usize, start: usize| {
            let Some(pattern) = self.patterns.get(number) else { return };
            let is_whole = line.get(start..).is_some_and(|rest| rest.starts_with(pattern));
            match self.shapes.get(number) {
                _ if !is_whole => {}
                Some(row) => shapes |= 1 << row,
                None => spans.push(Span::shape(start..start + pattern.len(), Form::Stars(0))),
            }
        };
        match self.automaton.as_ref() {
            Some(automaton) => automaton
                .find_overlapping_iter(line)
                .for_each(|found| visit(found.pattern().as_usize(), found.start())),
            None => self.one_by_one(line, &mut visit),
        }
        by_shapes(line, shapes, spans);
    }

    /// The slow way, for more patterns than an automaton can hold.
    fn one_by_one(&self, line: &[u8], visit: &mut impl FnMut(usize, usize)) {
        for number in 0..self.patterns.len() {
            (0..line.len()).for_each(|start| visit(number, start));
        }
    }

    /// Where the longest beginning of a registered value of more lines stands at the end of
    /// `text`, which ends in a line end.
    pub(super) fn open_at(&self, text: &[u8]) -> Option<usize> {
        let live = self.beginnings.iter().filter(|beginning| text.ends_with(beginning));
        live.map(|beginning| text.len() - beginning.len()).min()
    }

    /// Where the longest beginning of any form stands at the end of `text`.
    pub(super) fn partial_at(&self, text: &[u8]) -> Option<usize> {
        let forms = self.patterns.get(self.shapes.len()..)?;
        let partial = |form: &Vec<u8>| {
            let lengths = (1..form.len().min(text.len() + 1)).rev();
            lengths
                .into_iter()
                .find(|length| form.get(..*length).is_some_and(|head| text.ends_with(head)))
        };
        forms.iter().filter_map(partial).max().map(|length| text.len() - length)
    }
}

fn beginnings(form: &[u8]) -> Vec<Vec<u8>> {
    let inner = form.get(..form.len().saturating_sub(1)).unwrap_or_default();
    let ends = inner.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
    ends.filter_map(|(at, _)| form.get(..=at).map(<[u8]>::to_vec)).collect()
}
