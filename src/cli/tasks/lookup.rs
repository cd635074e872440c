//! Resolution of user input: a task by a part of its id, and suggestions for similar names.

use uuid::Uuid;

use crate::cli::args::filters::Filters;
use crate::cli::client::{ServiceClient, similar_agent_hint};
use crate::cli::error::CliError;
use crate::config::nearest_word;
use crate::wire::api::{ErrorBody, ExecutionEntry, ExecutionList};

/// Maximum number of tasks that are listed if a part of an id is ambiguous.
const MAX_CANDIDATES: usize = 10;

/// Returns the whole id of a task, by its id or by the start or the end of its id.
///
/// # Errors
/// Fails if no task or several tasks have such an id.
pub(crate) async fn resolve_task_id(
    client: &ServiceClient,
    id_or_part: &str,
) -> Result<String, CliError> {
    if let Ok(id) = Uuid::parse_str(id_or_part) {
        return Ok(id.to_string());
    }
    let is_hex = id_or_part.chars().all(|char| char.is_ascii_hexdigit() || char == '-');
    if !is_hex || id_or_part.chars().filter(char::is_ascii_hexdigit).count() < 4 {
        return Err(unknown_task_error(id_or_part));
    }
    let filters = [
        ("id", id_or_part.to_owned()),
        ("summary", "true".to_owned()),
        ("limit", (MAX_CANDIDATES + 1).to_string()),
    ];
    let query = Filters::default().query(&filters);
    let list: ExecutionList = client.get(&format!("/api/v1/executions?{query}")).await?;
    match list.executions.as_slice() {
        [] => Err(unknown_task_error(id_or_part)),
        [only] => Ok(only.id.clone()),
        several => {
            let has_more = several.len() > MAX_CANDIDATES;
            let candidates = several.iter().take(MAX_CANDIDATES).map(candidate_line).collect();
            Err(CliError::AmbiguousId { id: id_or_part.to_owned(), candidates, has_more })
        }
    }
}

fn candidate_line(entry: &ExecutionEntry) -> String {
    let ExecutionEntry { id, agent, state, accepted_at, .. } = entry;
    let request = entry.summary.as_ref().map(|it| it.request.as_str()).unwrap_or_default();
    format!("{id}  {agent}  {state}  {}  {request}", accepted_at.format("%Y-%m-%d %H:%M:%SZ"))
}

fn unknown_task_error(id_or_part: &str) -> CliError {
    CliError::RequestRefused(ErrorBody {
        code: "execution-unknown".to_owned(),
        category: "permanent".to_owned(),
        message: format!("there is no task `{id_or_part}`"),
        hint:
            "give an id of `algonius tasks list`, or 4 digits or more of its beginning or its end"
                .to_owned(),
    })
}

/// Returns a remark about a similar agent or schedule after a filter found nothing.
pub(crate) async fn similar_name_hint(client: &ServiceClient, filters: &Filters) -> Option<String> {
    if let Some(name) = &filters.agent {
        let suggestion = similar_agent_hint(client, name).await?;
        return Some(format!("there is no agent `{name}` now; {suggestion}"));
    }
    let name = filters.schedule.as_ref()?;
    let list: serde_json::Value = client.get("/api/v1/schedules?limit=1000").await.ok()?;
    let ids = list.get("schedules")?.as_array()?.iter().filter_map(|it| it.get("id")?.as_str());
    let known_ids: Vec<_> = ids.collect();
    let nearest_id =
        nearest_word(name, &known_ids).filter(|_| !known_ids.contains(&name.as_str()))?;
    Some(format!("there is no schedule `{name}`; did you mean `{nearest_id}`?"))
}
