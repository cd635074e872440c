//! Programs that are kept between the messages of a conversation: one process, many turns.

use serde_json::{Value, json};

use crate::harness::client::{
    completed_outcome, failed_outcome, task_id, task_outcome, task_state,
};
use crate::harness::processes::{is_alive, kill9, pids_with_env};
use crate::harness::{
    ServiceClient, ServiceProcess, json_rpc_request_body, message_params, poll_until,
};

/// An agent whose program is kept, in this part of the fake one.
fn session_agent_config(fake_program_args: &str, settings: &str, protocol: &str) -> String {
    format!(
        "session_timeout_min = 0.05\n[agents.kept]\ncommand = 'FAKE'\nargs = [{fake_program_args}]\n\
         mode = 'interactive'\nstop_grace = 0.3\nmax_concurrent = 2\n{settings}\n{protocol}\n"
    )
}

const LINE_PROTOCOL: &str = "[agents.kept.turn]\nend_line = 'END'\ninterrupt = \"STOP\\n\"";

const JSON_PROTOCOL: &str = "output = 'events'\n[agents.kept.turn]\nend_json = { type = 'result' }\n\
    message = { type = 'user', message = { role = 'user', content = '{{ input }}' } }";

const JSON_RPC_PROTOCOL: &str = "input = 'json-rpc'\noutput = 'json-rpc'\n[agents.kept.json_rpc]\n\
    initialize = { method = 'initialize' }\nmethod = 'ask'\nparams = { text = '{{ input }}' }\n\
    result = '/answer'\ncancel = { method = 'cancel' }";

fn line_agent_config(settings: &str) -> String {
    session_agent_config("'turns'", settings, LINE_PROTOCOL)
}

fn message_params_in_context(context: &str, text: &str) -> Value {
    let mut params = message_params(text);
    params["message"]["contextId"] = json!(context);
    params
}

async fn send_in_context(client: &ServiceClient, context: &str, text: &str) -> (String, String) {
    task_outcome(
        &client
            .expect_result("kept", "message/send", &message_params_in_context(context, text))
            .await,
    )
}

/// Requests the id of the process that answers in a conversation.
async fn send_and_read_pid(client: &ServiceClient, context: &str) -> i32 {
    let (_, text) = send_in_context(client, context, "pid").await;
    text.trim().parse().unwrap_or_else(|_| panic!("no process: {text}"))
}

async fn stream_answer(client: &ServiceClient, context: &str, text: &str) -> String {
    let body = json_rpc_request_body("message/stream", &message_params_in_context(context, text));
    client.post("/agents/kept/v1", &body).await.body
}

/// The programs of an agent of this service, which others have too.
pub(crate) fn pids_of_agent(service: &ServiceProcess, agent: &str) -> Vec<i32> {
    let home = format!("HOME={}", service.setup.test_folder().join("home").display());
    let service_pids = pids_with_env(&home);
    let agent_pids = pids_with_env(&format!("ALGONIUS_AGENT_ID={agent}"));
    agent_pids.into_iter().filter(|pid| service_pids.contains(pid)).collect()
}

async fn wait_for_process_exit(pid: i32) {
    poll_until(&format!("the end of {pid}"), async || (!is_alive(pid)).then_some(())).await;
}

#[tokio::test]
async fn each_conversation_has_one_process_of_its_own() {
    for agent in [
        line_agent_config(""),
        session_agent_config("'turns', '--json'", "", JSON_PROTOCOL),
        session_agent_config("'rpc', '--init'", "", JSON_RPC_PROTOCOL),
    ] {
        let service = ServiceProcess::start(&agent).await;
        let expected_outcome = |text: &str| {
            completed_outcome(&if agent.contains("end_line") {
                format!("{text}\n")
            } else {
                text.to_owned()
            })
        };
        assert_eq!(send_in_context(&service, "c", "one").await, expected_outcome("one"));
        let first_pid = send_and_read_pid(&service, "c").await;
        assert_eq!(send_in_context(&service, "c", "two").await, expected_outcome("one two"));
        assert_eq!(send_in_context(&service, "d", "tea").await, expected_outcome("tea"));
        assert_eq!(send_and_read_pid(&service, "c").await, first_pid);
        assert_ne!(send_and_read_pid(&service, "d").await, first_pid);
        let stream_text = stream_answer(&service, "c", "three").await;
        assert!(
            stream_text.contains("one two three") && !stream_text.contains("continuity"),
            "{stream_text}"
        );
    }
}

#[tokio::test]
async fn pooled_processes_are_shown_and_end_with_the_service() {
    let mut service = ServiceProcess::start(&line_agent_config("")).await;
    let first_pid = send_and_read_pid(&service, "c").await;
    let processes = poll_until("what it takes", async || {
        let processes = service.fetch_agent_status("kept").await["pooledProcesses"].clone();
        (!processes[0]["usage"].is_null()).then_some(processes)
    })
    .await;
    assert_eq!((&processes[0]["pid"], &processes[0]["busy"]), (&json!(first_pid), &json!(false)));
    assert!(
        processes[0]["usage"]["memoryBytes"].as_u64().is_some_and(|bytes| bytes > 0),
        "{processes}"
    );
    service.send_sigterm();
    assert!(service.wait_for_exit().await.success());
    assert!(pids_of_agent(&service, "kept").is_empty(), "something outlived the drain");
    service.start_again().await;
    let second_pid = send_and_read_pid(&service, "c").await;
    assert_ne!(first_pid, second_pid);
    service.kill9().await;
    wait_for_process_exit(second_pid).await;
    service.start_again().await;
    let stream_text = stream_answer(&service, "c", "hello").await;
    assert!(
        stream_text.contains(r#""continuity":"lost""#) && stream_text.contains("hello"),
        "{stream_text}"
    );
    let stream_text = stream_answer(&service, "c", "again").await;
    assert!(!stream_text.contains("continuity"), "{stream_text}");
}

#[tokio::test]
async fn idle_processes_end_by_timeout_or_least_recent_use() {
    let service = ServiceProcess::start(&line_agent_config("session_timeout = 0.2")).await;
    wait_for_process_exit(send_and_read_pid(&service, "c").await).await;
    poll_until("an empty pool", async || {
        service.fetch_agent_status("kept").await["pooledProcesses"].is_null().then_some(())
    })
    .await;
    let stream_text = stream_answer(&service, "c", "hello").await;
    assert!(stream_text.contains(r#""continuity":"lost""#), "{stream_text}");

    let service = ServiceProcess::start(&line_agent_config("max_sessions = 2")).await;
    let (pid_a, pid_b) =
        (send_and_read_pid(&service, "a").await, send_and_read_pid(&service, "b").await);
    assert_eq!(send_and_read_pid(&service, "a").await, pid_a);
    let pid_c = send_and_read_pid(&service, "c").await;
    assert!(!is_alive(pid_b) && is_alive(pid_a) && is_alive(pid_c), "{pid_a} {pid_b} {pid_c}");
    assert_eq!(pids_of_agent(&service, "kept").len(), 2);
}

#[tokio::test]
async fn a_process_death_loses_context_or_fails_the_running_turn() {
    let service = ServiceProcess::start(&line_agent_config("")).await;
    let first_pid = send_and_read_pid(&service, "c").await;
    kill9(first_pid);
    poll_until("an empty pool", async || {
        service.fetch_agent_status("kept").await["pooledProcesses"].is_null().then_some(())
    })
    .await;
    let stream_text = stream_answer(&service, "c", "two").await;
    assert!(
        stream_text.contains(r#""continuity":"lost""#) && stream_text.contains("two"),
        "{stream_text}"
    );
    for (text, code) in [("exit 3", "agent-exit"), ("exit 0", "answer-missing")] {
        assert_eq!(send_in_context(&service, "c", text).await, failed_outcome(code), "{text}");
        let stream_text = stream_answer(&service, "c", "again").await;
        assert!(
            stream_text.contains(r#""continuity":"lost""#) && stream_text.contains("again"),
            "{stream_text}"
        );
    }
    let id = task_id(&service.submit("kept", message_params_in_context("c", "hang")).await);
    let busy_processes = poll_until("it hangs", async || {
        let processes = service.fetch_agent_status("kept").await["pooledProcesses"].clone();
        (processes[0]["busy"] == true).then_some(processes)
    })
    .await;
    kill9(i32::try_from(busy_processes[0]["pid"].as_i64().unwrap()).unwrap());
    assert_eq!(
        task_outcome(&service.wait_for_task_end("kept", &id).await),
        failed_outcome("agent-killed")
    );
}

/// Begins a message that is not answered, and calls it off.
async fn send_and_cancel(service: &ServiceProcess) {
    let id = task_id(&service.submit("kept", message_params_in_context("c", "hang")).await);
    poll_until("it runs", async || {
        (service.fetch_execution(&id).await["state"] == "running").then_some(())
    })
    .await;
    assert_eq!(task_state(&service.cancel("kept", &id).await), "canceled");
    assert_eq!(task_state(&service.wait_for_task_end("kept", &id).await), "canceled");
}

#[tokio::test]
async fn cancelling_a_turn_interrupts_it_and_keeps_the_process() {
    for (agent, process_survives) in [
        (line_agent_config(""), true),
        (session_agent_config("'rpc', '--init'", "", JSON_RPC_PROTOCOL), true),
        (line_agent_config("").replace("interrupt = \"STOP\\n\"", ""), false),
    ] {
        let service = ServiceProcess::start(&agent).await;
        let first_pid = send_and_read_pid(&service, "c").await;
        send_and_cancel(&service).await;
        if !process_survives {
            wait_for_process_exit(first_pid).await;
        }
        let second_pid = send_and_read_pid(&service, "c").await;
        assert_eq!(first_pid == second_pid, process_survives, "{agent}");
    }
}

#[tokio::test]
async fn turns_of_one_conversation_run_in_order_without_leaks() {
    let service = ServiceProcess::start(&line_agent_config("")).await;
    assert_eq!(
        send_in_context(&service, "c", "late too late").await,
        completed_outcome("in time\n")
    );
    let hanging_id = task_id(&service.submit("kept", message_params_in_context("c", "hang")).await);
    let next_id = task_id(&service.submit("kept", message_params_in_context("c", "next")).await);
    poll_until("its place", async || {
        let execution = service.fetch_execution(&next_id).await.to_string();
        execution.contains("conversation-busy").then_some(())
    })
    .await;
    service.cancel("kept", &hanging_id).await;
    assert_eq!(
        task_outcome(&service.wait_for_task_end("kept", &next_id).await),
        completed_outcome("next\n")
    );
    assert_eq!(
        send_in_context(&service, "c", "two\nlines").await,
        failed_outcome("input-rejected")
    );
    assert_eq!(send_in_context(&service, "c", "after").await, completed_outcome("next after\n"));
}

#[tokio::test]
async fn a_pooled_process_over_its_memory_limit_is_ended() {
    let service =
        ServiceProcess::start(&line_agent_config("resources.memory_bytes = 50_000_000")).await;
    let first_pid = send_and_read_pid(&service, "c").await;
    // It has answered by the next look at its memory, or has not.
    let (state, code) = send_in_context(&service, "c", "hog 200000000").await;
    assert!(state == "completed" || code == "resources-exceeded", "{state}: {code}");
    wait_for_process_exit(first_pid).await;
}

#[tokio::test]
async fn a_program_without_keep_alive_resumes_by_its_session() {
    let settings = "keep_alive = false\nsandbox.writable = ['HERE']\n[agents.kept.session]\n\
                    resume_args = ['--resume', '{{ session_id }}']\nregex = 'session: (\\S+)'";
    let service =
        ServiceProcess::start(&session_agent_config("'chat', 'HERE/memory'", settings, "")).await;
    std::fs::create_dir(service.setup.test_folder().join("memory")).unwrap();
    assert_eq!(send_in_context(&service, "c", "one").await, completed_outcome("one"));
    assert!(pids_of_agent(&service, "kept").is_empty());
    assert_eq!(send_in_context(&service, "c", "two").await, completed_outcome("one two"));
}

/// Remembers in a file what was said, and says once in which: at its start.
const REMEMBERING_AGENT: &str = r#"
[agents.kept]
command = "sh"
args = ["-c", """id=${1:-s-$$}; echo "session: $id" >&2; echo start >> HERE/log
while read line; do echo "$line" >> HERE/$id; tr '\\n' ' ' < HERE/$id; echo; echo END; done""", "kept"]
mode = "interactive"
stop_grace = 0.3
sandbox.writable = ["HERE"]
session = { resume_args = ["{{ session_id }}"], regex = 'session: (\S+)' }
turn = { end_line = "END" }
"#;

#[tokio::test]
async fn a_pooled_process_with_sessions_resumes_after_any_end() {
    let mut service = ServiceProcess::start(REMEMBERING_AGENT).await;
    let first_task =
        service.expect_result("kept", "message/send", &message_params_in_context("c", "one")).await;
    assert_eq!(task_outcome(&first_task), completed_outcome("one \n"));
    assert_eq!(send_in_context(&service, "c", "two").await, completed_outcome("one two \n"));
    assert_eq!(service.setup.read_file("log"), "start\n", "one program served both");
    // What removes an execution removes the sessions that it used last.
    let deletion = service.run_command(&["tasks", "delete", &task_id(&first_task)], "").await;
    assert_eq!(deletion.exit_code, Some(0), "{deletion:?}");
    service.send_sigterm();
    assert!(service.wait_for_exit().await.success());
    service.start_again().await;
    let stream_text = stream_answer(&service, "c", "three").await;
    assert!(
        stream_text.contains("one two three") && !stream_text.contains("continuity"),
        "{stream_text}"
    );
    let pid =
        service.fetch_agent_status("kept").await["pooledProcesses"][0]["pid"].as_i64().unwrap();
    kill9(i32::try_from(pid).unwrap());
    poll_until("an empty pool", async || {
        service.fetch_agent_status("kept").await["pooledProcesses"].is_null().then_some(())
    })
    .await;
    let stream_text = stream_answer(&service, "c", "four").await;
    assert!(
        stream_text.contains("one two three four") && !stream_text.contains("continuity"),
        "{stream_text}"
    );
    assert_eq!(service.setup.read_file("log"), "start\nstart\nstart\n");
}

#[tokio::test]
async fn a_process_per_turn_resumes_by_its_session() {
    let agent = REMEMBERING_AGENT.replace("stop_grace", "keep_alive = false\nstop_grace");
    let service = ServiceProcess::start(&agent).await;
    for (text, answer) in [("one", "one \n"), ("two", "one two \n"), ("three", "one two three \n")]
    {
        assert_eq!(send_in_context(&service, "c", text).await, completed_outcome(answer));
        assert!(pids_of_agent(&service, "kept").is_empty(), "{text}");
    }
    assert_eq!(send_in_context(&service, "d", "tea").await, completed_outcome("tea \n"));
    assert_eq!(service.setup.read_file("log"), "start\n".repeat(4));
}

#[tokio::test]
async fn a_message_with_other_parameters_gets_another_process() {
    let script = "while read line; do echo \"$0 $line $$\"; echo END; done";
    let agent = format!(
        "[agents.kept]\ncommand = 'sh'\nargs = ['-c', '{script}', '{{{{ param.style }}}}']\n\
         mode = 'interactive'\nparams = {{ style = 'plain', tone = 'low' }}\n\
         overrides.params = ['style', 'tone']\n[agents.kept.turn]\nend_line = 'END'\n\
         message = \"{{{{ input }}}} {{{{ param.tone }}}} {{{{ metadata }}}}\\n\"\n"
    );
    let service = ServiceProcess::start(&agent).await;
    let send = async |text: &str, params: Value| {
        let mut message = message_params_in_context("c", text);
        let extension_uri = "https://algonius.dev/a2a/ext/parameters/v1";
        message["message"]["metadata"] = json!({ extension_uri: params, "n": text });
        let task = service.expect_result("kept", "message/send", &message).await;
        let (state, answer) = task_outcome(&task);
        assert_eq!(state, "completed", "{task}");
        let (answer, pid) = answer.trim_end().rsplit_once(' ').unwrap();
        (answer.to_owned(), pid.to_owned())
    };
    let (first_answer, first_pid) = send("one", json!({})).await;
    assert_eq!(first_answer, "plain one low {\"n\":\"one\"}");
    // A parameter of the message alone needs no other process.
    let (second_answer, second_pid) = send("two", json!({"tone": "high"})).await;
    assert_eq!(
        (second_answer.as_str(), &second_pid),
        ("plain two high {\"n\":\"two\"}", &first_pid)
    );
    let (third_answer, third_pid) = send("three", json!({"style": "bold"})).await;
    assert_eq!(third_answer, "bold three low {\"n\":\"three\"}");
    assert_ne!(third_pid, first_pid);
}
