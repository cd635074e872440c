//! `/api/v1`: agents and executions, for programs and for the command line.

use algonius_actors::door::Gateway;
use algonius_actors::model::agent::Access;
use algonius_actors::model::code::Code;
use algonius_actors::model::content::Piece;
use algonius_actors::model::event::{Channel, Fact, Span, Speaker};
use algonius_actors::model::failure::Failure;
use algonius_actors::model::id::{AgentId, ExecutionId};
use algonius_actors::model::principal::Right;
use algonius_actors::model::record::Filter;
use algonius_actors::model::record::Record;
use algonius_actors::model::trace::Trace;
use axum::extract::{Query, State};
use axum::response::Response;
use serde::Deserialize;

use super::answer::{Problem, ok};
use super::auth::Who;
use super::segment::Segment;
use super::status::to_json;
use super::{App, card};
use crate::wire::api::{AgentEntry, AgentList, ExecutionDetail, ExecutionEntry, ExecutionList};

/// Entries on a page when the caller does not say.
const PAGE: u32 = 50;
/// Entries on a page at most.
const LONGEST_PAGE: u32 = 1000;

/// The directory: the agents that the caller may use.
///
/// # Errors
/// `forbidden`.
pub async fn agents(State(app): State<App>, who: Who) -> Result<Response, Problem> {
    let caller = who.may(Right::Read, None)?;
    let seen = app.agents.values().filter(|spec| caller.scope.allows(Right::Read, Some(&spec.id)));
    let agents = seen.map(|spec| {
        let access = match spec.access {
            Access::ReadOnly => "read-only",
            Access::ReadWrite => "read-write",
        };
        AgentEntry {
            id: spec.id.to_string(),
            name: spec.name.clone(),
            description: spec.description.clone(),
            version: spec.version.clone(),
            enabled: spec.enabled,
            access: access.to_owned(),
            enforcement: spec.enforcement,
            isolation: spec.isolation,
            url: card::url(&app, spec),
            card: format!("{}/agents/{}/.well-known/agent-card.json", app.public_url, spec.id),
        }
    });
    Ok(ok(&to_json(&AgentList { agents: agents.collect() })?))
}

/// Which executions to list.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListQuery {
    agent: Option<String>,
    #[serde(default)]
    unfinished: bool,
    limit: Option<u32>,
    before: Option<String>,
}

/// Executions that the caller may see, newest first.
///
/// # Errors
/// `invalid-params`, or when the ledger could not be read.
pub async fn executions(
    State(app): State<App>,
    who: Who,
    query: Result<Query<ListQuery>, axum::extract::rejection::QueryRejection>,
) -> Result<Response, Problem> {
    let caller = who.may(Right::Read, None)?;
    let wrong = |text: &str| Failure::new(Code::InvalidParams, text);
    let Query(query) = query.map_err(|_rejected| {
        wrong("the query takes `agent`, `unfinished`, `limit` and `before`")
    })?;
    let limit = query.limit.unwrap_or(PAGE);
    if !(1..=LONGEST_PAGE).contains(&limit) {
        return Err(wrong("`limit` must be 1 to 1000").into());
    }
    let agent = query.agent.map(AgentId::new).transpose();
    let before = query.before.map(|text| {
        ExecutionId::parse(&text).ok_or_else(|| wrong("`before` must be the id of an execution"))
    });
    let filter = Filter {
        agent: agent.map_err(|error| wrong(&error.to_string()))?,
        unfinished: query.unfinished,
        before: before.transpose()?,
        limit: limit + 1, // One more tells whether there is a next page.
        ..Filter::default()
    };
    let mut records = app.gateway.executions(&caller, filter).await?;
    let more = records.len() > limit as usize;
    records.truncate(limit as usize);
    let next = records.last().filter(|_| more).map(|record| record.id.to_string());
    let mut executions = Vec::with_capacity(records.len());
    for record in &records {
        executions.push(ExecutionEntry::of(record, app.gateway.queued(record).await));
    }
    Ok(ok(&to_json(&ExecutionList { executions, next })?))
}

/// One execution with all that is known of it.
///
/// # Errors
/// `execution-unknown`, or when the ledger could not be read.
pub async fn execution(
    State(app): State<App>,
    who: Who,
    Segment(id): Segment,
) -> Result<Response, Problem> {
    let caller = who.may(Right::Read, None)?;
    let record = app.gateway.execution(&caller, parse(&id)?).await?;
    Ok(ok(&to_json(&detail(&app.gateway, &record).await?)?))
}

/// Calls an execution off and answers when it has ended.
///
/// # Errors
/// `execution-unknown` or `execution-ended`.
pub async fn cancel(
    State(app): State<App>,
    who: Who,
    Segment(id): Segment,
) -> Result<Response, Problem> {
    let caller = who.may(Right::Run, None)?;
    let (record, progress) = app.gateway.cancel(&caller, parse(&id)?).await?;
    app.gateway.ended(&record, progress).await;
    let record = app.gateway.execution(&caller, record.id).await?;
    Ok(ok(&to_json(&ExecutionEntry::from(&record))?))
}

fn parse(id: &str) -> Result<ExecutionId, Failure> {
    ExecutionId::parse(id)
        .ok_or_else(|| Failure::new(Code::ExecutionUnknown, "there is no such execution"))
}

async fn detail(gateway: &Gateway, record: &Record) -> Result<ExecutionDetail, Failure> {
    let events = gateway.events(record, 0).await?;
    let stderr = Span { stamp: record.stamp, channel: Channel::Stderr, from: 0, to: u64::MAX };
    let (mut input, mut output) = (String::new(), String::new());
    for event in &events {
        match &event.fact {
            Fact::Said { speaker: Speaker::Caller, pieces, .. } => {
                input = text(gateway, record, pieces).await?;
            }
            Fact::Artifact { pieces, .. } => output += &text(gateway, record, pieces).await?,
            _ => {}
        }
    }
    let stdout = Span { channel: Channel::Stdout, ..stderr };
    if output.is_empty() && record.outcome.is_some() {
        output = gateway.text(record, stdout).await?;
    }
    Ok(ExecutionDetail {
        entry: ExecutionEntry::of(record, gateway.queued(record).await),
        message_id: record.message.0.clone(),
        owner: record.owner.to_string(),
        trace_id: Some(Trace::of_execution(record.trace.as_ref(), record.id).id.to_string()),
        input,
        working_directory: record.overrides.working_dir.clone(),
        environment: record.overrides.env.clone(),
        stderr: gateway.text(record, stderr).await?,
        output: record.outcome.map(|_| output),
        events,
    })
}

/// The texts of pieces, one after the other.
async fn text(gateway: &Gateway, record: &Record, pieces: &[Piece]) -> Result<String, Failure> {
    let mut all = String::new();
    for piece in pieces {
        all += &gateway.text(record, piece.text).await?;
    }
    Ok(all)
}
