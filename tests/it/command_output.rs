//! Output of the command line that cannot be written, and input that is not UTF-8.

use std::process::Stdio;

use tokio::io::AsyncWriteExt;

use crate::harness::client::{completed_outcome, task_outcome};
use crate::harness::{ServiceProcess, fake_agent_config, within_deadline};

/// Exit code and standard error of a command.
type ExitCodeAndOutput = (Option<i32>, String);

/// Runs a command whose standard output cannot be written: a full disk, or a pipe that its reader has closed.
async fn run_with_unwritable_stdout(
    service: &ServiceProcess,
    stdout_target: &str,
    args: &str,
) -> ExitCodeAndOutput {
    let script = match stdout_target {
        "full" => "exec \"$0\" \"$@\" > /dev/full",
        _ => "{ \"$0\" \"$@\"; echo $? >&3; } 3>&2 | head -c 1 > /dev/null",
    };
    let output = run_script(service, script, args, b"").await;
    match stdout_target {
        "full" => output,
        // The shell reports the exit code of the command on the last line.
        _ => {
            let (rest, code) =
                output.1.trim_end().rsplit_once('\n').unwrap_or(("", output.1.trim()));
            (code.parse().ok(), rest.to_owned())
        }
    }
}

async fn run_script(
    service: &ServiceProcess,
    script: &str,
    args: &str,
    input: &[u8],
) -> ExitCodeAndOutput {
    let program = env!("CARGO_BIN_EXE_algonius");
    let mut command = tokio::process::Command::new("bash");
    command.args(["-c", script, program]).args(args.split(' '));
    command.env("ALGONIUS_URL", format!("http://{}", service.address));
    command.env("ALGONIUS_TOKEN", &service.token).kill_on_drop(true);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input).await.unwrap();
    let output = within_deadline(args, child.wait_with_output()).await.unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stderr) + &text(&output.stdout))
}

#[tokio::test]
async fn output_that_cannot_be_written_is_an_error() {
    let service = ServiceProcess::start(&fake_agent_config("echo", "echo", "")).await;
    assert_eq!(task_outcome(&service.send("echo", "x").await), completed_outcome("x"));
    for args in [
        "--help",
        "--version",
        "explain",
        "completions bash",
        "man",
        "status",
        "status --json",
        "status --watch --every 1",
        "agents list",
        "tasks list --json",
        "tasks export --text",
        "usage",
        "token list",
        "logs",
        "send echo hello",
        "send echo hello --no-stream",
        "send echo hello --no-wait",
        "send echo hello --json",
    ] {
        let (exit_code, stderr) = run_with_unwritable_stdout(&service, "full", args).await;
        assert_eq!(exit_code, Some(1), "{args}: {stderr}");
        assert!(stderr.contains("standard output could not be written"), "{args}: {stderr}");
    }
}

#[tokio::test]
async fn a_reader_that_has_enough_ends_a_command_quietly() {
    let agents = [
        fake_agent_config("echo", "echo", ""),
        "[agents.slow]\ncommand = 'sh'\nargs = ['-c', 'while :; do echo line; sleep 0.1; done']\n"
            .to_owned(),
    ];
    let service = ServiceProcess::start(&agents.concat()).await;
    let slow_task = service.start_task("slow", "x").await;
    for number in 0..40 {
        service.send("echo", &"long text ".repeat(300 + number)).await;
    }
    let watch = format!("tasks watch {slow_task}");
    for args in ["tasks export --text", "explain", "--help", "logs --follow", &watch, "send slow x"]
    {
        let (exit_code, stderr) = run_with_unwritable_stdout(&service, "closed", args).await;
        assert_eq!((exit_code, stderr.contains("error")), (Some(0), false), "{args}: {stderr}");
    }
}

#[tokio::test]
async fn a_token_that_nobody_received_is_reported() {
    let service = ServiceProcess::start(&fake_agent_config("echo", "echo", "")).await;
    let script = "exec \"$0\" \"$@\" > /dev/full";
    let (exit_code, stderr) = run_script(&service, script, "token create lost", b"").await;
    assert_eq!(exit_code, Some(1), "{stderr}");
    assert!(stderr.contains("`algonius token create lost --replace`"), "{stderr}");
    assert!(!stderr.contains("this text is shown this once"), "{stderr}");
}

#[tokio::test]
async fn no_token_is_created_whose_text_is_discarded() {
    let service = ServiceProcess::start(&fake_agent_config("echo", "echo", "")).await;
    for redirection in [">&-", "> /dev/null"] {
        let script = format!("exec \"$0\" \"$@\" {redirection}");
        let (exit_code, stderr) = run_script(&service, &script, "token create lost", b"").await;
        assert_eq!(
            (exit_code, stderr.contains("`lost` was not created")),
            (Some(1), true),
            "{stderr}"
        );
    }
    let tokens = service.run_command(&["token", "list"], "").await.stdout;
    assert!(!tokens.contains("lost"), "{tokens}");
}

#[tokio::test]
async fn input_that_is_not_utf8_is_sent_with_a_note() {
    let service = ServiceProcess::start(&fake_agent_config("echo", "echo", "")).await;
    let run =
        async |input: &[u8]| run_script(&service, "exec \"$0\" \"$@\"", "send echo -", input).await;
    let note = "note: 1 byte of standard input is not UTF-8; it becomes U+FFFD";
    assert_eq!(run(b"caf\xe9 au lait").await, (Some(0), format!("{note}\ncaf\u{fffd} au lait")));
    let (exit_code, output) = run(b"\xff\xfe diff \xc3\n+\xe9\n").await;
    assert_eq!(exit_code, Some(0), "{output}");
    assert!(output.contains("4 bytes of standard input") && output.contains(" diff "), "{output}");
    assert_eq!(run("caf\u{e9}".as_bytes()).await, (Some(0), "caf\u{e9}".to_owned()));
}

#[tokio::test]
async fn arguments_that_are_not_utf8_are_sent_with_a_note() {
    let service = ServiceProcess::start(&fake_agent_config("echo", "echo", "")).await;
    let script = r#"exec "$0" "$@" "$(printf 'caf\351 au lait')""#;
    let note = "note: 1 byte of the arguments is not UTF-8; it becomes U+FFFD";
    let code_and_output = run_script(&service, script, "send echo", b"").await;
    assert_eq!(code_and_output, (Some(0), format!("{note}\ncaf\u{fffd} au lait")));
}
