//! How far something is: one line on a terminal, which is written over again and again.

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use tokio::time::{Instant, Interval, MissedTickBehavior, interval};

use super::screen::{cut, size};

/// From one look at the clock to the next.
const PACE: Duration = Duration::from_secs(1);

/// The line. Where standard error is no terminal there is none.
pub(super) struct Progress {
    begun: Instant,
    pace: Interval,
    word: String,
    /// Whether there may be a line at all, and whether there is one now.
    is_wanted: bool,
    is_drawn: bool,
}

impl Progress {
    /// Begins to count the time; `is_wanted` says whether anybody wants to see it.
    pub(super) fn begin(is_wanted: bool) -> Self {
        let mut pace = interval(PACE);
        pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let is_wanted = is_wanted && io::stderr().is_terminal();
        Self { begun: Instant::now(), pace, word: String::new(), is_wanted, is_drawn: false }
    }

    /// What it does now.
    pub(super) fn say(&mut self, word: &str) {
        word.clone_into(&mut self.word);
        self.draw();
    }

    /// Returns after a while, in which the line has become older.
    pub(super) async fn tick(&mut self) {
        self.pace.tick().await;
        self.draw();
    }

    /// Takes the line away, so that something else can be written there.
    pub(super) fn clear(&mut self) {
        if self.is_drawn {
            _ = io::stderr().write_all(b"\r\x1b[K");
            self.is_drawn = false;
        }
    }

    /// Writes no more lines: the answer stands where they would be.
    pub(super) fn give_way(&mut self) {
        self.clear();
        self.is_wanted = false;
    }

    fn draw(&mut self) {
        if !self.is_wanted || self.word.is_empty() {
            return;
        }
        let line = format!("{} ({} s)", self.word, self.begun.elapsed().as_secs());
        let line = cut(&line, size().0.saturating_sub(1));
        _ = write!(io::stderr(), "\r{line}\x1b[K");
        self.is_drawn = true;
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.clear();
    }
}
