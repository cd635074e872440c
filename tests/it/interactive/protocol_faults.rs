//! Programs that do not speak the protocol of their agent, or break it in the middle of a turn.

use super::*;

/// Bytes of a frame that exceeds the least limit of a frame, which is 16 MiB.
const HUGE_FRAME_BYTES: usize = 17 << 20;

/// Agent that is served beside the others.
const ECHO_AGENT: &str = "[agents.echo]\ncommand = 'cat'\n";

/// Programs that open no session, each with the code of its failure.
const PROGRAMS_WITHOUT_PROTOCOL: [(&str, &str); 4] = [
    ("exit 0", "session-not-opened"),
    ("exit 7", "agent-exit"),
    ("exec cat", "session-not-opened"),
    ("echo Welcome! What can I do for you?; sleep 60", "session-not-opened"),
];

#[tokio::test]
async fn a_program_without_the_protocol_fails_its_task() {
    for protocol in PROTOCOLS {
        let agent = |(index, (script, _)): (usize, &(&str, &str))| {
            format!(
                "[agents.broken-{index}]\ncommand = 'sh'\nargs = ['-c', '{script}']\n\
                 protocol = '{protocol}'\nstart_timeout = 1\nstop_grace = 1\nretry.max = 0\n"
            )
        };
        let agents: String = PROGRAMS_WITHOUT_PROTOCOL.iter().enumerate().map(agent).collect();
        let service = ServiceProcess::start(&format!("{agents}{ECHO_AGENT}")).await;
        let send = async |index: usize| service.send(&format!("broken-{index}"), "hello").await;
        let tasks =
            futures_util::future::join_all((0..PROGRAMS_WITHOUT_PROTOCOL.len()).map(send)).await;
        for (task, (script, code)) in tasks.iter().zip(PROGRAMS_WITHOUT_PROTOCOL) {
            assert_eq!(task_outcome(task), failed_outcome(code), "{protocol}, {script}: {task}");
        }
        assert_eq!(task_outcome(&service.send("echo", "hello").await), completed_outcome("hello"));
    }
}

#[tokio::test]
async fn words_between_messages_are_warnings() {
    for protocol in PROTOCOLS {
        let agents = interactive_agent_config("coder", protocol, "");
        let service = start_service(&format!("{agents}{ECHO_AGENT}")).await;
        let prompt = "[[words hello]] [[say done]] [[words the end]]";
        let task = service.send("coder", prompt).await;
        assert_eq!(task_outcome(&task), completed_outcome("done"), "{protocol}: {task}");
        let events = service.fetch_execution(task["id"].as_str().unwrap()).await["events"].clone();
        let warnings: Vec<_> = events
            .as_array()
            .unwrap()
            .iter()
            .filter(|event| event["data"]["kind"] == "warning")
            .map(|event| event["data"]["message"].as_str().unwrap())
            .collect();
        assert_eq!(warnings, ["a line is not JSON"; 2], "{protocol}");
        assert_eq!(task_outcome(&service.send("echo", "hello").await), completed_outcome("hello"));
    }
}

/// A message that cannot be read may be a part of the answer, or its end.
#[tokio::test]
async fn a_lost_message_fails_its_task_at_once() {
    for protocol in PROTOCOLS {
        let agents =
            interactive_agent_config("coder", protocol, "max_output_bytes = 1000\nretry.max = 0");
        let zeros = format!(
            "[agents.zeros]\ncommand = 'sh'\nargs = ['-c', 'cat /dev/zero']\nprotocol = '{protocol}'\n\
             start_timeout = 60\nstop_grace = 0.1\nmax_output_bytes = 1000\nretry.max = 0\n"
        );
        let service = start_service(&format!("{agents}{zeros}")).await;
        let task = service.send("zeros", "hello").await;
        assert_eq!(task_outcome(&task), failed_outcome("output-unreadable"), "{protocol}: {task}");
        for (lost_message_prompt, reason) in [
            ("[[malformed]]".to_owned(), "because it is not JSON: {\""),
            (format!("[[huge {HUGE_FRAME_BYTES}]]"), "because it is longer than 16777216 bytes"),
        ] {
            let task =
                service.send("coder", &format!("[[say one]] {lost_message_prompt} [[hang]]")).await;
            assert_eq!(
                task_outcome(&task),
                failed_outcome("output-unreadable"),
                "{protocol}: {task}"
            );
            let text = task["status"]["message"]["parts"][0]["text"].as_str().unwrap();
            assert!(text.contains(reason), "{protocol}: {text}");
        }
        assert_eq!(
            task_outcome(&service.send("coder", "[[say two]]").await),
            completed_outcome("two")
        );
    }
}
