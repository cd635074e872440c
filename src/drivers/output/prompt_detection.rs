//! Detects whether a program has stopped at a prompt for a person, who is not present.

use std::sync::Arc;

use algonius_actors::decide::classify::tty_prompt_detection::{
    MAX_INSPECTED_LINE_BYTES, is_prompt,
};
use algonius_actors::model::program::ProgramSpec;
use tokio::sync::watch;
use tokio::time::timeout;

use super::model_retries::FailedRequestLineCounter;

/// State of a program's outputs.
#[derive(Default)]
struct OutputState {
    /// End of the line that one of the outputs has started last.
    last_line: Vec<u8>,
    /// Number of outputs with bytes that are not recorded yet: they are not silent.
    busy_outputs: usize,
}

/// Detector of prompts.
pub(in crate::drivers) struct PromptDetector {
    program: Arc<ProgramSpec>,
    output_state: watch::Sender<OutputState>,
}

/// Observer of one output.
#[derive(Default)]
pub(in crate::drivers) struct OutputObserver {
    last_line: Vec<u8>,
    is_busy: bool,
    output_state: watch::Sender<OutputState>,
    failed_request_counter: Option<FailedRequestLineCounter>,
}

impl PromptDetector {
    /// Returns a detector without any output so far.
    pub(in crate::drivers) fn new(program: Arc<ProgramSpec>) -> Self {
        Self { program, output_state: watch::Sender::new(OutputState::default()) }
    }

    /// Returns an observer of an output, which also counts the reported failed requests.
    pub(in crate::drivers) fn new_output_observer(
        &self,
        failed_requests: &watch::Sender<u32>,
    ) -> OutputObserver {
        let failed_request_counter = FailedRequestLineCounter::new(
            &self.program.failure_rules.program_retry_rules,
            failed_requests,
        );
        OutputObserver {
            last_line: Vec::new(),
            is_busy: false,
            output_state: self.output_state.clone(),
            failed_request_counter,
        }
    }

    /// Returns when silence has followed a prompt. The program's input has ended before, so no answer will ever come.
    pub(in crate::drivers) async fn wait_for_prompt(&self) {
        let patterns = &self.program.prompt_patterns;
        let mut changes = self.output_state.subscribe();
        loop {
            // While bytes wait for the ledger, the program is not silent, however long the ledger takes.
            let is_prompting = {
                let state = changes.borrow_and_update();
                state.busy_outputs == 0
                    && is_prompt(patterns, &String::from_utf8_lossy(&state.last_line))
            };
            let changed = changes.changed();
            if !is_prompting {
                _ = changed.await; // The sender lives as long as this detector.
            } else if timeout(patterns.silence, changed).await.is_err() {
                return;
            }
        }
    }
}

impl OutputObserver {
    /// Takes the next bytes; none at the end, after which no prompt can come. The output is not silent until it waits
    /// for more.
    pub(in crate::drivers) fn receive(&mut self, bytes: &[u8]) {
        if let Some(counter) = &mut self.failed_request_counter {
            counter.push(bytes);
        }
        let newline = bytes.iter().rposition(|byte| *byte == b'\n');
        if bytes.is_empty() {
            self.last_line.clear();
        } else if let Some(newline) = newline {
            self.last_line.clear();
            self.last_line.extend_from_slice(bytes.get(newline + 1..).unwrap_or_default());
        } else {
            self.last_line.extend_from_slice(bytes);
        }
        // A program may write a line without an end, and only its last bytes can be a prompt.
        let excess = self.last_line.len().saturating_sub(MAX_INSPECTED_LINE_BYTES);
        self.last_line.drain(..excess);
        let becomes_busy = !std::mem::replace(&mut self.is_busy, true);
        self.output_state.send_modify(|state| {
            state.last_line.clone_from(&self.last_line);
            state.busy_outputs += usize::from(becomes_busy);
        });
    }

    /// Marks the output as waiting: all its bytes are recorded.
    pub(in crate::drivers) fn mark_waiting(&mut self) {
        if std::mem::take(&mut self.is_busy) {
            self.output_state.send_modify(|state| state.busy_outputs -= 1);
        }
    }
}

impl Drop for OutputObserver {
    fn drop(&mut self) {
        // An observer that is dropped between a read and its recording would leave the output busy for ever.
        self.mark_waiting();
    }
}
