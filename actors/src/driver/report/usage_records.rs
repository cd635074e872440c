//! Usage of an attempt on its way to the ledger: a report and its charge are one commit.

use std::collections::BTreeMap;

use serde_json::Number;

use super::{Report, Reporter};
use crate::decide::budget::total_and_increment;
use crate::model::agent::budget::Charge;
use crate::model::execution::event::EventKind;
use crate::model::observation::telemetry_events::TokenCounts;
use crate::ports::ledger::{LedgerError, WriteBatch};

/// Counters of usage by name.
pub(crate) type UsageCounters = BTreeMap<String, Number>;

/// Amounts that a report of usage adds to the earlier reports.
struct UsageIncrement {
    /// Usage of the attempt so far.
    total: Charge,
    charge: Charge,
    charge_event: Option<EventKind>,
}

impl Reporter {
    /// Records reported usage and its charge.
    ///
    /// # Errors
    /// Returns an error if the ledger did not commit them.
    pub(super) async fn record_usage(
        &self,
        counters: UsageCounters,
        cumulative: bool,
    ) -> Result<(), LedgerError> {
        let usage = self.usage_increment(&counters, cumulative);
        let event = EventKind::UsageReported { counters, cumulative };
        // The event and its charge are one commit: usage without its charge would never be charged later.
        if self.context.record_event_pair(event, usage.charge_event.clone()).await? {
            // Only after the commit: a refused event has charged nothing.
            self.charge_usage(usage);
        }
        Ok(())
    }

    /// Records the usage of the attempt so far and its charge together with the next commit, at the latest with the end
    /// of the attempt.
    pub(crate) fn record_usage_later(&self, counters: UsageCounters) {
        let usage = self.usage_increment(&counters, true);
        let event = EventKind::UsageReported { counters, cumulative: true };
        let Some(event) = self.context.replay_filter.filter(event) else { return };
        let now = self.now();
        let events = [Some(event), usage.charge_event.clone()].into_iter().flatten();
        let events = events.map(|event| (now, event)).collect();
        self.context.write_buffer.add(WriteBatch { chunks: Vec::new(), events });
        self.charge_usage(usage);
    }

    /// Returns the amounts that a report of usage adds to the earlier reports.
    fn usage_increment(&self, counters: &UsageCounters, cumulative: bool) -> UsageIncrement {
        let reported = Charge::from_counters(counters);
        let (total, charge) =
            total_and_increment(*self.reported_usage.borrow(), reported, cumulative);
        let charge_event = self.context.budget_meter.charge_event(self.context.clock.now(), charge);
        UsageIncrement { total, charge, charge_event }
    }

    /// Charges usage whose event is or will be recorded.
    fn charge_usage(&self, UsageIncrement { total, charge, charge_event }: UsageIncrement) {
        self.reported_usage.send_replace(total);
        self.context.budget_meter.apply_charge_event(charge_event.as_ref());
        let tokens = TokenCounts { input: charge.input_tokens, output: charge.output_tokens };
        let attempt_id = self.context.attempt_id;
        (self.send)(Report::UsageReported { attempt_id, tokens, charge });
    }
}
