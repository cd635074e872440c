//! `algonius schedule`: what is asked for at set times.

use chrono::{DateTime, Utc};
use serde_json::{Map, Value, json};

use super::args::schedule::{ScheduleCommand, Terms};
use super::client::Client;
use super::fault::CliError;
use super::out::Out;
use crate::wire::api::schedules::{
    OccurrenceEntry, OccurrenceList, Preview, ScheduleDetail, ScheduleEntry, ScheduleList, Upcoming,
};

const ROOT: &str = "/api/v1/schedules";

/// Does what was asked.
pub(super) async fn run(
    client: &Client,
    command: ScheduleCommand,
    out: &Out,
) -> Result<(), CliError> {
    match command {
        ScheduleCommand::List => list(client, out).await,
        ScheduleCommand::Show { id } => show(client, &id, out).await,
        ScheduleCommand::Create { id, terms } => {
            let body = terms.over(json!({"id": id}))?;
            said(&client.post(ROOT, body).await?, out);
            Ok(())
        }
        ScheduleCommand::Update { id, terms } => update(client, &id, terms, out).await,
        ScheduleCommand::Delete { id } => {
            client.remove(&format!("{ROOT}/{id}")).await?;
            if out.is_json() {
                out.shape(&json!({"removed": id}));
            } else {
                out.note(&format!("schedule {id} is removed"));
            }
            Ok(())
        }
        ScheduleCommand::Pause { id } => order(client, &id, "pause", out).await,
        ScheduleCommand::Resume { id } => order(client, &id, "resume", out).await,
        ScheduleCommand::Run { id } => order(client, &id, "run", out).await,
        ScheduleCommand::Next { id, count } => {
            let told: Preview = client.get(&format!("{ROOT}/{id}/next?count={count}")).await?;
            preview(&told, out);
            Ok(())
        }
        ScheduleCommand::Explain { cron, timezone, count } => {
            let body = json!({"cron": cron, "timezone": timezone, "count": count});
            preview(&client.post(&format!("{ROOT}/preview"), body).await?, out);
            Ok(())
        }
        ScheduleCommand::History { id, verdict, limit } => {
            history(client, &id, verdict, limit, out).await
        }
    }
}

async fn list(client: &Client, out: &Out) -> Result<(), CliError> {
    let mut all = ScheduleList { schedules: Vec::new(), next: None };
    let mut path = format!("{ROOT}?limit=1000");
    loop {
        let page: ScheduleList = client.get(&path).await?;
        all.schedules.extend(page.schedules);
        let Some(next) = page.next else { break };
        path = format!("{ROOT}?limit=1000&after={next}");
    }
    if out.is_json() {
        out.shape(&all);
        return Ok(());
    }
    let rows = all.schedules.iter().map(row).collect();
    let head = ["SCHEDULE", "AGENT", "WHEN", "ZONE", "STATE", "NEXT", "FROM"];
    out.table(head, rows, "no schedules");
    Ok(())
}

fn row(entry: &ScheduleEntry) -> [String; 7] {
    let body = &entry.body;
    [
        body.id.clone(),
        body.agent.clone(),
        body.cron.clone(),
        body.timezone.clone().unwrap_or_default(),
        word(&entry.standing),
        entry.next.map_or("-".to_owned(), at),
        word(&entry.origin),
    ]
}

async fn show(client: &Client, id: &str, out: &Out) -> Result<(), CliError> {
    let detail: ScheduleDetail = client.get(&format!("{ROOT}/{id}")).await?;
    if out.is_json() {
        out.shape(&detail);
        return Ok(());
    }
    said(&detail.entry, out);
    out.line(&format!("means     {}", detail.words));
    out.line(&format!("30 days   {}", json!(detail.statistics)));
    upcoming(&detail.upcoming, out);
    Ok(())
}

/// Gets what it says, puts what is given over it, and writes it back.
async fn update(client: &Client, id: &str, terms: Terms, out: &Out) -> Result<(), CliError> {
    let detail: ScheduleDetail = client.get(&format!("{ROOT}/{id}")).await?;
    let body = serde_json::to_value(&detail.entry.body).unwrap_or_default();
    said(&client.put(&format!("{ROOT}/{id}"), terms.over(body)?).await?, out);
    Ok(())
}

async fn order(client: &Client, id: &str, verb: &str, out: &Out) -> Result<(), CliError> {
    said(&client.post(&format!("{ROOT}/{id}/{verb}"), json!({})).await?, out);
    Ok(())
}

async fn history(
    client: &Client,
    id: &str,
    verdict: Option<String>,
    limit: u32,
    out: &Out,
) -> Result<(), CliError> {
    let verdict = verdict.map_or(String::new(), |verdict| format!("&verdict={verdict}"));
    let path = format!("{ROOT}/{id}/occurrences?limit={limit}{verdict}");
    let list: OccurrenceList = client.get(&path).await?;
    if out.is_json() {
        out.shape(&list);
        return Ok(());
    }
    let rows = list.occurrences.iter().map(occurrence).collect();
    let head = ["PLANNED", "VERDICT", "LATE", "ENDED", "TASK", "WHY"];
    out.table(head, rows, "nothing yet");
    Ok(())
}

fn occurrence(entry: &OccurrenceEntry) -> [String; 6] {
    let times = if entry.times > 1 { format!(" x{}", entry.times) } else { String::new() };
    let code = entry.code.map(|code| code.as_str().to_owned());
    [
        at(entry.planned),
        format!("{}{times}", word(&entry.verdict)),
        entry.deviation_ms.map_or(String::new(), |late| format!("{late} ms")),
        entry.outcome.map_or(String::new(), |outcome| outcome.to_string()),
        entry.execution.clone().unwrap_or_default(),
        entry.reason.clone().or(code).unwrap_or_default(),
    ]
}

fn said(entry: &ScheduleEntry, out: &Out) {
    if out.is_json() {
        return out.shape(entry);
    }
    let body = &entry.body;
    let zone = body.timezone.as_deref().unwrap_or_default();
    out.line(&format!("schedule  {} ({})", body.id, word(&entry.standing)));
    out.line(&format!("asks      {}", body.agent));
    out.line(&format!("when      {} in {zone}", body.cron));
    out.line(&format!("next      {}", entry.next.map_or("-".to_owned(), at)));
    if entry.alert {
        out.line(&format!("alert     failed {} times in a row", entry.failures_in_a_row));
    }
    for id in &entry.working {
        out.line(&format!("working   {id}"));
    }
}

fn preview(told: &Preview, out: &Out) {
    if out.is_json() {
        return out.shape(told);
    }
    out.line(&told.words);
    upcoming(&told.upcoming, out);
}

fn upcoming(times: &[Upcoming], out: &Out) {
    for time in times {
        out.line(&format!("  {}  ({})", time.local, at(time.planned)));
    }
}

fn at(time: DateTime<Utc>) -> String {
    time.format("%Y-%m-%d %H:%M:%SZ").to_string()
}

/// A published word as it is written.
fn word(value: &impl serde::Serialize) -> String {
    let value = serde_json::to_value(value).unwrap_or_default();
    value.as_str().unwrap_or_default().to_owned()
}

impl Terms {
    /// What is given, in the place of what stands in a body.
    fn over(self, body: Value) -> Result<Value, CliError> {
        let mut body = match body {
            Value::Object(body) => body,
            _ => Map::new(),
        };
        let input = match self.input_file {
            None => self.input,
            Some(file) => {
                let read = std::fs::read_to_string(&file);
                Some(read.map_err(|source| CliError::File { what: "cannot read", file, source })?)
            }
        };
        let params: Map<_, _> =
            self.params.into_iter().map(|(name, value)| (name, Value::from(value))).collect();
        let given = [
            ("agent", self.agent.map(Value::from)),
            ("cron", self.cron.map(Value::from)),
            ("input", input.map(Value::from)),
            ("name", self.name.map(Value::from)),
            ("timezone", self.timezone.map(Value::from)),
            ("params", (!params.is_empty()).then_some(Value::Object(params))),
            ("missed", self.missed.map(Value::from)),
            ("missedWindow", self.missed_window.map(Value::from)),
            ("missedMax", self.missed_max.map(Value::from)),
            ("overlap", self.overlap.map(Value::from)),
            ("jitter", self.jitter.map(Value::from)),
            ("deadline", self.deadline.map(Value::from)),
            ("alertAfter", self.alert_after.map(Value::from)),
            ("enabled", self.enabled.map(Value::from)),
        ];
        let given = given.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
        body.extend(given);
        Ok(Value::Object(body))
    }
}
