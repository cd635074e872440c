//! Work at set times, as operators make it, watch it and change it.

use algonius_actors::model::code::Code;
use serde_json::{Value, json};

use crate::harness::client::{completed_outcome, task_outcome};
use crate::harness::{ServiceProcess, Setup, fake_agent_config, gated_agent_config, poll_until};

const SCHEDULES_PATH: &str = "/api/v1/schedules";

fn setup_with_schedules(agents: &str) -> Setup {
    Setup::new(&format!("{agents}\n[scheduler]\ntimezone = 'UTC'\nseconds = true\n"))
}

/// All occurrences of a schedule, once so many of them are over.
async fn list_occurrences_once_finished(
    service: &ServiceProcess,
    id: &str,
    count: usize,
) -> Vec<Value> {
    poll_until("its work is over", async || {
        let list =
            service.get(&format!("{SCHEDULES_PATH}/{id}/occurrences?limit=1000")).await.json();
        let list = list["occurrences"].as_array().unwrap().clone();
        let ended_count = list.iter().filter(|it| !it["outcome"].is_null()).count();
        (ended_count >= count).then_some(list)
    })
    .await
}

#[tokio::test]
async fn a_configured_schedule_creates_a_task_at_each_time() {
    let agents = [
        fake_agent_config("echo", "echo", ""),
        "[schedules.beat]\nname = 'Heart beat'\nagent = 'echo'\ncron = '* * * * * *'\n\
         input = 'it is {{ date }} for {{ param.whom }}'\nparams.whom = 'Ann'\n"
            .to_owned(),
    ];
    let service = setup_with_schedules(&agents.concat()).start().await;
    let list = list_occurrences_once_finished(&service, "beat", 2).await;
    let completed_occurrences: Vec<_> =
        list.iter().filter(|it| it["outcome"] == "completed").collect();
    let task =
        service.fetch_task("echo", completed_occurrences[0]["execution"].as_str().unwrap()).await;
    let planned = completed_occurrences[0]["planned"].as_str().unwrap();
    let (date, _) = planned.split_once('T').unwrap();
    let expected_text = format!("it is {date} for Ann");
    assert_eq!(task_outcome(&task), completed_outcome(&expected_text));
    assert!(
        completed_occurrences[0]["delayMs"].as_i64().unwrap().abs() < 30_000,
        "{completed_occurrences:?}"
    );
    let execution =
        service.fetch_execution(completed_occurrences[0]["execution"].as_str().unwrap()).await;
    assert_eq!(execution["messageId"].as_str().unwrap().split(':').next(), Some("schedule"));
    let mut times: Vec<_> = list.iter().map(|it| it["planned"].as_str().unwrap()).collect();
    let count = times.len();
    times.dedup();
    assert_eq!(times.len(), count, "a time twice: {list:?}");
    let schedule = service.get(&format!("{SCHEDULES_PATH}/beat")).await.json();
    assert_eq!(
        (&schedule["origin"], &schedule["name"]),
        (&json!("configuration"), &json!("Heart beat"))
    );
    let deletion = service.run_command(&["schedule", "delete", "beat"], "").await;
    assert!(deletion.stderr.contains("schedule-fixed"), "{deletion:?}");
    assert!(schedule["statistics"]["succeeded"].as_u64().unwrap() >= 2, "{schedule}");
    let status = service.get("/status").await.json();
    assert_eq!(status["scheduler"]["active"], 1, "{status}");
}

#[tokio::test]
async fn the_command_line_manages_a_schedule() {
    let service = setup_with_schedules(&fake_agent_config("echo", "echo", "")).start().await;
    let run_command = async |words: &[&str]| service.run_command(words, "").await;
    let creation = run_command(&[
        "schedule",
        "create",
        "nightly",
        "--agent",
        "echo",
        "--cron",
        "0 3 * * *",
        "--timezone",
        "Europe/Zurich",
        "--input",
        "good night of {{ date }}",
        "--deadline",
        "600",
    ]);
    let create_output = creation.await;
    assert_eq!(create_output.exit_code, Some(0), "{create_output:?}");
    assert!(
        create_output.stdout.contains("0 3 * * * in Europe/Zurich"),
        "{}",
        create_output.stdout
    );
    assert!(!create_output.stdout.contains("next      -"), "{}", create_output.stdout);
    let schedule_list = run_command(&["schedule", "list"]).await.stdout;
    assert!(
        schedule_list.contains("nightly") && schedule_list.contains("active"),
        "{schedule_list}"
    );
    let next_times = run_command(&["schedule", "next", "nightly", "-n", "2"]).await.stdout;
    assert_eq!(next_times.matches("T03:00:00+0").count(), 2, "{next_times}");
    assert_eq!(run_command(&["schedule", "run", "nightly"]).await.exit_code, Some(0));
    list_occurrences_once_finished(&service, "nightly", 1).await;
    let history = run_command(&["schedule", "history", "nightly"]).await.stdout;
    assert!(history.contains("fired") && history.contains("completed"), "{history}");
    let pause_text = run_command(&["schedule", "pause", "nightly"]).await.stdout;
    assert!(pause_text.contains("(paused)"), "{pause_text}");
    assert!(run_command(&["schedule", "resume", "nightly"]).await.stdout.contains("(active)"));
    let updated_schedule =
        run_command(&["schedule", "update", "nightly", "--cron", "30 4 * * *", "--json"]).await;
    let updated_schedule: Value = serde_json::from_str(&updated_schedule.stdout).unwrap();
    assert_eq!(
        (&updated_schedule["cron"], &updated_schedule["deadline"]),
        (&json!("30 4 * * *"), &json!(600))
    );
    assert_eq!(run_command(&["schedule", "delete", "nightly"]).await.exit_code, Some(0));
    assert_eq!(run_command(&["schedule", "show", "nightly"]).await.exit_code, Some(3));
    let explanation =
        run_command(&["schedule", "explain", "*/15 9-17 * * MON-FRI", "--timezone", "Asia/Tokyo"])
            .await;
    assert!(explanation.stdout.contains("+09:00"), "{}", explanation.stdout);
    let invalid_cron_output = run_command(&["schedule", "explain", "0 0 31 2 *"]).await;
    assert_eq!(invalid_cron_output.exit_code, Some(1));
    assert!(invalid_cron_output.stderr.contains("never due"), "{}", invalid_cron_output.stderr);
}

#[tokio::test]
async fn repeated_kills_neither_lose_nor_repeat_an_occurrence() {
    let agents = [
        fake_agent_config("echo", "echo", ""),
        "[schedules.beat]\nagent = 'echo'\ncron = '* * * * * *'\ninput = 'beat'\noverlap = 'allow'\n\
         missed = 'all'\nmissed_max = 1000\n"
            .to_owned(),
    ];
    let mut service = setup_with_schedules(&agents.concat()).start().await;
    for round in 1..=6 {
        list_occurrences_once_finished(&service, "beat", round).await;
        service.kill9().await;
        service.start_again().await;
    }
    let pause_output = service.run_command(&["schedule", "pause", "beat"], "").await;
    assert_eq!(pause_output.exit_code, Some(0), "{pause_output:?}");
    let list = poll_until("all is over", async || {
        let list =
            service.get(&format!("{SCHEDULES_PATH}/beat/occurrences?limit=1000")).await.json();
        let list = list["occurrences"].as_array().unwrap().clone();
        let is_over = |it: &Value| it["status"] != "pending" && !it["outcome"].is_null();
        list.iter().all(|it| is_over(it) || it["status"] == "skipped").then_some(list)
    });
    let list = list.await;
    let seconds: Vec<i64> = list
        .iter()
        .map(|it| it["planned"].as_str().unwrap().parse::<chrono::DateTime<chrono::Utc>>())
        .map(|it| it.unwrap().timestamp())
        .collect();
    let expected_count = usize::try_from(seconds[0] - seconds[seconds.len() - 1]).unwrap() + 1;
    // Each occurrence of a schedule is requested once, even if the service is killed
    // repeatedly
    assert_eq!(seconds.len(), expected_count, "times are lost or doubled: {seconds:?}");
    let mut execution_ids: Vec<_> = list.iter().filter_map(|it| it["execution"].as_str()).collect();
    let fired_count = execution_ids.len();
    execution_ids.sort_unstable();
    execution_ids.dedup();
    assert_eq!(execution_ids.len(), fired_count);
    let executions = service.get("/api/v1/executions?limit=1000").await.json();
    assert_eq!(
        executions["executions"].as_array().unwrap().len(),
        fired_count,
        "an execution of no time"
    );
}

#[tokio::test]
async fn a_queued_occurrence_runs_after_a_restart() {
    let agents = [
        gated_agent_config("one", ""),
        "[schedules.line]\nagent = 'one'\ncron = '* * * * * *'\ninput = 'ann'\noverlap = 'queue'\n"
            .into(),
    ];
    let mut service = setup_with_schedules(&agents.concat()).start().await;
    service.setup.wait_for_file_text("log", "start ann\n").await;
    let find_pending_occurrence = async || {
        let list = service.get(&format!("{SCHEDULES_PATH}/line/occurrences")).await.json();
        let list = list["occurrences"].as_array().unwrap().clone();
        list.into_iter().find(|it| it["status"] == "pending")
    };
    let pending_due_time =
        poll_until("a time that waits", find_pending_occurrence).await["planned"].clone();
    service.kill9().await;
    service.start_again().await;
    let schedule = service.get(&format!("{SCHEDULES_PATH}/line")).await.json();
    assert_eq!(schedule["state"], "executing", "{schedule}");
    assert_eq!(service.setup.read_file("log"), "start ann\n", "it did not wait");
    service.setup.open_gate("go");
    let find_ended_occurrence = async || {
        let list =
            service.get(&format!("{SCHEDULES_PATH}/line/occurrences?limit=1000")).await.json();
        let list = list["occurrences"].as_array().unwrap().clone();
        let waiting_occurrence = list.into_iter().find(|it| it["planned"] == pending_due_time);
        waiting_occurrence.filter(|it| !it["outcome"].is_null())
    };
    let ended_occurrence = poll_until("its end", find_ended_occurrence).await;
    // An occurrence that waits for the previous one also runs after a restart
    assert_eq!(
        (&ended_occurrence["status"], &ended_occurrence["outcome"]),
        (&json!("fired"), &json!("completed"))
    );
}

#[tokio::test]
async fn invalid_schedules_are_refused_and_not_created() {
    let agents = [
        fake_agent_config("echo", "echo", ""),
        fake_agent_config("off", "echo", "enabled = false"),
    ]
    .concat();
    let service = Setup::new(&agents).start().await;
    let valid_body = json!({"id": "a", "agent": "echo", "cron": "0 3 * * *", "input": "hello"});
    let valid_body_with = |key: &str, value: Value| {
        let mut body = valid_body.clone();
        body[key] = value;
        body
    };
    let with_member = |mut body: Value, key: &str, value: Value| {
        body[key] = value;
        body
    };
    for (body, code) in [
        (valid_body_with("cron", json!("0 0 31 2 *")), Code::InvalidParams),
        (valid_body_with("cron", json!("* * * * * *")), Code::InvalidParams),
        (valid_body_with("timezone", json!("Mars/Base")), Code::InvalidParams),
        (valid_body_with("agent", json!("nobody")), Code::AgentUnknown),
        (valid_body_with("agent", json!("off")), Code::AgentDisabled),
        (valid_body_with("id", json!("no id")), Code::InvalidParams),
        (valid_body_with("input", json!("{{ nothing }}")), Code::InvalidParams),
        (
            with_member(valid_body_with("missed", json!("all")), "overlap", json!("skip")),
            Code::InvalidParams,
        ),
        (valid_body_with("jitter", json!(-1)), Code::InvalidParams),
        (valid_body_with("deadline", json!(9_999_999)), Code::InvalidParams),
        (valid_body_with("nonsense", json!(1)), Code::InvalidParams),
        (json!([1]), Code::InvalidParams),
    ] {
        let answer = service.post(SCHEDULES_PATH, &body.to_string()).await;
        assert_eq!(answer.json()["code"], code.as_str(), "{body}: {}", answer.status);
        assert!(answer.status < 500, "{body}");
    }
    let list = service.get(SCHEDULES_PATH).await.json();
    assert_eq!(list["schedules"], json!([]));
}

#[tokio::test]
async fn schedules_belong_to_their_creators() {
    let ann_token = "a-token-of-thirty-two-characters-or-more";
    let config =
        [fake_agent_config("echo", "echo", ""), "[tokens.ann]\ntoken_env = 'ANN'\n".into()]
            .concat();
    let service = Setup::new(&config).env("ANN", ann_token).start().await;
    let ann = service.client_with_token(ann_token);
    let body = json!({"id": "mine", "agent": "echo", "cron": "0 3 * * *", "input": "x"});
    let create_response = service.post(SCHEDULES_PATH, &body.to_string()).await;
    assert_eq!(
        (create_response.status, create_response.json()["origin"].clone()),
        (201, json!("api"))
    );
    let duplicate_response = ann.post(SCHEDULES_PATH, &body.to_string()).await;
    assert_eq!(
        (duplicate_response.status, duplicate_response.json()["code"].clone()),
        (409, json!("schedule-exists"))
    );
    for path in ["mine", "mine/next", "nobodys"] {
        let answer = ann.get(&format!("{SCHEDULES_PATH}/{path}")).await;
        assert_eq!(
            (answer.status, answer.json()["code"].clone()),
            (404, json!("schedule-unknown"))
        );
    }
    for verb in ["pause", "resume", "run"] {
        let answer = ann.post(&format!("{SCHEDULES_PATH}/mine/{verb}"), "{}").await;
        assert_eq!(answer.status, 404, "{verb}");
    }
    assert_eq!(ann.get(SCHEDULES_PATH).await.json()["schedules"], json!([]));
    let mut ann_schedule = body.clone();
    ann_schedule["id"] = json!("hers");
    assert_eq!(ann.post(SCHEDULES_PATH, &ann_schedule.to_string()).await.status, 201);
    let all_schedules = service.get(SCHEDULES_PATH).await.json();
    assert_eq!(
        all_schedules["schedules"].as_array().unwrap().len(),
        2,
        "an administrator sees all"
    );
}

/// How long the run takes, in seconds: two minutes where the machine has them.
fn test_duration_seconds() -> usize {
    let configured_seconds =
        std::env::var("ALGONIUS_SCHEDULE_SECONDS").ok().and_then(|text| text.parse().ok());
    configured_seconds.unwrap_or(8)
}

#[tokio::test]
async fn two_minutes_of_seconds_fire_on_time() {
    let agents = [
        fake_agent_config("echo", "echo", ""),
        "[schedules.beat]\nagent = 'echo'\ncron = '* * * * * *'\ninput = 'beat'\noverlap = 'allow'\n"
            .to_owned(),
    ];
    let service = setup_with_schedules(&agents.concat()).start().await;
    let mut occurrence_count = 0;
    while occurrence_count < test_duration_seconds() {
        // Each second is waited for alone.
        occurrence_count =
            list_occurrences_once_finished(&service, "beat", occurrence_count + 1).await.len();
    }
    let statistics =
        service.get(&format!("{SCHEDULES_PATH}/beat")).await.json()["statistics"].clone();
    println!("schedules on time: {statistics}");
    assert_eq!(statistics["punctualPermille"], 1000, "{statistics}");
    let other_counts: Vec<_> = ["missed", "skipped", "coalesced", "refused"]
        .iter()
        .map(|it| &statistics["times"][it])
        .collect();
    assert!(other_counts.iter().all(|count| count.is_null()), "{statistics}");
}
