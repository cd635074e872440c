//! Load of the schedules at the start, and application of the configuration.

use std::sync::Arc;

use super::SchedulerArgs;
use super::changes::{schedules_to_put, schedules_to_remove};
use super::table::ScheduleTable;
use crate::model::id::{PrincipalId, ScheduleId};
use crate::model::schedule::{ConfiguredSchedule, Schedule, ScheduleSpec, TextSealing};
use crate::ports::ledger::{Ledger, LedgerError};

/// Number of configured schedules that are applied at a time.
const CONFIGURATION_BATCH_SIZE: usize = 1024;

/// Reads the schedules, and applies the configuration, if there is one.
pub(super) async fn load_schedules(
    args: &SchedulerArgs,
    configured: Option<Vec<ConfiguredSchedule>>,
) -> Result<ScheduleTable, LedgerError> {
    let mut table = ScheduleTable::default();
    let schedules = args.config.schedule_store.schedules().await?;
    // Before the schedules are opened in memory, where the texts are raw.
    seal_unscanned_schedules(args, &schedules).await?;
    let interned_schedules =
        schedules.into_iter().map(|schedule| table.intern(args.services.unseal_schedule(schedule)));
    let interned_schedules = interned_schedules.collect();
    table.insert_all(interned_schedules);
    if let Some(configured) = configured {
        reconcile(&mut table, args, configured).await?;
    }
    Ok(table)
}

/// Rewrites schedules of an earlier release, which stored all texts in plain form.
async fn seal_unscanned_schedules(
    args: &SchedulerArgs,
    schedules: &[Schedule],
) -> Result<(), LedgerError> {
    let unscanned_schedules: Vec<_> = schedules
        .iter()
        .filter(|schedule| schedule.text_sealing == TextSealing::Unscanned)
        .cloned()
        .collect();
    for batch in unscanned_schedules.chunks(CONFIGURATION_BATCH_SIZE) {
        args.config.schedule_store.put_schedules(args.services.seal_schedules(batch)).await?;
    }
    Ok(())
}

/// Applies the configuration in batches, so that few schedules are in memory in their full form. After a crash the next
/// start applies it again.
async fn reconcile(
    table: &mut ScheduleTable,
    args: &SchedulerArgs,
    configured: Vec<ConfiguredSchedule>,
) -> Result<(), LedgerError> {
    let store = Arc::clone(&args.config.schedule_store);
    let configured_ids = configured.iter().map(|schedule| schedule.spec.id.clone()).collect();
    let removals = schedules_to_remove(table.iter().map(|entry| &entry.schedule), &configured_ids);
    drop(configured_ids); // Not needed while the memory use is highest.
    let (mut configured, mut interned_schedules) = (configured.into_iter(), Vec::new());
    while configured.len() > 0 {
        let batch = configured.by_ref().take(CONFIGURATION_BATCH_SIZE).collect();
        let batch = resolve_owners(&*args.services.ledger, batch).await?;
        let find_existing = |id: &ScheduleId| table.get(id).map(|entry| &entry.schedule);
        let upserts = schedules_to_put(find_existing, batch, args.now());
        let sealed_schedules = args.services.seal_schedules(&upserts);
        interned_schedules.extend(upserts.into_iter().map(|schedule| table.intern(schedule)));
        if !sealed_schedules.is_empty() {
            store.put_schedules(sealed_schedules).await?;
        }
    }
    drop(configured);
    removals.iter().for_each(|id| _ = table.remove(id)); // No timer is set yet.
    table.insert_all(interned_schedules);
    table.drop_unused_interned_data();
    if !removals.is_empty() {
        store.remove_schedules(removals).await?;
    }
    Ok(())
}

/// Returns the schedules of the configuration, each with its owner. A schedule with an unknown owner gets a nil owner:
/// its occurrences are rejected with that reason.
pub(crate) async fn resolve_owners(
    ledger: &dyn Ledger,
    configured: Vec<ConfiguredSchedule>,
) -> Result<Vec<(ScheduleSpec, PrincipalId)>, LedgerError> {
    let tokens = ledger.tokens().await?;
    let find_token = |name: &str| tokens.iter().find(|token| token.principal_name == name);
    let nil_owner = PrincipalId(uuid::Uuid::nil());
    let specs_with_owners = configured.into_iter().map(|ConfiguredSchedule { spec, owner }| {
        (spec, find_token(&owner).map_or(nil_owner, |token| token.principal))
    });
    Ok(specs_with_owners.collect())
}
