//! Holds what the service says of its executions against what their agents wrote down.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::OpenOptions;

use serde_json::Value;

use super::storm::Storm;
use crate::harness::processes::{labels, wardens};

/// A line that an agent wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    /// `start`, `overlap` or `end`.
    pub(super) what: String,
    pub(super) execution: String,
    attempt: u64,
    pub(super) pid: i32,
    label: u64,
}

impl Line {
    pub(super) fn read(line: &str) -> Self {
        let words: Vec<_> = line.split(' ').collect();
        let [what, execution, attempt, pid, label] = words.as_slice() else {
            panic!("not a line: {line:?}")
        };
        Self {
            what: (*what).to_owned(),
            execution: (*execution).to_owned(),
            attempt: attempt.parse().unwrap(),
            pid: pid.parse().unwrap(),
            label: label.parse().unwrap(),
        }
    }
}

pub(super) struct Judge {
    lines: Vec<Line>,
    /// What the service says, by id.
    records: BTreeMap<String, Value>,
}

impl Judge {
    pub(super) async fn new(storm: &Storm) -> Self {
        let (mut ids, mut before) = (BTreeSet::new(), String::new());
        loop {
            let list = storm.service.get(&format!("/api/v1/executions?limit=1000{before}")).await;
            let list = list.json();
            let page = list["executions"].as_array().unwrap().iter();
            ids.extend(page.map(|entry| entry["id"].as_str().unwrap().to_owned()));
            let Some(next) = list["next"].as_str() else { break };
            before = format!("&before={next}");
        }
        let mut records = BTreeMap::new();
        for id in ids {
            records.insert(id.clone(), storm.service.execution(&id).await);
        }
        Self { lines: storm.lines(), records }
    }

    pub(super) async fn judge(&self, storm: &Storm) {
        let accepted: BTreeSet<_> = storm.accepted.values().collect();
        assert_eq!(storm.accepted.len(), storm.messages(), "messages that were answered");
        assert_eq!(accepted.len(), storm.messages(), "executions that were named");
        assert_eq!(self.records.keys().collect::<BTreeSet<_>>(), accepted, "those it knows");
        self.records.iter().for_each(|(id, record)| self.judge_one(id, record));
        let strangers = self.lines.iter().find(|line| !self.records.contains_key(&line.execution));
        assert_eq!(strangers, None, "it ran and was never accepted");
        let overlap = self.lines.iter().find(|line| line.what == "overlap");
        assert_eq!(overlap, None, "two worked in one folder at once");
        self.nothing_is_left(storm).await;
        self.something_happened();
    }

    /// Exactly one end, and as many runs as its record shows.
    fn judge_one(&self, id: &str, record: &Value) {
        let outcome = record["outcome"].as_str().unwrap_or_else(|| panic!("no outcome: {record}"));
        let ends = record["events"].as_array().unwrap().iter();
        let ends = ends
            .filter(|it| it["fact"]["kind"] == "moved" && it["fact"]["to"] == "cleanup")
            .count();
        assert_eq!(ends, 1, "ends of {record}");
        let (started, ended) = (self.attempts(id, "start"), self.attempts(id, "end"));
        let once: BTreeSet<_> = started.iter().collect();
        assert_eq!(once.len(), started.len(), "an attempt was started twice: {record}");
        let attempts = record["attempt"].as_u64().unwrap();
        assert!(started.iter().all(|one| *one <= attempts), "{started:?}: {record}");
        assert!(ended.len() <= 1, "{ended:?}: {record}");
        if outcome == "completed" {
            assert_eq!((started.last(), &ended), (Some(&attempts), &vec![attempts]), "{record}");
            let whole: String = (0..2000).map(|number| format!("{number}\n")).collect();
            assert_eq!(record["output"], *whole, "output was lost or doubled");
        }
    }

    fn attempts(&self, id: &str, what: &str) -> Vec<u64> {
        let lines = self.lines.iter().filter(|line| line.execution == id && line.what == what);
        lines.map(|line| line.attempt).collect()
    }

    /// No process with a label of this data directory, no lock, no warden but the one in service.
    async fn nothing_is_left(&self, storm: &Storm) {
        let family = |label: u64| label >> 38;
        let ours: BTreeSet<_> = self.lines.iter().map(|line| family(line.label)).collect();
        assert_eq!(ours.len(), 1, "one data directory has one family of labels");
        let left = || labels().iter().filter(|(_, label)| ours.contains(&family(*label))).count();
        storm.settled("the end of all processes", || left() == 0).await;
        let lock = storm.service.setup.here().join("lock");
        let lock = OpenOptions::new().append(true).open(lock).unwrap();
        assert!(lock.try_lock().is_ok(), "somebody still holds the folder");
        let own: BTreeSet<_> = wardens(storm.service.pid()).into_iter().collect();
        let is_old = |pid: &i32| !own.contains(pid) && super::storm::is_warden(*pid);
        storm.settled("the end of old wardens", || !storm.wardens.iter().any(is_old)).await;
    }

    /// A storm in which nothing was completed or nothing was hit would show nothing.
    fn something_happened(&self) {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for record in self.records.values() {
            let why = record["error"]["code"].as_str().or(record["outcome"].as_str());
            *counts.entry(why.unwrap_or_default()).or_default() += 1;
        }
        println!("{} executions: {counts:?}", self.records.len());
        assert!(counts.contains_key("completed") && counts.len() > 1, "{counts:?}");
    }
}
