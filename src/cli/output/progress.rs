//! Progress line on a terminal, which is overwritten repeatedly.

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use tokio::time::{Instant, Interval, MissedTickBehavior, interval};

use super::screen::{terminal_size, truncate_line};

/// Interval between two updates.
const UPDATE_INTERVAL: Duration = Duration::from_secs(1);

/// Progress line. There is none if standard error is not a terminal.
pub(crate) struct ProgressLine {
    started_at: Instant,
    ticks: Interval,
    text: String,
    /// True if the line is enabled, followed by true if it is drawn now.
    is_enabled: bool,
    is_drawn: bool,
}

impl ProgressLine {
    /// Starts to measure the time; `is_enabled` enables the line.
    pub(crate) fn start(is_enabled: bool) -> Self {
        let mut ticks = interval(UPDATE_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let is_enabled = is_enabled && io::stderr().is_terminal();
        Self { started_at: Instant::now(), ticks, text: String::new(), is_enabled, is_drawn: false }
    }

    /// Sets the text of the line.
    pub(crate) fn set_text(&mut self, text: &str) {
        text.clone_into(&mut self.text);
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
        self.is_enabled = false;
    }

    fn draw(&mut self) {
        if !self.is_enabled || self.text.is_empty() {
            return;
        }
        // Only one line of the terminal is redrawn; a second one would remain.
        let first_line = self.text.lines().next().unwrap_or_default();
        let line = format!("{first_line} ({} s)", self.started_at.elapsed().as_secs());
        let line = truncate_line(&line, terminal_size().0.saturating_sub(1));
        _ = write!(io::stderr(), "\r{line}\x1b[K");
        self.is_drawn = true;
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        self.clear();
    }
}
