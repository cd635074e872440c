//! The same message is one execution, whatever happens between.

use serde_json::json;

use crate::harness::door::{completed, id, outcome};
use crate::harness::{Service, Setup, fake, gated, message, messages, soon};

#[tokio::test]
async fn the_same_message_sent_twice_at_once_and_once_more_later_runs_once() {
    let service = Service::start(&gated("one", "")).await;
    let door = service.door.clone();
    let first =
        tokio::spawn(async move { door.rpc("one", "message/send", &messages("m-1", "ann")).await });
    service.setup.written("log", "start ann\n").await;
    let second = service.submit("one", messages("m-1", "ann")).await;
    service.setup.open("go");
    let first = soon("the first answer", first).await.unwrap();
    assert_eq!(outcome(&first), completed("ann\n"));
    let third = service.rpc("one", "message/send", &messages("m-1", "ann")).await;
    assert_eq!((id(&second), id(&third)), (id(&first), id(&first)));
    assert_eq!(outcome(&third), completed("ann\n"));
    assert_eq!(service.setup.read("log"), "start ann\nend ann\n");
}

#[tokio::test]
async fn a_message_that_comes_again_and_again_is_told_of_its_one_run() {
    let service = Service::start(&gated("one", "")).await;
    let first = service.submit("one", messages("m-1", "ann")).await;
    service.setup.written("log", "start ann\n").await;
    let others: Vec<_> = (0..4)
        .map(|_| {
            let door = service.door.clone();
            let send =
                async move { door.rpc("one", "message/send", &messages("m-1", "ann")).await };
            tokio::spawn(send)
        })
        .collect();
    for _ in 0..3 {
        let joined = service.submit("one", messages("m-1", "ann")).await;
        assert_eq!(id(&joined), id(&first));
        let refused = service.refused("one", "message/send", messages("m-1", "bob")).await;
        assert_eq!(refused, (-32602, "message-reused".to_owned()));
    }
    service.setup.open("go");
    for other in others {
        let other = soon("an answer", other).await.unwrap();
        assert_eq!((id(&other), outcome(&other)), (id(&first), completed("ann\n")));
    }
    for _ in 0..3 {
        let late = service.rpc("one", "message/send", &messages("m-1", "ann")).await;
        assert_eq!((id(&late), outcome(&late)), (id(&first), completed("ann\n")));
    }
    assert_eq!(service.setup.read("log"), "start ann\nend ann\n");
}

#[tokio::test]
async fn the_same_message_is_known_after_a_restart() {
    let mut service = Service::start(&gated("one", "")).await;
    service.setup.open("go");
    let first = service.rpc("one", "message/send", &messages("m-1", "ann")).await;
    service.sigterm();
    assert!(service.exit().await.success());
    service.restart().await;
    let second = service.rpc("one", "message/send", &messages("m-1", "ann")).await;
    assert_eq!((id(&second), outcome(&second)), (id(&first), completed("ann\n")));
    assert_eq!(service.setup.read("log"), "start ann\nend ann\n");
}

#[tokio::test]
async fn a_request_that_its_caller_named_is_known_by_that_name_after_a_restart() {
    let mut service = Service::start(&gated("one", "")).await;
    service.setup.open("go");
    let send = async |service: &Service, name: &str, text: &str| {
        let lines = [format!("Idempotency-Key: {name}")];
        let lines: Vec<_> = lines.iter().map(String::as_str).collect();
        let params = message(text);
        service.call_with("one", &lines, ("message/send", &params)).await.json()
    };
    let first = send(&service, "k-1", "ann").await;
    assert_eq!(outcome(&first["result"]), completed("ann\n"));
    service.sigterm();
    assert!(service.exit().await.success());
    service.restart().await;
    let again = send(&service, "k-1", "ann").await;
    assert_eq!(id(&again["result"]), id(&first["result"]));
    let refused = send(&service, "k-1", "bob").await;
    assert_eq!(refused["error"]["data"]["code"], "message-reused");
    let other = send(&service, "k-2", "ann").await;
    assert_ne!(id(&other["result"]), id(&first["result"]));
    let nameless = send(&service, "", "ann").await;
    assert_eq!(nameless["error"]["data"]["code"], "invalid-params");
    assert_eq!(service.setup.read("log"), "start ann\nend ann\n".repeat(2));
}

#[tokio::test]
async fn the_same_message_id_with_another_text_is_refused() {
    let service = Service::start(&fake("echo", "echo", "")).await;
    let send = async |params| service.refused("echo", "message/send", params).await;
    service.rpc("echo", "message/send", &messages("m-1", "ann")).await;
    let reused = (-32602, "message-reused".to_owned());
    assert_eq!(send(messages("m-1", "bob")).await, reused);
    let mut other = messages("m-1", "ann");
    other["message"]["metadata"] = json!({"https://algonius.dev/a2a/ext/parameters/v1": {"a": 1}});
    assert_eq!(send(other).await, reused);
}

#[tokio::test]
async fn the_same_message_id_of_another_caller_or_for_another_agent_is_another_execution() {
    let token = "t".repeat(40);
    let agents = [fake("echo", "echo", ""), fake("copy", "echo", "")].concat();
    let text = format!("{agents}[tokens.ann]\ntoken_env = 'ANN'\n");
    let service = Setup::new(&text).env("ANN", &token).start().await;
    let params = messages("m-1", "ann");
    let mut ids = vec![
        id(&service.rpc("echo", "message/send", &params).await),
        id(&service.rpc("copy", "message/send", &params).await),
        id(&service.with(&token).rpc("echo", "message/send", &params).await),
    ];
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 3);
}

/// Also where the door knows the message by then.
#[tokio::test]
async fn who_may_not_look_is_not_told_of_a_task_however_often_its_message_comes() {
    let token = "t".repeat(40);
    let text =
        format!("{}[tokens.ann]\ntoken_env = 'ANN'\nscopes = ['run']\n", fake("echo", "echo", ""));
    let service = Setup::new(&text).env("ANN", &token).start().await;
    let ann = service.with(&token);
    for _ in 0..4 {
        let refused = ann.refused("echo", "message/send", messages("m-1", "ann")).await;
        assert_eq!(refused, (-32001, "execution-unknown".to_owned()));
        service.post("/api/v1/agents/echo/wait?seconds=20", "").await; // Until it has ended.
    }
}

#[tokio::test]
async fn the_same_words_within_the_window_are_worked_on_once_where_the_agent_wants_that() {
    let settings = "dedup = 'content'\ndedup_window = '5m'\nmax_concurrent = 3";
    let service = Service::start(&gated("one", settings)).await;
    let first = service.begin("one", "ann").await;
    service.setup.written("log", "start ann\n").await;
    let second = service.begin("one", "ann").await;
    let named = async |context: &str| {
        let mut params = message("ann");
        params["message"]["contextId"] = json!(context);
        id(&service.submit("one", params).await)
    };
    let third = named("c-1").await;
    service.setup.written("log", "start ann\nstart ann\n").await;
    assert_eq!(service.agent("one").await["queued"][0]["id"], second);
    service.setup.open("go");
    for task in [&first, &second, &third] {
        assert_eq!(outcome(&service.ended("one", task).await), completed("ann\n"));
    }
    // What has completed serves too; a name of its own keeps a request apart.
    let late = service.send("one", "ann").await;
    assert_eq!((outcome(&late), id(&late) == first), (completed("ann\n"), false));
    let detail = service.execution(&id(&late)).await;
    assert!(detail["events"].to_string().contains(&first), "{detail}");
    assert_eq!(service.setup.read("log").matches("start").count(), 2);
    let params = message("ann");
    let named = service.call_with("one", &["Idempotency-Key: k"], ("message/send", &params)).await;
    assert_eq!(outcome(&named.json()["result"]), completed("ann\n"));
    assert_eq!(service.setup.read("log").matches("start").count(), 3);
}

#[tokio::test]
async fn a_result_that_took_a_question_is_not_taken_by_the_same_words() {
    let agent = r#"
[agents.asking]
command = "sh"
args = ["-c", '''
read word
if [ "$word" = deploy ]; then echo '{"type":"input_required","text":"where?"}'; exit 0; fi
printf '{"type":"text","text":"to %s"}\n' "$word"
''']
output = "events"
dedup = "content"
"#;
    let service = Service::start(agent).await;
    let first = service.send("asking", "deploy").await;
    let mut answer = message("staging");
    answer["message"]["taskId"] = json!(id(&first));
    let told = service.rpc("asking", "message/send", &answer).await;
    assert_eq!(outcome(&told), completed("to staging"));
    let second = service.send("asking", "deploy").await;
    assert_eq!(second["status"]["state"], "input-required");
}
