//! Holds what the service says of its executions against what their agents wrote down.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::OpenOptions;

use serde_json::Value;

use crate::harness::processes::{holder_pids, is_alive, pids_and_labels};
use crate::harness::{ServiceProcess, poll_until};

/// What is to be judged.
pub(crate) struct HistoryCheckInput<'a> {
    /// A service in which all is settled.
    pub(crate) service: &'a ServiceProcess,
    /// Ids of the executions, by those of their messages.
    pub(crate) execution_ids_by_message_id: &'a BTreeMap<String, String>,
    /// How many messages were sent.
    pub(crate) message_count: usize,
    /// Process ids of all process holders that were seen.
    pub(crate) seen_holder_pids: &'a BTreeSet<i32>,
}

/// A line that an agent wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AgentLogLine {
    /// `start`, `overlap` or `end`.
    pub(crate) kind: String,
    pub(crate) execution: String,
    attempt: u64,
    pub(crate) pid: i32,
    process_label: u64,
}

impl AgentLogLine {
    pub(crate) fn parse(line: &str) -> Self {
        let fields: Vec<_> = line.split(' ').collect();
        let [kind, execution, attempt, pid, label] = fields.as_slice() else {
            panic!("not a line: {line:?}")
        };
        Self {
            kind: (*kind).to_owned(),
            execution: (*execution).to_owned(),
            attempt: attempt.parse().unwrap(),
            pid: pid.parse().unwrap(),
            process_label: label.parse().unwrap(),
        }
    }
}

pub(crate) struct HistoryChecker<'a> {
    input: HistoryCheckInput<'a>,
    lines: Vec<AgentLogLine>,
    /// What the service says, by id.
    records: BTreeMap<String, Value>,
}

impl<'a> HistoryChecker<'a> {
    pub(crate) async fn new(input: HistoryCheckInput<'a>) -> Self {
        let service = input.service;
        let (mut ids, mut cursor) = (BTreeSet::new(), String::new());
        loop {
            let list = service.get(&format!("/api/v1/executions?limit=1000{cursor}")).await;
            let list = list.json();
            let page = list["executions"].as_array().unwrap().iter();
            ids.extend(page.map(|entry| entry["id"].as_str().unwrap().to_owned()));
            let Some(next) = list["next"].as_str() else { break };
            cursor = format!("&cursor={next}");
        }
        let mut records = BTreeMap::new();
        for id in ids {
            records.insert(id.clone(), service.fetch_execution(&id).await);
        }
        let lines = service.setup.read_file("witnessed").lines().map(AgentLogLine::parse).collect();
        Self { input, lines, records }
    }

    pub(crate) async fn check(&self) {
        let accepted_ids: BTreeSet<_> = self.input.execution_ids_by_message_id.values().collect();
        assert_eq!(
            self.input.execution_ids_by_message_id.len(),
            self.input.message_count,
            "messages that were answered"
        );
        assert_eq!(accepted_ids.len(), self.input.message_count, "executions that were named");
        assert_eq!(self.records.keys().collect::<BTreeSet<_>>(), accepted_ids, "those it knows");
        self.records.iter().for_each(|(id, record)| self.check_execution(id, record));
        let unaccepted_line =
            self.lines.iter().find(|line| !self.records.contains_key(&line.execution));
        assert_eq!(unaccepted_line, None, "it ran and was never accepted");
        let overlap = self.lines.iter().find(|line| line.kind == "overlap");
        assert_eq!(overlap, None, "two worked in one folder at once");
        self.assert_nothing_left().await;
    }

    /// Exactly one end, and as many runs as its record shows.
    fn check_execution(&self, id: &str, record: &Value) {
        let outcome = record["outcome"].as_str().unwrap_or_else(|| panic!("no outcome: {record}"));
        let events = record["events"].as_array().unwrap().iter();
        let end_count = events
            .filter(|event| {
                event["data"]["kind"] == "state-changed" && event["data"]["to"] == "cleanup"
            })
            .count();
        assert_eq!(end_count, 1, "ends of {record}");
        let (started_attempts, ended_attempts) =
            (self.attempt_numbers(id, "start"), self.attempt_numbers(id, "end"));
        let distinct_attempts: BTreeSet<_> = started_attempts.iter().collect();
        assert_eq!(
            distinct_attempts.len(),
            started_attempts.len(),
            "an attempt was started twice: {record}"
        );
        let last_attempt = record["attempt"].as_u64().unwrap();
        assert!(
            started_attempts.iter().all(|attempt| *attempt <= last_attempt),
            "{started_attempts:?}: {record}"
        );
        assert!(ended_attempts.len() <= 1, "{ended_attempts:?}: {record}");
        if outcome == "completed" {
            assert_eq!(
                (started_attempts.last(), &ended_attempts),
                (Some(&last_attempt), &vec![last_attempt]),
                "{record}"
            );
            let full_output: String = (0..2000).map(|number| format!("{number}\n")).collect();
            assert_eq!(record["output"], *full_output, "output was lost or doubled");
        }
    }

    fn attempt_numbers(&self, id: &str, kind: &str) -> Vec<u64> {
        let lines = self.lines.iter().filter(|line| line.execution == id && line.kind == kind);
        lines.map(|line| line.attempt).collect()
    }

    /// No process with a label of this data directory, no lock, no process holder but the one in service.
    async fn assert_nothing_left(&self) {
        let HistoryCheckInput { service, seen_holder_pids: known_holders, .. } = self.input;
        let label_family = |label: u64| label >> 38;
        let own_label_families: BTreeSet<_> =
            self.lines.iter().map(|line| label_family(line.process_label)).collect();
        assert_eq!(own_label_families.len(), 1, "one data directory has one family of labels");
        let count_labeled_processes = || {
            pids_and_labels()
                .iter()
                .filter(|(_, label)| own_label_families.contains(&label_family(*label)))
                .count()
        };
        poll_until("the end of all processes", async || {
            (count_labeled_processes() == 0).then_some(())
        })
        .await;
        let lock = service.setup.test_folder().join("lock");
        let lock = OpenOptions::new().append(true).open(lock).unwrap();
        assert!(lock.try_lock().is_ok(), "somebody still holds the folder");
        let current_holders: BTreeSet<_> = holder_pids(service.pid()).into_iter().collect();
        let is_leftover = |pid: &i32| !current_holders.contains(pid) && is_live_holder(*pid);
        poll_until("the end of old process holders", async || {
            (!known_holders.iter().any(is_leftover)).then_some(())
        })
        .await;
    }

    /// How often things ended in which way.
    pub(crate) fn code_or_outcome_counts(&self) -> BTreeMap<&str, usize> {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for record in self.records.values() {
            let reason = record["error"]["code"].as_str().or(record["outcome"].as_str());
            *counts.entry(reason.unwrap_or_default()).or_default() += 1;
        }
        counts
    }
}

pub(crate) fn is_live_holder(pid: i32) -> bool {
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    name.trim() == "algonius-warden" && is_alive(pid)
}
