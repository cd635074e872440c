//! `algonius schedule`: manages schedules.

use algonius_actors::model::schedule::statistics::ScheduleStatistics;
use chrono::{DateTime, Utc};
use serde_json::{Map, Value, json};

use super::args::schedule::{ScheduleCommand, ScheduleOptions};
use super::client::ServiceClient;
use super::error::CliError;
use super::output::screen::truncate_line;
use super::output::time_text::format_duration;
use super::output::{CliOutput, lossy_text};
use crate::wire::api::schedules::{
    OccurrenceEntry, OccurrenceList, Preview, ScheduleDetail, ScheduleEntry, ScheduleList, Upcoming,
};

const SCHEDULES_PATH: &str = "/api/v1/schedules";
/// Greatest number of runs in a page of the history.
const MAX_HISTORY_LENGTH: u32 = 1000;

/// Maximum number of characters of an input that are shown.
const MAX_INPUT_CHARS: usize = 200;

/// Runs the command.
pub(super) async fn run(
    client: &ServiceClient,
    command: ScheduleCommand,
    out: &CliOutput,
) -> Result<(), CliError> {
    match command {
        ScheduleCommand::List => list(client, out).await,
        ScheduleCommand::Show { id } => show(client, &id, out).await,
        ScheduleCommand::Create { id, options } => {
            let body = options.override_fields(json!({"id": id}), out)?;
            print_entry(&client.post(SCHEDULES_PATH, body).await?, out);
            Ok(())
        }
        ScheduleCommand::Update { id, options } => update(client, &id, options, out).await,
        ScheduleCommand::Delete { id } => {
            client.delete_ignoring_body(&format!("{SCHEDULES_PATH}/{id}")).await?;
            if out.is_json() {
                out.print_json(&json!({"removed": id}));
            } else {
                out.print_note(&format!("schedule {id} is removed"));
            }
            Ok(())
        }
        ScheduleCommand::Pause { id } => post_action(client, &id, "pause", out).await,
        ScheduleCommand::Resume { id } => post_action(client, &id, "resume", out).await,
        ScheduleCommand::Run { id } => post_action(client, &id, "run", out).await,
        ScheduleCommand::Next { id, count } => {
            let due_times: Preview =
                client.get(&format!("{SCHEDULES_PATH}/{id}/next?count={count}")).await?;
            print_preview(&due_times, out);
            Ok(())
        }
        ScheduleCommand::Explain { cron, timezone, count } => {
            let body = json!({"cron": cron, "timezone": timezone, "count": count});
            print_preview(&client.post(&format!("{SCHEDULES_PATH}/preview"), body).await?, out);
            Ok(())
        }
        ScheduleCommand::History { id, status, limit } => {
            print_history(client, &id, status, limit, out).await
        }
    }
}

async fn list(client: &ServiceClient, out: &CliOutput) -> Result<(), CliError> {
    let mut schedule_list = ScheduleList { schedules: Vec::new(), next: None };
    let mut path = format!("{SCHEDULES_PATH}?limit=1000");
    loop {
        let page: ScheduleList = client.get(&path).await?;
        schedule_list.schedules.extend(page.schedules);
        let Some(next) = page.next else { break };
        path = format!("{SCHEDULES_PATH}?limit=1000&after={next}");
    }
    if out.is_json() {
        out.print_json(&schedule_list);
        return Ok(());
    }
    let rows = schedule_list.schedules.iter().map(schedule_row).collect();
    let headings = ["SCHEDULE", "AGENT", "WHEN", "ZONE", "STATE", "NEXT", "FROM"];
    out.print_table(headings, rows, "no schedules");
    Ok(())
}

fn schedule_row(entry: &ScheduleEntry) -> [String; 7] {
    let definition = &entry.definition;
    [
        definition.id.clone(),
        definition.agent.clone(),
        definition.cron.clone(),
        definition.timezone.clone().unwrap_or_default(),
        wire_name(&entry.state),
        entry.next.map_or("-".to_owned(), format_time),
        wire_name(&entry.origin),
    ]
}

async fn show(client: &ServiceClient, id: &str, out: &CliOutput) -> Result<(), CliError> {
    let detail: ScheduleDetail = client.get(&format!("{SCHEDULES_PATH}/{id}")).await?;
    if out.is_json() {
        out.print_json(&detail);
        return Ok(());
    }
    print_entry(&detail.entry, out);
    out.print_line(&format!("means     {}", detail.description));
    let input = truncate_line(detail.entry.definition.input.trim(), MAX_INPUT_CHARS);
    out.print_line(&format!("input     {input}"));
    statistics_lines(&detail.statistics).iter().for_each(|line| out.print_line(line));
    out.print_line("next times:");
    print_upcoming(&detail.upcoming, out);
    Ok(())
}

/// Returns the statistics of the last thirty days in sentences.
fn statistics_lines(statistics: &ScheduleStatistics) -> Vec<String> {
    let status_counts: Vec<_> = statistics
        .times
        .iter()
        .filter(|(_, count)| **count > 0)
        .map(|(status, count)| format!("{count} {}", status.as_str()))
        .collect();
    if status_counts.is_empty() {
        return vec!["30 days   no time has passed yet".to_owned()];
    }
    let mut lines = vec![format!("30 days   {} times", status_counts.join(", "))];
    if statistics.ended > 0 {
        let retried_note = match statistics.recovered {
            0 => String::new(),
            count => format!(", {count} of them after a failed attempt"),
        };
        let success_rate = statistics
            .success_permille
            .map_or(String::new(), |it| format!(" ({})", format_percent(it)));
        lines.push(format!(
            "results   {} of {} tasks succeeded{success_rate}{retried_note}",
            statistics.succeeded, statistics.ended
        ));
    }
    let failure_counts: Vec<_> = statistics
        .failed
        .iter()
        .map(|(class, count)| format!("{count} {}", wire_name(class)))
        .collect();
    if !failure_counts.is_empty() {
        lines.push(format!("failures  {}", failure_counts.join(", ")));
    }
    if let Some(punctual) = statistics.punctual_permille {
        let delay_note = statistics.delay_max_ms.map_or(String::new(), |delay_ms| {
            format!("; the latest was {} late", format_duration(delay_ms.saturating_mul(1000)))
        });
        lines.push(format!("on time   {} within 30 s{delay_note}", format_percent(punctual)));
    }
    lines
}

/// Formats thousandths as a percentage.
fn format_percent(permille: u64) -> String {
    format!("{}.{} %", permille / 10, permille % 10)
}

/// Reads the definition of a schedule, overrides the given fields, and writes it back.
async fn update(
    client: &ServiceClient,
    id: &str,
    options: ScheduleOptions,
    out: &CliOutput,
) -> Result<(), CliError> {
    let detail: ScheduleDetail = client.get(&format!("{SCHEDULES_PATH}/{id}")).await?;
    let body = serde_json::to_value(&detail.entry.definition).unwrap_or_default();
    print_entry(
        &client.put(&format!("{SCHEDULES_PATH}/{id}"), options.override_fields(body, out)?).await?,
        out,
    );
    Ok(())
}

async fn post_action(
    client: &ServiceClient,
    id: &str,
    verb: &str,
    out: &CliOutput,
) -> Result<(), CliError> {
    print_entry(&client.post(&format!("{SCHEDULES_PATH}/{id}/{verb}"), json!({})).await?, out);
    Ok(())
}

async fn print_history(
    client: &ServiceClient,
    id: &str,
    status: Option<String>,
    limit: u32,
    out: &CliOutput,
) -> Result<(), CliError> {
    let status_query = status.map_or(String::new(), |status| format!("&status={status}"));
    let path = format!("{SCHEDULES_PATH}/{id}/occurrences?limit={limit}{status_query}");
    let list: OccurrenceList = client.get(&path).await?;
    if out.is_json() {
        out.print_json(&list);
        return Ok(());
    }
    let rows = list.occurrences.iter().map(occurrence_row).collect();
    let headings = ["PLANNED", "VERDICT", "LATE", "ENDED", "TASK", "WHY"];
    out.print_table(headings, rows, "nothing yet");
    if list.next.is_some() && limit < MAX_HISTORY_LENGTH {
        out.print_note(&format!("there are more runs: --limit takes up to {MAX_HISTORY_LENGTH}"));
    } else if list.next.is_some() {
        out.print_note("there are more runs: the parameter `before` of the API reads them");
    }
    Ok(())
}

fn occurrence_row(entry: &OccurrenceEntry) -> [String; 6] {
    let repetition_note =
        if entry.times > 1 { format!(" x{}", entry.times) } else { String::new() };
    let code = entry.code.map(|code| code.as_str().to_owned());
    [
        format_time(entry.planned),
        format!("{}{repetition_note}", wire_name(&entry.status)),
        entry.delay_ms.map_or(String::new(), |delay_ms| format!("{delay_ms} ms")),
        entry.outcome.map_or(String::new(), |outcome| outcome.to_string()),
        entry.execution.clone().unwrap_or_default(),
        entry.reason.clone().or(code).unwrap_or_default(),
    ]
}

fn print_entry(entry: &ScheduleEntry, out: &CliOutput) {
    if out.is_json() {
        return out.print_json(entry);
    }
    let definition = &entry.definition;
    let zone = definition.timezone.as_deref().unwrap_or_default();
    out.print_line(&format!("schedule  {} ({})", definition.id, wire_name(&entry.state)));
    out.print_line(&format!("asks      {}", definition.agent));
    out.print_line(&format!("when      {} in {zone}", definition.cron));
    out.print_line(&format!("next      {}", entry.next.map_or("-".to_owned(), format_time)));
    if entry.input_lost {
        out.print_line("input     lost: it was sealed and the key is gone; its times are refused until it is given again");
    }
    if entry.alert {
        out.print_line(&format!("alert     failed {} times in a row", entry.failures_in_a_row));
    }
    for id in &entry.working {
        out.print_line(&format!("working   {id}"));
    }
}

fn print_preview(preview: &Preview, out: &CliOutput) {
    if out.is_json() {
        return out.print_json(preview);
    }
    out.print_line(&preview.description);
    print_upcoming(&preview.upcoming, out);
}

fn print_upcoming(times: &[Upcoming], out: &CliOutput) {
    for time in times {
        out.print_line(&format!("  {}  ({})", time.local, format_time(time.planned)));
    }
}

fn format_time(time: DateTime<Utc>) -> String {
    time.format("%Y-%m-%d %H:%M:%SZ").to_string()
}

/// Returns a public word as text.
fn wire_name(value: &impl serde::Serialize) -> String {
    let value = serde_json::to_value(value).unwrap_or_default();
    value.as_str().unwrap_or_default().to_owned()
}

impl ScheduleOptions {
    /// Overrides fields of a request body.
    fn override_fields(self, body: Value, out: &CliOutput) -> Result<Value, CliError> {
        let mut body = match body {
            Value::Object(body) => body,
            _ => Map::new(),
        };
        let input = match self.input_file {
            None => self.input,
            Some(file) => {
                let (problem, source) = ("cannot read", file.display().to_string());
                let read_result = std::fs::read(&file);
                let bytes =
                    read_result.map_err(|source| CliError::File { problem, file, source })?;
                Some(lossy_text::decode_with_note(&source, bytes, out))
            }
        };
        let params: Map<_, _> =
            self.params.into_iter().map(|(name, value)| (name, Value::from(value))).collect();
        let fields = [
            ("agent", self.agent.map(Value::from)),
            ("cron", self.cron.map(Value::from)),
            ("input", input.map(Value::from)),
            ("name", self.name.map(Value::from)),
            ("timezone", self.timezone.map(Value::from)),
            ("params", (!params.is_empty()).then_some(Value::Object(params))),
            ("missed", self.missed.missed.map(Value::from)),
            ("missedWindow", self.missed.missed_window.map(Value::from)),
            ("missedMax", self.missed.missed_max.map(Value::from)),
            ("overlap", self.runs.overlap.map(Value::from)),
            ("jitter", self.runs.jitter.map(Value::from)),
            ("deadline", self.runs.deadline.map(Value::from)),
            ("alertAfter", self.alert_after.map(Value::from)),
            ("enabled", self.enabled.map(Value::from)),
        ];
        let fields = fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
        body.extend(fields);
        Ok(Value::Object(body))
    }
}
