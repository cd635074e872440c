//! What the program of an attempt writes, up to its end and a little beyond.

use std::io;
use std::pin::{Pin, pin};
use std::time::Duration;

use algonius_actors::model::event::Channel;
use algonius_actors::ports::ledger::LedgerError;
use algonius_actors::report::Reporter;
use futures_util::FutureExt;
use tokio::sync::{Notify, watch};
use tokio::time::{sleep, timeout};

use super::super::events::{Events, Told};
use super::super::pump::{Note, Source, Text, pump, pump_events};
use super::super::talk::Talk;
use super::{End, Live, Output};

/// How long the pipes may stay open after the program has ended.
const DRAIN: Duration = Duration::from_secs(1);

/// How long the last of a text may be kept back, to be written with the end.
const SOON: Duration = Duration::from_millis(50);

/// What the program wrote.
pub(super) struct Heard {
    pub(super) stdout: Text,
    pub(super) stderr: Text,
    pub(super) events: Option<Told>,
}

impl Heard {
    pub(super) fn asks(&self) -> bool {
        self.events.as_ref().is_some_and(|told| told.asks)
    }
}

impl Live {
    /// Reads both streams to their ends.
    pub(super) async fn listen(
        &self,
        report: &Reporter,
        (stdout, stderr): (Source, Source),
        (talk, over): (Option<Talk>, &watch::Sender<bool>),
    ) -> Result<Heard, LedgerError> {
        let limit = self.work.spec.sizes.output;
        let note = |channel| Note::open(report, channel, limit);
        let errors = pump(stderr, note(Channel::Stderr));
        if let Output::Events(reach, dialect) = &self.output {
            let mut events = Events::open(report, &self.work, (reach, *dialect));
            let note = note(Channel::Stdout);
            let output = async {
                match talk {
                    Some(talk) => talk.once(stdout, note, &mut events, over).await,
                    None => pump_events(stdout, note, &mut events).await,
                }
            };
            let (stdout, stderr) = both(pin!(output), pin!(errors), report).await?;
            return Ok(Heard { stdout, stderr, events: Some(events.close().await?) });
        }
        let output = pump(stdout, note(Channel::Stdout));
        let (stdout, stderr) = both(pin!(output), pin!(errors), report).await?;
        Ok(Heard { stdout, stderr, events: None })
    }

    /// Reads what the pipes still hold. Somebody else may hold them open, so it is not their end
    /// that is waited for.
    pub(super) async fn drain(
        &self,
        mut listening: Pin<&mut impl Future<Output = Result<Heard, LedgerError>>>,
        cut: &watch::Sender<bool>,
    ) -> Result<Heard, LedgerError> {
        if let Ok(heard) = timeout(DRAIN, &mut listening).await {
            return heard;
        }
        self.tree.kill();
        cut.send_replace(true);
        listening.await
    }

    /// Waits for the end of a program that writes no more.
    pub(super) async fn see_out(
        &self,
        mut exiting: Pin<&mut impl Future<Output = io::Result<End>>>,
        report: &Reporter,
    ) -> io::Result<End> {
        if let Ok(end) = timeout(SOON, exiting.as_mut()).await {
            return end;
        }
        catch_up(report).await;
        exiting.await
    }
}

/// Two texts, each of which may end long before the other.
async fn both(
    one: impl Future<Output = Result<Text, LedgerError>>,
    other: impl Future<Output = Result<Text, LedgerError>>,
    report: &Reporter,
) -> Result<(Text, Text), LedgerError> {
    let ended = Notify::new();
    let one = one.inspect(|_| ended.notify_one());
    let other = other.inspect(|_| ended.notify_one());
    let minded = async {
        ended.notified().await;
        sleep(SOON).await;
        catch_up(report).await;
        std::future::pending().await
    };
    tokio::select! {
        biased;
        texts = async { tokio::try_join!(one, other) } => texts,
        texts = minded => texts,
    }
}

/// Writes what was kept back, to be read by now. It is written with the end where that fails.
pub(super) async fn catch_up(report: &Reporter) {
    if let Err(error) = report.catch_up().await {
        tracing::warn!(%error, "the last of a text waits for the end");
    }
}
