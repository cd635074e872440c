//! Registered values and the vendors' literals, found among the bytes of a text.

use std::ops::Range;

use aho_corasick::{AhoCorasick, AhoCorasickKind};

use super::encode::forms;
use super::heads::{HEAD, Heads};
use super::rules::{by_shapes, words};
use super::shapes::SHAPES;
use super::sieve::{Literal, Sieve};
use super::span::{Form, Span};

/// The literals of all shapes, then the forms of all registered values.
pub(super) struct Exact {
    /// Finds literals.
    automaton: Option<AhoCorasick>,
    /// Finds forms by their heads; the rest is compared.
    heads: Heads,
    /// Tells where literals and key words may be. Nothing where they are not searched for.
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
        let all = patterns.iter().map(Vec::as_slice).enumerate();
        let heads = Heads::new(all.skip(shapes.len()));
        let literals = || patterns.iter().take(shapes.len());
        let kind = Some(AhoCorasickKind::DFA);
        let automaton = AhoCorasick::builder().kind(kind).build(literals()).ok();
        let sieve = words().filter(|_| automaton.is_some()).map(|words| {
            let words = words.map(|word| Literal::Word(word.as_bytes()));
            let literals = literals().map(|literal| Literal::Exact(literal.as_slice()));
            Sieve::new(literals.chain(words))
        });
        Self { automaton, heads, sieve, patterns, shapes, beginnings, longest }
    }

    /// The length of the longest form of a registered value.
    pub(super) const fn longest(&self) -> usize {
        self.longest
    }

    /// Where a literal or a key word may be: each of them lies within one of the places,
    /// which are in order.
    pub(super) fn places(&self, text: &[u8]) -> Vec<Range<usize>> {
        let everywhere = || std::iter::once(0..text.len()).collect();
        self.sieve.as_ref().map_or_else(everywhere, |sieve| sieve.places(text))
    }

    /// Where the first literal or form from `at` on begins.
    pub(super) fn next(&self, text: &[u8], at: usize) -> Option<usize> {
        let found = [self.next_literal(text, at), self.next_form(text, at)];
        found.into_iter().flatten().map(|found| found.0).min()
    }

    /// The head of the first form from `at` on.
    pub(super) fn next_form(&self, text: &[u8], at: usize) -> Option<(usize, usize)> {
        self.heads.next(text, at).map(|start| (start, start + HEAD))
    }

    /// The first literal from `at` on.
    pub(super) fn next_literal(&self, text: &[u8], at: usize) -> Option<(usize, usize)> {
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
        let mut from = 0;
        while let Some(start) = self.heads.next(line, from) {
            self.heads.at(line, start).for_each(|number| visit(number, start));
            from = start + 1;
        }
        by_shapes(line, shapes, spans);
    }

    /// The slow way, where there is no automaton.
    fn one_by_one(&self, line: &[u8], visit: &mut impl FnMut(usize, usize)) {
        for number in 0..self.shapes.len() {
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
