//! Settings of a continued execution: they apply until the answer to its question sets them again.

use std::collections::BTreeMap;

use crate::gateway::reader::ledger_read_failure;
use crate::model::code::Code;
use crate::model::execution::record::ExecutionRecord;
use crate::model::execution::request::Request;
use crate::model::failure::Failure;
use crate::services::Services;
use crate::services::sealed_inputs::unseal_input;

/// Texts of which each redacted value contains one.
const REDACTION_MARKERS: [&str; 2] = ["***", "..."];

/// Adds the trace context, the overrides and the parameters of the continued execution to a request.
///
/// # Errors
/// Returns `ledger-unavailable`, or `invalid-params` if the earlier parameters are stored in redacted form only.
pub(super) async fn inherit_settings(
    services: &Services,
    record: &ExecutionRecord,
    request: &mut Request,
) -> Result<(), Failure> {
    request.origin.trace.clone_from(&record.trace);
    request.inherited_overrides = record.overrides.clone();
    let params = &mut request.input.params;
    if record.params.keys().any(|name| !params.contains_key(name)) {
        for (name, value) in read_earlier_params(services, record, params).await? {
            params.entry(name).or_insert(value);
        }
    }
    Ok(())
}

/// Returns the raw parameters of an execution. Without its sealed input, they are those that redaction left unchanged.
async fn read_earlier_params(
    services: &Services,
    record: &ExecutionRecord,
    new_params: &BTreeMap<String, String>,
) -> Result<BTreeMap<String, String>, Failure> {
    if record.stores_raw_input {
        return Ok(record.params.clone());
    }
    let input =
        unseal_input(services, record).await.map_err(|error| ledger_read_failure(&error))?;
    if let Ok(input) = input {
        return Ok(input.params);
    }
    let is_lost = |(name, value): &(&String, &String)| {
        !new_params.contains_key(*name) && REDACTION_MARKERS.iter().any(|mark| value.contains(mark))
    };
    let lost_params: Vec<_> =
        record.params.iter().filter(is_lost).map(|(name, _)| &**name).collect();
    if lost_params.is_empty() {
        Ok(record.params.clone())
    } else {
        Err(lost_params_failure(&lost_params))
    }
}

fn lost_params_failure(names: &[&str]) -> Failure {
    let names = names.join("`, `");
    let message =
        format!("these parameters cannot be read; send them again with the answer: `{names}`");
    Failure::new(Code::InvalidParams, message)
}
