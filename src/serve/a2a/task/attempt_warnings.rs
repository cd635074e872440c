//! Warnings of one attempt, as an answer shows them.

use std::collections::VecDeque;

/// Greatest number of warnings in an answer.
const MAX_WARNINGS: usize = 20;

/// The latest warnings of an attempt: the end of an attempt sums up what went wrong in it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AttemptWarnings {
    latest_warnings: VecDeque<String>,
    omitted_count: u64,
}

impl AttemptWarnings {
    /// Adds a warning, in the place of the oldest one if there are too many.
    pub fn push(&mut self, warning: String) {
        if self.latest_warnings.len() == MAX_WARNINGS {
            self.latest_warnings.pop_front();
            self.omitted_count += 1;
        }
        self.latest_warnings.push_back(warning);
    }

    /// Returns the sentences. If warnings were omitted, the first sentence states their number.
    #[must_use]
    pub fn into_sentences(self) -> Vec<String> {
        let omitted = (self.omitted_count > 0).then(|| {
            format!(
                "{} earlier warnings are only in the events of the execution",
                self.omitted_count
            )
        });
        omitted.into_iter().chain(self.latest_warnings).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_warnings_stay_and_the_others_are_counted() {
        let mut warnings = AttemptWarnings::default();
        (0..MAX_WARNINGS).for_each(|number| warnings.push(number.to_string()));
        assert_eq!(warnings.clone().into_sentences().first().unwrap(), "0");
        warnings.push("the sum".to_owned());
        warnings.push("the end".to_owned());
        let sentences = warnings.into_sentences();
        assert_eq!(sentences.len(), MAX_WARNINGS + 1);
        assert_eq!(sentences[0], "2 earlier warnings are only in the events of the execution");
        assert_eq!((&*sentences[1], &*sentences[MAX_WARNINGS]), ("2", "the end"));
    }
}
