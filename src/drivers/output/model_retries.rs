//! Failed requests to a model that a running program reports, by events or by lines of its output.
//!
//! Many programs retry such a request by themselves. The count bounds the retries within an attempt, and the supervisor
//! adds them up before it starts another attempt.

use algonius_actors::model::agent::success_criteria::ProgramRetryRules;
use algonius_actors::model::code::Code;
use algonius_actors::model::failure::Failure;
use regex::Regex;
use tokio::sync::watch;

/// Greatest length of a line that is matched, in bytes; of a longer line the start is matched.
const MAX_MATCHED_BYTES: usize = 64 << 10;

/// Counter of matching lines of one output stream.
pub(in crate::drivers) struct FailedRequestLineCounter {
    regex: Regex,
    line: Vec<u8>,
    failed_requests: watch::Sender<u32>,
}

impl FailedRequestLineCounter {
    /// Returns a counter, or `None` if the rules have no pattern.
    pub(in crate::drivers) fn new(
        rules: &ProgramRetryRules,
        failed_requests: &watch::Sender<u32>,
    ) -> Option<Self> {
        let regex = rules.failed_request_regex.clone()?;
        Some(Self { regex, line: Vec::new(), failed_requests: failed_requests.clone() })
    }

    /// Takes the next bytes of the stream.
    pub(in crate::drivers) fn push(&mut self, bytes: &[u8]) {
        let mut matches = 0;
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            // A line without an end must not take unbounded memory.
            let free_bytes = MAX_MATCHED_BYTES.saturating_sub(self.line.len());
            self.line.extend_from_slice(piece.get(..free_bytes).unwrap_or(piece));
            if piece.ends_with(b"\n") {
                matches += u32::from(self.regex.is_match(&String::from_utf8_lossy(&self.line)));
                self.line.clear();
            }
        }
        // Each change of the count wakes those who wait for it.
        if matches > 0 {
            self.failed_requests.send_modify(|failed| *failed = failed.saturating_add(matches));
        }
    }
}

/// Returns once the program has reported as many failed requests as the rules allow.
pub(in crate::drivers) async fn wait_until_retries_exhausted(
    rules: &ProgramRetryRules,
    mut failed_requests: watch::Receiver<u32>,
) {
    if let Some(max) = rules.max_failed_requests
        && failed_requests.wait_for(|failed_requests| *failed_requests >= max).await.is_ok()
    {
        return;
    }
    // Callers select over this future, so it must not return without a bound or after the loss of the count.
    std::future::pending::<()>().await;
}

/// Returns the failure of a program that was ended because its requests to the model failed, and that reported no other
/// reason.
pub(in crate::drivers) fn retries_exhausted_failure(failed_requests: u32) -> Failure {
    let message = format!("{failed_requests} requests to its model failed, and it was ended");
    Failure::new(Code::TransientFailure, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retries_are_counted_for_any_chunks() {
        let rules = ProgramRetryRules {
            failed_request_regex: Some(Regex::new(r"Retrying in \d").unwrap()),
            max_failed_requests: Some(3),
        };
        let text = "one\nRetrying in 2 s\nmore: Retrying in 4 s\n\nRetrying in";
        for size in [1, 3, 7, 100] {
            let failed = watch::Sender::new(0);
            let mut counter = FailedRequestLineCounter::new(&rules, &failed).unwrap();
            text.as_bytes().chunks(size).for_each(|bytes| counter.push(bytes));
            assert_eq!(*failed.borrow(), 2, "pieces of {size}");
            counter.push(b" 8 s\n");
            assert_eq!(*failed.borrow(), 3);
        }
    }

    #[test]
    fn a_line_without_an_end_uses_bounded_memory() {
        let rules = ProgramRetryRules {
            failed_request_regex: Some(Regex::new("x$").unwrap()),
            max_failed_requests: None,
        };
        let failed = watch::Sender::new(0);
        let mut counter = FailedRequestLineCounter::new(&rules, &failed).unwrap();
        (0..100).for_each(|_| counter.push(&[b'x'; 1000]));
        assert_eq!(counter.line.len(), MAX_MATCHED_BYTES);
    }
}
