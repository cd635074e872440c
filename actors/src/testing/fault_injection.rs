//! Gate before the ledger: makes calls fail, take time, or die with the service.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use crate::ports::ledger::LedgerError;

/// Kind of call to the ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LedgerCallKind {
    /// `accept`, `record_answer`.
    Accept,
    /// `claim`.
    Claim,
    /// `append_batch`.
    AppendBatch,
    /// `append_chunk`, `delete_output`.
    ChangeOutput,
    /// `settle`.
    Settle,
    /// `execution`, `events`, `text`, `tokens`, `interaction`.
    Read,
    /// `executions`, `execution_page`, `interactions`, `decisions`.
    List,
    /// `replace_configured_tokens`.
    ReplaceTokens,
    /// Writes to the schedule store.
    Schedule,
    /// Writes about interactions.
    Interaction,
}

#[derive(Default)]
struct LedgerCallFault {
    remaining_failures: u32,
    next_delays: VecDeque<Duration>,
    default_delay: Duration,
    call_count: u32,
}

/// Faults of a ledger, shared by all processes of a service.
#[derive(Default)]
pub struct LedgerFaults(watch::Sender<HashMap<LedgerCallKind, LedgerCallFault>>);

impl LedgerFaults {
    /// Makes the next calls of a kind fail; `u32::MAX` is all of them.
    pub fn fail_next(&self, call: LedgerCallKind, times: u32) {
        self.0.send_modify(|faults| faults.entry(call).or_default().remaining_failures = times);
    }

    /// Makes the next calls of a kind take this many seconds each before they commit.
    pub fn delay_next(&self, call: LedgerCallKind, seconds: impl IntoIterator<Item = u64>) {
        let delays = seconds.into_iter().map(Duration::from_secs).collect();
        self.0.send_modify(|faults| faults.entry(call).or_default().next_delays = delays);
    }

    /// Makes every call of a kind take this many seconds before it commits.
    pub fn delay_all(&self, call: LedgerCallKind, seconds: u64) {
        let delay = Duration::from_secs(seconds);
        self.0.send_modify(|faults| faults.entry(call).or_default().default_delay = delay);
    }

    /// Returns the number of calls of a kind since the faults were last cleared.
    #[must_use]
    pub fn call_count(&self, call: LedgerCallKind) -> u32 {
        self.0.borrow().get(&call).map_or(0, |fault| fault.call_count)
    }

    /// Clears all faults.
    pub fn clear_faults(&self) {
        self.0.send_modify(HashMap::clear);
    }

    /// Returns the fault of the next call of a kind: a delay, and true if it fails.
    fn take_fault(&self, call: LedgerCallKind) -> (Duration, bool) {
        let mut fault_effect = (Duration::ZERO, false);
        self.0.send_modify(|faults| {
            let fault = faults.entry(call).or_default();
            fault.call_count += 1;
            fault_effect = (
                fault.next_delays.pop_front().unwrap_or(fault.default_delay),
                fault.remaining_failures > 0,
            );
            if fault.remaining_failures < u32::MAX {
                fault.remaining_failures = fault.remaining_failures.saturating_sub(1);
            }
        });
        fault_effect
    }
}

/// Access of one process of the service to the ledger.
pub(super) struct FaultInjector {
    faults: Arc<LedgerFaults>,
    kill_sender: watch::Sender<bool>,
}

impl FaultInjector {
    pub(super) fn new(faults: Arc<LedgerFaults>) -> Self {
        Self { faults, kill_sender: watch::Sender::new(false) }
    }

    /// Ends this process: a task that calls from it, or is in a call, ends without having changed a row.
    pub(super) fn kill_process(&self) {
        self.kill_sender.send_replace(true);
    }

    pub(super) async fn inject_fault(&self, call: LedgerCallKind) -> Result<(), LedgerError> {
        let (delay, should_fail) = self.faults.take_fault(call);
        let mut kill_receiver = self.kill_sender.subscribe();
        tokio::select! {
            biased;
            _ = kill_receiver.wait_for(|dead| *dead) => unwind_killed_call(),
            () = tokio::time::sleep(delay), if !delay.is_zero() => {}
            () = std::future::ready(()), if delay.is_zero() => {}
        }
        if should_fail {
            return Err(LedgerError::Unavailable { cause: format!("{call:?} fails as scripted") });
        }
        Ok(())
    }
}

/// Unwinds the calling task without a message: a killed process does not return from a call.
fn unwind_killed_call() -> ! {
    std::panic::resume_unwind(Box::new("the service was killed"))
}
