//! A terminal: lines that are drawn in place, and the wish to stop.

use std::io::{self, IsTerminal, Write};

use rustix::termios::{Winsize, tcgetwinsize};
use tokio::signal::unix::{SignalKind, signal};

/// The size of a terminal that does not tell it.
const USUAL: (usize, usize) = (80, 24);

/// Lines that take the place of those before. What is drawn at once appears at once.
pub(super) struct Screen {
    /// How many lines stand there.
    drawn: usize,
}

impl Screen {
    /// Standard output, if it is a terminal.
    pub(super) fn of_stdout() -> Option<Self> {
        io::stdout().is_terminal().then_some(Self { drawn: 0 })
    }

    /// Draws lines over those before; what does not fit is cut.
    ///
    /// # Errors
    /// When the terminal is gone.
    pub(super) fn draw(&mut self, lines: &[String]) -> io::Result<()> {
        let (frame, drawn) = frame(lines, self.drawn, size());
        self.drawn = drawn;
        let mut stdout = io::stdout().lock();
        stdout.write_all(frame.as_bytes())?;
        stdout.flush()
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        if self.drawn > 0 {
            _ = io::stdout().write_all(b"\x1b[?25h"); // The cursor is seen again.
        }
    }
}

/// One write: the cursor goes up over what was drawn and is hidden, each line is written over and
/// cleared to its end, and what stood below goes. A terminal that knows how shows it in one step.
fn frame(lines: &[String], before: usize, (width, height): (usize, usize)) -> (String, usize) {
    let most = height.saturating_sub(1).max(1);
    let mut shown: Vec<String> = lines.iter().map(|line| cut(line, width)).collect();
    if shown.len() > most {
        let hidden = shown.len() + 1 - most;
        shown.truncate(most - 1);
        shown.push(cut(&format!("… and {hidden} more lines"), width));
    }
    let up = if before == 0 { String::new() } else { format!("\x1b[{before}A") };
    let body: String = shown.iter().map(|line| format!("{line}\x1b[K\r\n")).collect();
    (format!("\x1b[?2026h\x1b[?25l\r{up}{body}\x1b[J\x1b[?2026l"), shown.len())
}

/// A line that is no wider than this, and does nothing but be there.
pub(super) fn cut(line: &str, width: usize) -> String {
    let plain = || line.chars().map(|char| if char.is_control() { ' ' } else { char });
    match plain().count() > width {
        true => plain().take(width.saturating_sub(1)).chain(['…']).collect(),
        false => plain().collect(),
    }
}

/// Columns and rows.
pub(super) fn size() -> (usize, usize) {
    match tcgetwinsize(io::stdout()).or_else(|_| tcgetwinsize(io::stderr())) {
        Ok(Winsize { ws_col: columns @ 1.., ws_row: rows @ 1.., .. }) => {
            (columns.into(), rows.into())
        }
        Ok(_) | Err(_) => USUAL,
    }
}

/// Ends when somebody wants this program to end.
pub(super) async fn asked_to_stop() {
    let terminated = async {
        match signal(SignalKind::terminate()) {
            Ok(mut terminate) => _ = terminate.recv().await,
            Err(_) => std::future::pending().await,
        }
    };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        () = terminated => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_stands_over_the_one_before_and_fits() {
        let lines = |texts: &[&str]| texts.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
        let (first, drawn) = frame(&lines(&["one", "two"]), 0, (80, 24));
        assert_eq!((drawn, first.contains("\x1b[2A")), (2, false));
        let (second, drawn) = frame(&lines(&["one"]), 2, (80, 24));
        assert!(second.contains("\r\x1b[2Aone\x1b[K\r\n\x1b[J"), "{second:?}");
        assert_eq!(drawn, 1);
        let (cut, drawn) = frame(&lines(&["one", "two", "three", "four"]), 0, (4, 4));
        assert!(cut.contains("one\x1b[K\r\ntwo\x1b[K\r\n… a…\x1b[K\r\n"), "{cut:?}");
        assert_eq!(drawn, 3);
    }

    #[test]
    fn what_a_line_says_does_nothing_to_the_terminal() {
        assert_eq!(cut("a\x1b[31mb\tc", 80), "a [31mb c");
        assert_eq!(cut("abcdef", 4), "abc…");
    }
}
