//! One execution with all that is known of it.

use algonius_actors::door::Gateway;
use algonius_actors::model::content::Piece;
use algonius_actors::model::event::{Channel, Fact, Span, Speaker};
use algonius_actors::model::failure::Failure;
use algonius_actors::model::principal::Right;
use algonius_actors::model::record::Record;
use axum::extract::State;
use axum::response::Response;

use super::execution_id;
use crate::serve::App;
use crate::serve::answer::{Problem, ok};
use crate::serve::auth::Who;
use crate::serve::segment::Segment;
use crate::serve::status::to_json;
use crate::wire::api::{ExecutionDetail, ExecutionEntry};

/// One execution with all that is known of it.
///
/// # Errors
/// `execution-unknown`, or when the ledger could not be read.
pub async fn show(
    State(app): State<App>,
    who: Who,
    Segment(id): Segment,
) -> Result<Response, Problem> {
    let caller = who.may(Right::Read, None)?;
    let record = app.gateway.execution(&caller, execution_id(&id)?).await?;
    Ok(ok(&to_json(&detail(&app.gateway, &record).await?)?))
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
