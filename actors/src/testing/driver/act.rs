//! Script of one attempt.

use std::time::Duration;

use crate::decide::output::artifact_stream::ArtifactPiece;
use crate::model::code::Code;
use crate::model::execution::content::Part;
use crate::model::interaction::{Question, WireId};
use crate::testing::questions::permission;

/// Script of one attempt. Created by [`Act::ok`], [`Act::fail`] and similar functions, then refined.
#[derive(Debug, Clone)]
pub struct Act {
    pub(super) starts_after: Duration,
    pub(super) runs_for: Duration,
    pub(super) verdict: Result<(), Code>,
    pub(super) says: String,
    pub(super) murmurs: Vec<Duration>,
    pub(super) makes: Vec<ArtifactPiece<Part>>,
    pub(super) uses: Vec<Used>,
    pub(super) lasts: Option<Duration>,
    pub(super) questions: Vec<(WireId, Question)>,
    pub(super) manner: Manner,
    pub(super) ends_after_stop: Duration,
    pub(super) clears_for: Duration,
}

/// Input tokens, output tokens, and true if they are totals of the attempt.
pub(super) type Used = (u64, u64, bool);

/// Way in which the work of an attempt behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Manner {
    Proper,
    /// Ignores a stop request.
    Deaf,
    /// Runs without a report of its start.
    Mute,
    /// Requests input after it has run.
    Asker,
    /// Ends without starting.
    Stillborn,
    /// Drops its reporter.
    Deserter,
    /// Panics in `start`.
    Bomb,
}

impl Act {
    const fn new(seconds: u64, verdict: Result<(), Code>, manner: Manner) -> Self {
        Self {
            starts_after: Duration::ZERO,
            runs_for: Duration::from_secs(seconds),
            verdict,
            says: String::new(),
            murmurs: Vec::new(),
            makes: Vec::new(),
            uses: Vec::new(),
            lasts: None,
            questions: Vec::new(),
            manner,
            ends_after_stop: Duration::ZERO,
            clears_for: Duration::ZERO,
        }
    }

    /// Runs for `seconds`, then succeeds. After a stop request it also reports success.
    #[must_use]
    pub const fn ok(seconds: u64) -> Self {
        Self::new(seconds, Ok(()), Manner::Proper)
    }

    /// Runs for `seconds`, then fails.
    #[must_use]
    pub const fn fail(seconds: u64, code: Code) -> Self {
        Self::new(seconds, Err(code), Manner::Proper)
    }

    /// Runs for `seconds`, then requests input.
    #[must_use]
    pub const fn ask(seconds: u64) -> Self {
        Self::new(seconds, Ok(()), Manner::Asker)
    }

    /// Fails before it runs.
    #[must_use]
    pub const fn stillborn(code: Code) -> Self {
        Self::new(0, Err(code), Manner::Stillborn)
    }

    /// Runs until it is killed, despite stop requests.
    #[must_use]
    pub const fn deaf() -> Self {
        Self::new(u32::MAX as u64, Ok(()), Manner::Deaf)
    }

    /// Never reports that it runs.
    #[must_use]
    pub const fn mute() -> Self {
        Self::new(u32::MAX as u64, Ok(()), Manner::Mute)
    }

    /// Runs for `seconds`, then drops its reporter without a report.
    #[must_use]
    pub const fn desert(seconds: u64) -> Self {
        Self::new(seconds, Ok(()), Manner::Deserter)
    }

    /// Panics in the driver's `start`, and so in the execution's actor.
    #[must_use]
    pub const fn bomb() -> Self {
        Self::new(0, Ok(()), Manner::Bomb)
    }

    /// Starts only after `seconds`.
    #[must_use]
    pub const fn starting_for(mut self, seconds: u64) -> Self {
        self.starts_after = Duration::from_secs(seconds);
        self
    }

    /// Ends only `seconds` after a stop request.
    #[must_use]
    pub const fn stopping_for(mut self, seconds: u64) -> Self {
        self.ends_after_stop = Duration::from_secs(seconds);
        self
    }

    /// Needs `seconds` for its clean-up.
    #[must_use]
    pub const fn clearing_for(mut self, seconds: u64) -> Self {
        self.clears_for = Duration::from_secs(seconds);
        self
    }

    /// Writes an answer.
    #[must_use]
    pub fn saying(mut self, text: &str) -> Self {
        text.clone_into(&mut self.says);
        self
    }

    /// Writes to its standard error after each of these pauses, before it continues.
    #[must_use]
    pub fn murmuring(mut self, pauses: impl IntoIterator<Item = u64>) -> Self {
        self.murmurs.extend(pauses.into_iter().map(Duration::from_secs));
        self
    }

    /// Reports input and output tokens before it continues: increments, or totals if the flag is true.
    #[must_use]
    pub fn using(mut self, uses: impl IntoIterator<Item = (u64, u64, bool)>) -> Self {
        self.uses.extend(uses);
        self
    }

    /// Reports that its failure lasts for `seconds`.
    #[must_use]
    pub const fn lasting(mut self, seconds: u64) -> Self {
        self.lasts = Some(Duration::from_secs(seconds));
        self
    }

    /// Asks for permission to run a command, and waits for the answer before it continues.
    #[must_use]
    pub fn asking(mut self, wire: &str, command: &str) -> Self {
        self.questions.push((WireId(wire.to_owned()), permission(command)));
        self
    }

    /// Creates artifacts, or pieces of them, before it continues.
    #[must_use]
    pub fn making(mut self, made: impl IntoIterator<Item = ArtifactPiece<Part>>) -> Self {
        self.makes.extend(made);
        self
    }
}
