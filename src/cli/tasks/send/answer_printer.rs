//! Text of an answer, printed as it arrives.

use std::collections::BTreeSet;
use std::io::{self, IsTerminal};

use serde_json::{Value, json};

use super::answer_content::artifact_text;
use super::text_at;
use crate::cli::output::CliOutput;
use crate::cli::output::progress::ProgressLine;

/// Answer of which a part may be printed.
pub(super) struct AnswerPrinter<'o> {
    out: &'o CliOutput,
    /// Printed part of the present message.
    printed_text: String,
    /// Latest message of the agent in a status update.
    status_message: String,
    /// Ids of the artifacts of which an update was received.
    seen_artifact_ids: BTreeSet<String>,
    /// True if the answer is printed only at its end: it goes to a file, or another attempt creates it again.
    prints_at_end: bool,
}

impl<'o> AnswerPrinter<'o> {
    /// Returns an answer of which nothing is printed.
    pub(super) fn new(out: &'o CliOutput) -> Self {
        Self {
            out,
            printed_text: String::new(),
            status_message: String::new(),
            seen_artifact_ids: BTreeSet::new(),
            prints_at_end: out.writes_to_file(),
        }
    }

    /// Sets the latest message of the agent in a status update.
    pub(super) fn set_status_message(&mut self, message: &str) {
        message.clone_into(&mut self.status_message);
    }

    /// Prints a piece of the answer as it arrives, in place of the progress line.
    pub(super) fn print_update(&mut self, event: &Value, progress: &mut ProgressLine) {
        let is_append = event.get("append").and_then(Value::as_bool).unwrap_or_default();
        let artifact_id = text_at(event, "/artifact/artifactId").to_owned();
        let piece = artifact_text(&json!({"artifacts": [event.get("artifact")]}));
        if !self.seen_artifact_ids.insert(artifact_id)
            && !is_append
            && !self.printed_text.is_empty()
        {
            self.end_replaced_text();
        }
        if self.out.is_json() || self.prints_at_end || piece.is_empty() {
            return;
        }
        progress.disable();
        if !is_append && self.has_open_line() {
            self.out.print_line("");
        }
        self.printed_text.push_str(&piece);
        self.out.print_piece(&piece);
    }

    /// Ends a text that another one replaces. A message that the agent wrote before it used a tool stays, and the
    /// next message is printed after it as it arrives. Another attempt prints the whole answer at the end, because a
    /// pipe must not receive the parts of several attempts. A terminal shows all of them.
    fn end_replaced_text(&mut self) {
        // The agent reports a message that was not its answer in the status update before the next one. That
        // text has no line end.
        let is_complete = self.status_message == self.printed_text.trim_end();
        let rest = if is_complete {
            Some("")
        } else {
            self.status_message.strip_prefix(&self.printed_text)
        };
        if let Some(rest) = rest {
            if !self.prints_at_end && !self.out.is_json() {
                let line_end =
                    if is_complete && self.printed_text.ends_with('\n') { "" } else { "\n" };
                self.out.print_piece(&format!("{rest}{line_end}"));
            }
            self.printed_text.clear();
        } else if !io::stdout().is_terminal() {
            self.prints_at_end = true;
            self.out
                .print_note("the agent starts its answer again; the text above is not the answer");
        }
    }

    /// Forgets the printed part, because the agent answers anew after the next input.
    pub(super) fn reset(&mut self) {
        if self.has_open_line() {
            self.out.print_line("");
        }
        self.printed_text.clear();
        self.seen_artifact_ids.clear();
    }

    /// True if a terminal shows an answer line without a line end.
    fn has_open_line(&self) -> bool {
        let ends_mid_line = !self.printed_text.is_empty() && !self.printed_text.ends_with('\n');
        ends_mid_line && io::stdout().is_terminal()
    }

    /// Prints the part of the whole answer that is not printed yet.
    pub(super) fn print_rest(&self, full_text: &str) {
        let ends_mid_line = !self.printed_text.is_empty() && !self.printed_text.ends_with('\n');
        match full_text.strip_prefix(&self.printed_text) {
            Some("") => {
                if ends_mid_line && io::stdout().is_terminal() {
                    self.out.print_line("");
                }
            }
            Some(rest) => self.out.print_text(rest),
            None => {
                if ends_mid_line {
                    self.out.print_line("");
                }
                self.out.print_text(full_text);
            }
        }
    }
}
