//! The command line at a terminal: a real one, of which the story sees what a person would.

use std::process::Stdio;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStdin, Command};
use tokio::sync::watch;

use crate::harness::{ServiceProcess, gated_agent_config, poll_until, within_deadline};

/// Says a piece, waits for the gate, says the rest; asks when it is told to.
const TALKS_AGENT: &str = r#"
[agents.talks]
command = "sh"
args = ["-c", '''
read word
case "$word" in
ask) echo '{"type":"input_required","text":"which colour?"}'; exit 0 ;;
guard) echo '{"type":"auth_required","text":"Sign in.","url":"https://login.example.org"}'; exit 0 ;;
esac
printf '{"type":"text","text":"first %s,\\n"}\n' "$word"
until [ -e HERE/go ]; do sleep 0.05; done
echo '{"type":"text","text":"then the rest"}'
''']
output = "events"
"#;

/// A command at a terminal of 100 columns and 30 rows.
pub(crate) struct Terminal {
    child: Child,
    stdin: ChildStdin,
    received_text: watch::Receiver<String>,
}

impl Terminal {
    pub(crate) fn start(service: &ServiceProcess, args: &str) -> Self {
        let program = env!("CARGO_BIN_EXE_algonius");
        let shell_command = format!("stty cols 100 rows 30; exec {program} {args}");
        let mut command = Command::new("script");
        command
            .args(["-qefc", &shell_command, "/dev/null"])
            .env_clear()
            .envs(service.setup.env_variables());
        command.env("ALGONIUS_URL", format!("http://{}", service.address)).env("TERM", "xterm");
        command.current_dir(service.setup.test_folder()).kill_on_drop(true);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let (stdin, mut output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let (sender, received_text) = watch::channel(String::new());
        tokio::spawn(async move {
            let mut bytes = Vec::new();
            while output.read_buf(&mut bytes).await.is_ok_and(|count| count > 0) {
                sender.send_modify(|text| *text = String::from_utf8_lossy(&bytes).into_owned());
            }
        });
        Self { child, stdin, received_text }
    }

    /// What stands there once this does.
    pub(crate) async fn wait_for_text(&self, text: &str) -> Vec<String> {
        self.wait_for_lines(text, 1).await
    }

    /// Waits until so many lines contain the text.
    pub(crate) async fn wait_for_lines(&self, text: &str, count: usize) -> Vec<String> {
        poll_until(&format!("{count} times {text:?} at the terminal"), async || {
            let lines = screen_lines(&self.received_text.borrow());
            let has_text = |line: &&String| line.contains(text);
            (lines.iter().filter(has_text).count() >= count).then_some(lines)
        })
        .await
    }

    pub(crate) async fn send_keys(&mut self, keys: &str) {
        self.stdin.write_all(keys.as_bytes()).await.unwrap();
        self.stdin.flush().await.unwrap();
    }

    /// The exit code, and what stands there at the end.
    pub(crate) async fn wait_for_exit(mut self) -> (Option<i32>, Vec<String>) {
        let status = within_deadline("the end of the command", self.child.wait()).await.unwrap();
        let is_complete = async || self.received_text.has_changed().is_err().then_some(());
        poll_until("the end of its output", is_complete).await; // Who reads has read all of it.
        (status.code(), screen_lines(&self.received_text.borrow()))
    }
}

/// What a terminal makes of these characters: its lines, without those that are empty.
fn screen_lines(text: &str) -> Vec<String> {
    let (mut lines, mut row, mut column) = (vec![Vec::new()], 0, 0);
    let mut chars = text.chars();
    while let Some(char) = chars.next() {
        match char {
            '\r' => column = 0,
            '\n' => row += 1,
            '\x1b' => {
                let mut rest = chars.as_str().strip_prefix('[').unwrap().chars();
                let is_end = |char: &char| char.is_ascii_alphabetic();
                let parameter: String = rest.clone().take_while(|char| !is_end(char)).collect();
                match rest.nth(parameter.chars().count()).unwrap() {
                    'A' => row -= parameter.parse::<usize>().unwrap(),
                    'K' => lines[row].truncate(column),
                    'J' => {
                        lines[row].truncate(column);
                        lines.truncate(row + 1);
                    }
                    _ => {} // What is neither seen nor moves anything.
                }
                chars = rest;
            }
            _ => {
                let line = &mut lines[row];
                line.resize(line.len().max(column + 1), ' ');
                line[column] = char;
                column += 1;
            }
        }
        lines.resize(lines.len().max(row + 1), Vec::new());
    }
    let lines = lines.into_iter().map(|line| line.into_iter().collect::<String>());
    lines.map(|line| line.trim_end().to_owned()).filter(|line| !line.is_empty()).collect()
}

#[tokio::test]
async fn a_watched_status_is_redrawn_in_place_until_ctrl_c() {
    let service = ServiceProcess::start(&gated_agent_config("one", "access = 'read-write'")).await;
    let mut terminal = Terminal::start(&service, "status --watch --every 0.1");
    terminal.wait_for_text("one up ").await;
    service.start_task("one", "ann").await;
    let busy_screen = terminal.wait_for_text("running 1/1").await;
    let gateway_lines = busy_screen.iter().filter(|line| line.contains("└─ gateway")).count();
    assert_eq!(gateway_lines, 1, "drawn twice: {busy_screen:#?}");
    for expected in ["root up", "├─ monitor", "├─ scheduler", "├─ retention", "│  ├─ "]
    {
        assert!(
            busy_screen.iter().any(|line| line.contains(expected)),
            "{expected}: {busy_screen:#?}"
        );
    }
    assert!(busy_screen.iter().all(|line| line.chars().count() <= 100), "{busy_screen:#?}");
    service.setup.open_gate("go");
    terminal.wait_for_text("last completed").await;
    terminal.send_keys("\x03").await;
    let received_text = terminal.received_text.clone();
    let (code, screen) = terminal.wait_for_exit().await;
    assert_eq!(code, Some(0), "{screen:#?}");
    assert!(received_text.borrow().trim_end().ends_with("\x1b[?25h"), "the cursor stays hidden");
}

#[tokio::test]
async fn an_answer_is_streamed_and_its_progress_removed() {
    let service = ServiceProcess::start(TALKS_AGENT).await;
    let terminal = Terminal::start(&service, "send talks word");
    terminal.wait_for_text("first word,").await;
    service.setup.open_gate("go");
    let (code, screen) = terminal.wait_for_exit().await;
    assert_eq!(
        (code, screen),
        (Some(0), ["first word,", "then the rest"].map(str::to_owned).to_vec())
    );
}

#[tokio::test]
async fn progress_is_one_line_until_the_answer_arrives() {
    let service = ServiceProcess::start(&gated_agent_config("one", "max_concurrent = 1")).await;
    service.start_task("one", "ann").await;
    service.setup.wait_for_file_text("log", "start ann\n").await;
    let terminal = Terminal::start(&service, "send one bob");
    terminal.wait_for_text("waiting: 1st in line, the agent is busy (").await;
    service.setup.open_gate("go-ann");
    let working_lines = terminal.wait_for_text("working (").await;
    assert_eq!(working_lines.len(), 1, "{working_lines:#?}");
    service.setup.open_gate("go");
    assert_eq!(terminal.wait_for_exit().await, (Some(0), vec!["bob".to_owned()]));
}

#[tokio::test]
async fn a_question_is_shown_at_the_terminal_and_answered() {
    let service = ServiceProcess::start(TALKS_AGENT).await;
    service.setup.open_gate("go");
    let mut terminal = Terminal::start(&service, "send talks ask");
    terminal.wait_for_text("which colour?").await;
    terminal.send_keys("blue\n").await;
    let (code, screen) = terminal.wait_for_exit().await;
    assert_eq!(code, Some(0), "{screen:#?}");
    assert_eq!(screen[screen.len() - 2..], ["first blue,", "then the rest"]);
    let list = service.get("/api/v1/executions").await.json();
    assert_eq!(list["executions"].as_array().unwrap().len(), 1, "{list}");
    assert_eq!(list["executions"][0]["turn"], 2, "{list}");
}

#[tokio::test]
async fn a_terminal_user_is_shown_the_authentication_page() {
    let service = ServiceProcess::start(TALKS_AGENT).await;
    service.setup.open_gate("go");
    let mut terminal = Terminal::start(&service, "send talks guard");
    let lines = terminal.wait_for_text("(authenticate, then answer to continue)").await;
    for line in ["Sign in.", "https://login.example.org"] {
        assert!(lines.iter().any(|row| row == line), "{lines:#?}");
    }
    terminal.send_keys("done\n").await;
    let (code, screen) = terminal.wait_for_exit().await;
    assert_eq!(code, Some(0), "{screen:#?}");
    assert_eq!(screen[screen.len() - 2..], ["first done,", "then the rest"]);
}

#[tokio::test]
async fn ctrl_c_cancels_the_task() {
    let service = ServiceProcess::start(&gated_agent_config("one", "access = 'read-write'")).await;
    let mut terminal = Terminal::start(&service, "send one ann");
    service.setup.wait_for_file_text("log", "start ann\n").await;
    terminal.wait_for_text("working (").await;
    terminal.send_keys("\x03").await;
    let (code, screen) = terminal.wait_for_exit().await;
    assert_eq!(code, Some(5), "{screen:#?}");
    assert!(screen.iter().any(|line| line.contains("cancelling the task")), "{screen:#?}");
    let list = service.get("/api/v1/executions").await.json();
    assert_eq!(list["executions"][0]["outcome"], "cancelled", "{list}");
}

#[test]
fn a_screen_shows_the_latest_text() {
    assert_eq!(screen_lines("one\r\ntwo\r\n\x1b[2Athree\x1b[K\r\n\x1b[J"), ["three"]);
    assert_eq!(screen_lines("waits (1 s)\r\x1b[Kdone\r\n"), ["done"]);
    assert_eq!(screen_lines("abc\rx"), ["xbc"]);
}

/// Prints colours in two pieces, and characters that a terminal would interpret.
const PAINTS_AGENT: &str = r#"
[agents.paints]
command = "sh"
args = ["-c", '''
printf '{"type":"text","text":"\\u001b[3"}\n'
sleep 0.2
printf '{"type":"text","text":"1mred\\u001b[2J\\u001b]52;c;eA==\\u0007\\u202e over\\rwritten"}\n'
''']
output = "events"
"#;

#[tokio::test]
async fn only_colours_reach_the_terminal() {
    let service = ServiceProcess::start(PAINTS_AGENT).await;
    for args in ["send paints x", "send --no-stream paints x"] {
        let terminal = Terminal::start(&service, args);
        let (received_text, (code, lines)) =
            (terminal.received_text.clone(), terminal.wait_for_exit().await);
        let received_text = received_text.borrow().clone();
        let expected = "\x1b[31mred\\x1b[2J\\x1b]52;c;eA==\\x07\\u{202e} over\\rwritten\x1b[0m";
        assert!(
            code == Some(0) && received_text.contains(expected),
            "{args}: {received_text:?} {lines:#?}"
        );
    }
}
