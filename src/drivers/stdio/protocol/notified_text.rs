//! Text of the notifications of a call, and the notifications that should have a text and have none.

/// Share of the text of the result that the notifications have brought.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NotifiedShare {
    /// All of it.
    Whole,
    /// A part of it; a notification of this method had no text.
    Part { textless_method: String },
    /// Text that the result does not have, so that the result may be no answer; a notification of this method had no
    /// text.
    DifferentText { textless_method: String },
}

/// Text that the notifications of a call have brought.
pub(super) struct NotifiedText {
    /// Texts between the notifications without text. Blanks are left out.
    segments: Vec<String>,
    /// Number of bytes that may still be compared with the result.
    remaining_capacity: usize,
    /// Method of the first notification without its text.
    textless_method: Option<String>,
    is_empty: bool,
}

impl NotifiedText {
    /// Returns an empty text, of which at most `max_bytes` are compared with the result.
    pub(super) fn new(max_bytes: usize) -> Self {
        let segments = vec![String::new()];
        Self { segments, remaining_capacity: max_bytes, textless_method: None, is_empty: true }
    }

    /// Takes the next text.
    pub(super) fn push(&mut self, text: &str) {
        self.is_empty &= text.trim().is_empty();
        if text.len() > self.remaining_capacity {
            // Too long to be compared with the result.
            (self.segments, self.remaining_capacity, self.textless_method) = (Vec::new(), 0, None);
        }
        self.remaining_capacity = self.remaining_capacity.saturating_sub(text.len());
        if let Some(segment) = self.segments.last_mut() {
            segment.extend(text.split_whitespace());
        }
    }

    /// Takes a notification without its text. Several kinds of notifications may have the same method, so it is a loss
    /// only if the result has more text.
    pub(super) fn record_missing_text(&mut self, method: &str) {
        let Some(segment) = self.segments.last() else { return };
        if !segment.is_empty() {
            self.segments.push(String::new());
        }
        self.textless_method.get_or_insert_with(|| method.to_owned());
    }

    /// Returns true if no notification had a text.
    pub(super) const fn is_empty(&self) -> bool {
        self.is_empty
    }

    /// Compares the text with that of the result. Blanks do not count.
    pub(super) fn compare(&self, result_text: &str) -> NotifiedShare {
        let Some(method) = &self.textless_method else { return NotifiedShare::Whole };
        let result: String = result_text.split_whitespace().collect();
        if self.segments.concat().contains(&result) {
            return NotifiedShare::Whole;
        }
        let mut rest = Some(result.as_str());
        for segment in &self.segments {
            rest = rest.and_then(|rest| Some(rest.split_once(segment.as_str())?.1));
        }
        let method = method.clone();
        if rest.is_some() {
            NotifiedShare::Part { textless_method: method }
        } else {
            NotifiedShare::DifferentText { textless_method: method }
        }
    }
}
