//! Progress line on a terminal, which is overwritten repeatedly.

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use tokio::time::{Instant, Interval, MissedTickBehavior, interval};

use super::screen::{cut, size};

/// Interval between two updates.
const UPDATE_INTERVAL: Duration = Duration::from_secs(1);

/// Progress line. There is none if standard error is not a terminal.
pub(crate) struct ProgressLine {
    started_at: Instant,
    ticks: Interval,
    word: String,
    /// True if the line is enabled, followed by true if it is drawn now.
    is_wanted: bool,
    is_drawn: bool,
}

impl ProgressLine {
    /// Starts to measure the time; `is_wanted` enables the line.
    pub(crate) fn start(is_wanted: bool) -> Self {
        let mut ticks = interval(UPDATE_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let is_wanted = is_wanted && io::stderr().is_terminal();
        Self { started_at: Instant::now(), ticks, word: String::new(), is_wanted, is_drawn: false }
    }

    /// Sets the text of the line.
    pub(crate) fn show(&mut self, word: &str) {
        word.clone_into(&mut self.word);
        self.draw();
    }

    /// Waits for the next update and redraws the line.
    pub(crate) async fn tick(&mut self) {
        self.ticks.tick().await;
        self.draw();
    }

    /// Erases the line, so that other output can take its place.
    pub(crate) fn clear(&mut self) {
        if self.is_drawn {
            _ = io::stderr().write_all(b"\r\x1b[K");
            self.is_drawn = false;
        }
    }

    /// Disables the line: the answer takes its place.
    pub(crate) fn disable(&mut self) {
        self.clear();
        self.is_wanted = false;
    }

    fn draw(&mut self) {
        if !self.is_wanted || self.word.is_empty() {
            return;
        }
        // Only one line of the terminal is redrawn; a second one would remain.
        let word = self.word.lines().next().unwrap_or_default();
        let line = format!("{word} ({} s)", self.started_at.elapsed().as_secs());
        let line = cut(&line, size().0.saturating_sub(1));
        _ = write!(io::stderr(), "\r{line}\x1b[K");
        self.is_drawn = true;
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        self.clear();
    }
}
