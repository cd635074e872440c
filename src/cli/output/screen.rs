//! Terminal: lines that are redrawn in place, and the signals to stop.

use std::io::{self, IsTerminal, Write};

use rustix::termios::{Winsize, tcgetwinsize};
use tokio::signal::unix::{SignalKind, signal};

use crate::platform::terminal_text;

/// Default size of a terminal, in columns and rows.
const DEFAULT_TERMINAL_SIZE: (usize, usize) = (80, 24);

/// Lines that replace the previous ones. One draw appears in one step.
pub(crate) struct Screen {
    /// Number of drawn lines.
    drawn_line_count: usize,
}

impl Screen {
    /// Returns standard output, if it is a terminal.
    pub(crate) fn for_stdout() -> Option<Self> {
        io::stdout().is_terminal().then_some(Self { drawn_line_count: 0 })
    }

    /// Draws lines over the previous ones; lines that do not fit are cut.
    ///
    /// # Errors
    /// Fails if the terminal is gone.
    pub(crate) fn draw(&mut self, lines: &[String]) -> io::Result<()> {
        let (frame, drawn_line_count) = render_frame(lines, self.drawn_line_count, terminal_size());
        self.drawn_line_count = drawn_line_count;
        let mut stdout = io::stdout().lock();
        stdout.write_all(frame.as_bytes())?;
        stdout.flush()
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        if self.drawn_line_count > 0 {
            _ = io::stdout().write_all(b"\x1b[?25h"); // The cursor is seen again.
        }
    }
}

/// Returns one write and the number of its lines: the cursor goes up over the previous lines and is hidden, each
/// line is overwritten and cleared to its end, and the lines below are erased. Terminals with synchronized output
/// show it in one step.
fn render_frame(
    lines: &[String],
    previous_line_count: usize,
    (width, height): (usize, usize),
) -> (String, usize) {
    let max_lines = height.saturating_sub(1).max(1);
    let mut visible_lines: Vec<String> =
        lines.iter().map(|line| truncate_line(line, width)).collect();
    if visible_lines.len() > max_lines {
        let hidden_count = visible_lines.len() + 1 - max_lines;
        visible_lines.truncate(max_lines - 1);
        visible_lines.push(truncate_line(&format!("… and {hidden_count} more lines"), width));
    }
    let cursor_up = if previous_line_count == 0 {
        String::new()
    } else {
        format!("\x1b[{previous_line_count}A")
    };
    let body: String = visible_lines.iter().map(|line| format!("{line}\x1b[K\r\n")).collect();
    (format!("\x1b[?2026h\x1b[?25l\r{cursor_up}{body}\x1b[J\x1b[?2026l"), visible_lines.len())
}

/// Returns a line of this maximum width without control characters.
pub(crate) fn truncate_line(line: &str, width: usize) -> String {
    let line = terminal_text::escape_to_single_line(line);
    match line.chars().count() > width {
        true => line.chars().take(width.saturating_sub(1)).chain(['…']).collect(),
        false => line,
    }
}

/// Returns the columns and rows of the terminal.
pub(crate) fn terminal_size() -> (usize, usize) {
    match tcgetwinsize(io::stdout()).or_else(|_| tcgetwinsize(io::stderr())) {
        Ok(Winsize { ws_col: columns @ 1.., ws_row: rows @ 1.., .. }) => {
            (columns.into(), rows.into())
        }
        Ok(_) | Err(_) => DEFAULT_TERMINAL_SIZE,
    }
}

/// Waits for a signal that requests the end of this program.
pub(crate) async fn wait_for_stop_signal() {
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
    fn a_frame_overwrites_the_previous_one_and_fits() {
        let lines = |texts: &[&str]| texts.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
        let (first, drawn_lines) = render_frame(&lines(&["one", "two"]), 0, (80, 24));
        assert_eq!((drawn_lines, first.contains("\x1b[2A")), (2, false));
        let (second, drawn_lines) = render_frame(&lines(&["one"]), 2, (80, 24));
        assert!(second.contains("\r\x1b[2Aone\x1b[K\r\n\x1b[J"), "{second:?}");
        assert_eq!(drawn_lines, 1);
        let (cut, drawn_lines) = render_frame(&lines(&["one", "two", "three", "four"]), 0, (4, 4));
        assert!(cut.contains("one\x1b[K\r\ntwo\x1b[K\r\n… a…\x1b[K\r\n"), "{cut:?}");
        assert_eq!(drawn_lines, 3);
    }

    #[test]
    fn control_characters_of_a_line_are_escaped() {
        assert_eq!(truncate_line("a\x1b[31mb\tc\u{202e}", 80), r"a\x1b[31mb c\u{202e}");
        assert_eq!(truncate_line("abcdef", 4), "abc…");
    }
}
