//! Lines that a person types at the terminal.

use std::io::{self, BufRead};

use rustix::termios::{QueueSelector, tcflush};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

/// Reader of the lines, which starts with the first question.
#[derive(Default)]
pub(super) struct TypedLines {
    lines: Option<UnboundedReceiver<io::Result<String>>>,
}

impl TypedLines {
    /// Discards what was typed before the person could read the next question.
    pub(super) fn discard(&mut self) {
        // Only a terminal shows questions, and a terminal accepts this call.
        _ = tcflush(io::stdin(), QueueSelector::IFlush);
        while self.lines.as_mut().is_some_and(|lines| lines.try_recv().is_ok()) {}
    }

    /// Returns the next line without its end; `None` at the end of the input. A call that is dropped loses no line.
    pub(super) async fn next(&mut self) -> Option<io::Result<String>> {
        self.lines.get_or_insert_with(start_reader).recv().await
    }
}

/// Reads lines in a thread of its own: a blocked read cannot be cancelled, and the runtime would wait for it at the end
/// of the process.
fn start_reader() -> UnboundedReceiver<io::Result<String>> {
    let (sender, lines) = unbounded_channel();
    std::thread::spawn(move || {
        for line in io::stdin().lock().lines() {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    lines
}
