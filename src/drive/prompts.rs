//! Hears whether a program has stopped at a question for a person, who is not there.

use std::sync::Arc;

use algonius_actors::decide::prompt::{LONGEST_LINE, is_prompt};
use algonius_actors::model::program::ProgramSpec;
use tokio::sync::watch;
use tokio::time::timeout;

/// What the outputs of a program say at this moment.
#[derive(Default)]
struct Heard {
    /// The end of the line that one of them has begun last.
    line: Vec<u8>,
    /// How many of them have said something that is not written down as yet: they are not silent.
    busy: usize,
}

/// Waits for a question.
pub(super) struct Prompts {
    program: Arc<ProgramSpec>,
    heard: watch::Sender<Heard>,
}

/// Listens to one output.
#[derive(Default)]
pub(super) struct Ear {
    line: Vec<u8>,
    is_busy: bool,
    heard: watch::Sender<Heard>,
}

impl Prompts {
    /// Nothing was said as yet.
    pub(super) fn new(program: Arc<ProgramSpec>) -> Self {
        Self { program, heard: watch::Sender::new(Heard::default()) }
    }

    /// Listens to an output.
    pub(super) fn ear(&self) -> Ear {
        Ear { line: Vec::new(), is_busy: false, heard: self.heard.clone() }
    }

    /// Returns when a question was followed by silence. The program's input has ended before, so
    /// nobody will ever answer.
    pub(super) async fn asked(&self) {
        let contract = &self.program.prompts;
        let mut heard = self.heard.subscribe();
        loop {
            let asks = {
                let now = heard.borrow_and_update();
                now.busy == 0 && is_prompt(contract, &String::from_utf8_lossy(&now.line))
            };
            let changed = heard.changed();
            if !asks {
                _ = changed.await; // The sender lives as long as this.
            } else if timeout(contract.silence, changed).await.is_err() {
                return;
            }
        }
    }
}

impl Ear {
    /// Hears the next bytes; nothing at the end, after which nothing is asked there. Until it waits
    /// for more, the output is not silent.
    pub(super) fn hear(&mut self, bytes: &[u8]) {
        let newline = bytes.iter().rposition(|byte| *byte == b'\n');
        if bytes.is_empty() {
            self.line.clear();
        } else if let Some(newline) = newline {
            self.line.clear();
            self.line.extend_from_slice(bytes.get(newline + 1..).unwrap_or_default());
        } else {
            self.line.extend_from_slice(bytes);
        }
        let excess = self.line.len().saturating_sub(LONGEST_LINE);
        self.line.drain(..excess);
        let becomes_busy = !std::mem::replace(&mut self.is_busy, true);
        self.heard.send_modify(|heard| {
            heard.line.clone_from(&self.line);
            heard.busy += usize::from(becomes_busy);
        });
    }

    /// All that was heard is written down, and more is waited for.
    pub(super) fn wait(&mut self) {
        if std::mem::take(&mut self.is_busy) {
            self.heard.send_modify(|heard| heard.busy -= 1);
        }
    }
}

impl Drop for Ear {
    fn drop(&mut self) {
        self.wait();
    }
}
