//! Scripted fake agent. Its first argument selects a role; see `ROLES`.

mod acp;
mod chat;
mod control_agent;
mod instruction;
mod launch;
mod mcp;
mod rpc;
mod tck;
mod turns;

use std::env;
use std::error::Error;
use std::fs::OpenOptions;
use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::json;

/// Function of a role: it takes the arguments and returns the exit code.
type RoleFn = fn(&[String]) -> Result<u8, Box<dyn Error>>;

/// Roles with their arguments.
const ROLES: &[(&str, RoleFn, &str)] = &[
    ("echo", echo, "standard input to standard output"),
    ("exit", exit, "CODE [TEXT]: TEXT to standard error, then exits with CODE"),
    ("sleep", sleep, "SECONDS [TEXT]: waits, then prints TEXT"),
    ("stubborn", ignore_sigterm, "ignores SIGTERM, as does its child, whose process id it prints"),
    ("daemonize", daemonize, "leaves a process in a session of its own; prints its process id"),
    ("hold-pipe", hold_pipe, "prints `held`, leaves a process that holds its output, and exits"),
    ("crowd", spawn_sleepers, "N: starts N processes, says so, and waits for them"),
    ("hog", hold_memory, "BYTES: takes so much memory, says so, and keeps it"),
    ("flood", flood, "BYTES: prints so many bytes"),
    (
        "noisy",
        print_control_characters,
        "prints colours, control characters and bytes that are no text",
    ),
    ("env", print_environment, "prints its environment, sorted"),
    ("args", print_arguments, "ARGUMENTS: prints each as a JSON string on a line"),
    ("cwd", print_working_folder, "prints its working folder"),
    ("events", print_events, "WORDS: prints an event for each; see `event`"),
    ("chat", chat::run, "FOLDER [--new ID | --resume ID] [--events]: remembers conversations"),
    ("rpc", rpc::run, "[--counted] [--init] [--stays]: answers calls of JSON-RPC"),
    ("turns", turns::run, "[--json]: answers one message after the other"),
    ("acp", acp::run, "an interactive agent of ACP, with instructions in its prompts; see `acp`"),
    (
        "claude-control",
        control_agent::run_claude,
        "[--resume ID | --session-id ID]: see `control_agent`",
    ),
    (
        "codex-app-server",
        control_agent::run_codex,
        "an interactive agent of that protocol; see `control_agent`",
    ),
    ("launch", launch::run, "starts a program with unusual state; see `launch`"),
    ("mcp", mcp::serve, "an MCP server; see `mcp`"),
    ("tck", tck::run, "0.3 or 1.0: the agent that the conformance kits test, in events"),
    (
        "flaky",
        fail_first_runs,
        "FILE N CODE: fails N times with CODE, counted in FILE, then succeeds",
    ),
    (
        "once",
        log_run_times,
        "FILE: writes to FILE when it starts and ends; sleeps what its input says",
    ),
    (
        "witness",
        log_run_with_lock,
        "FILE LOCK|-: as `once`, for the one who judges a storm; see `witness`",
    ),
    ("no-stdin", leave_stdin_unread, "never reads its input"),
    ("tty", try_open_terminal, "tries to open the terminal and says how that went"),
    ("in-own-session", sleep_in_own_session, "what `daemonize` leaves behind"),
];

/// Seconds beyond any test: a process that sleeps this long ends only when it is killed.
const FOREVER_SECONDS: &str = "600";

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    let name = args.first().map(String::as_str);
    let Some((_, run_role, _)) = ROLES.iter().find(|(role, ..)| Some(*role) == name) else {
        return fail(&usage(), 64);
    };
    match run_role(args.get(1..).unwrap_or_default()) {
        Ok(code) => ExitCode::from(code),
        Err(error) => fail(&format!("{error}\n"), 70),
    }
}

fn fail(text: &str, code: u8) -> ExitCode {
    // With standard error closed, the failure cannot be reported.
    _ = io::stderr().write_all(text.as_bytes());
    ExitCode::from(code)
}

fn usage() -> String {
    ROLES
        .iter()
        .map(|(name, _, description)| format!("fake-agent {name}: {description}\n"))
        .collect()
}

fn echo(_: &[String]) -> Result<u8, Box<dyn Error>> {
    io::copy(&mut io::stdin().lock(), &mut io::stdout().lock())?;
    Ok(0)
}

fn exit(args: &[String]) -> Result<u8, Box<dyn Error>> {
    io::stderr().write_all(argument(args, 1).as_bytes())?;
    Ok(argument(args, 0).parse()?)
}

fn sleep(args: &[String]) -> Result<u8, Box<dyn Error>> {
    pause(Duration::try_from_secs_f64(argument(args, 0).parse()?)?);
    print(argument(args, 1))
}

/// Runs a shell, which can ignore a signal without unsafe code, and whose children inherit that.
fn ignore_sigterm(_: &[String]) -> Result<u8, Box<dyn Error>> {
    let script = r#"trap "" TERM; sleep "$0" & echo $!; exec sleep "$0""#;
    Err(Command::new("sh").args(["-c", script, FOREVER_SECONDS]).exec().into())
}

/// Waits until the daemon has its session, so that no signal to the group can reach it.
fn daemonize(_: &[String]) -> Result<u8, Box<dyn Error>> {
    let daemon = start_detached(Command::new(env::current_exe()?).stdin(Stdio::null()))?;
    print(&format!("{daemon}\n"))
}

fn start_detached(command: &mut Command) -> Result<u32, Box<dyn Error>> {
    command.arg("in-own-session").stdout(Stdio::piped()).stderr(Stdio::null());
    let mut daemon = command.spawn()?;
    let pipe = daemon.stdout.as_mut().ok_or("no pipe")?;
    pipe.read_exact(&mut [0])?;
    Ok(daemon.id())
}

fn sleep_in_own_session(_: &[String]) -> Result<u8, Box<dyn Error>> {
    nix::unistd::setsid()?;
    print("!")?;
    Err(Command::new("sleep").arg(FOREVER_SECONDS).stdout(Stdio::null()).exec().into())
}

fn hold_pipe(_: &[String]) -> Result<u8, Box<dyn Error>> {
    Command::new("sleep").arg(FOREVER_SECONDS).spawn()?;
    print("held")
}

fn spawn_sleepers(args: &[String]) -> Result<u8, Box<dyn Error>> {
    let count: usize = argument(args, 0).parse()?;
    let sleepers: io::Result<Vec<_>> =
        (0..count).map(|_| Command::new("sleep").arg(FOREVER_SECONDS).spawn()).collect();
    print("crowded\n")?;
    for mut sleeper in sleepers? {
        sleeper.wait()?;
    }
    Ok(0)
}

fn hold_memory(args: &[String]) -> Result<u8, Box<dyn Error>> {
    let allocation = vec![1_u8; argument(args, 0).parse()?];
    print("taken\n")?;
    pause(Duration::from_secs(FOREVER_SECONDS.parse()?));
    // Read again, so that the memory is held until here.
    print(&allocation.len().to_string())
}

fn flood(args: &[String]) -> Result<u8, Box<dyn Error>> {
    let line = [b'x'; 1023].iter().copied().chain([b'\n']).cycle().take(64 * 1024);
    let block: Vec<u8> = line.collect();
    let mut remaining_bytes: usize = argument(args, 0).parse()?;
    let mut stdout = io::stdout().lock();
    while remaining_bytes > 0 {
        let part = block.get(..remaining_bytes.min(block.len())).unwrap_or_default();
        stdout.write_all(part)?;
        remaining_bytes -= part.len();
    }
    Ok(0)
}

fn print_control_characters(_: &[String]) -> Result<u8, Box<dyn Error>> {
    io::stdout().write_all(b"\x1b[31mred\x1b[0m \xff\xfe bell\x07 zero\x00 half \xe2\x82")?;
    io::stderr().write_all(b"\x1b]0;title\x07 warning \xc3\x28\n")?;
    Ok(0)
}

fn print_environment(_: &[String]) -> Result<u8, Box<dyn Error>> {
    let mut lines: Vec<String> = env::vars_os()
        .map(|(name, value)| format!("{}={}\n", name.display(), value.display()))
        .collect();
    lines.sort();
    print(&lines.concat())
}

fn print_arguments(args: &[String]) -> Result<u8, Box<dyn Error>> {
    print(&args.iter().map(|word| format!("{}\n", json!(word))).collect::<String>())
}

fn print_working_folder(_: &[String]) -> Result<u8, Box<dyn Error>> {
    print(&format!("{}\n", env::current_dir()?.display()))
}

fn print_events(args: &[String]) -> Result<u8, Box<dyn Error>> {
    print(&args.iter().map(|word| event_line(word)).collect::<String>())
}

/// Returns the event of a word: `failed:CATEGORY:MESSAGE`, `unknown` and `junk` are special; other words are text.
fn event_line(word: &str) -> String {
    let mut parts = word.splitn(3, ':');
    let event = match (parts.next(), parts.next(), parts.next()) {
        (Some("failed"), Some(category), Some(message)) => {
            json!({"type": "failed", "category": category, "message": message})
        }
        (Some("unknown"), None, None) => json!({"type": "of-a-later-release"}),
        (Some("junk"), None, None) => return "this is no JSON\n".to_owned(),
        _ => json!({"type": "text", "text": word}),
    };
    format!("{event}\n")
}

fn fail_first_runs(args: &[String]) -> Result<u8, Box<dyn Error>> {
    let (file, failure_count) = (argument(args, 0), argument(args, 1).parse::<usize>()?);
    append_to_file(file, "run\n")?;
    let run_count = std::fs::read_to_string(file)?.lines().count();
    if run_count <= failure_count {
        Ok(argument(args, 2).parse()?)
    } else {
        print(&format!("run {run_count}"))
    }
}

fn log_run_times(args: &[String]) -> Result<u8, Box<dyn Error>> {
    let file = argument(args, 0);
    append_to_file(file, &format!("start {} {}\n", unix_nanoseconds()?, std::process::id()))?;
    let mut input = String::new();
    io::stdin().read_to_string(&mut input)?;
    pause(Duration::try_from_secs_f64(input.trim().parse()?)?);
    append_to_file(file, &format!("end {}\n", unix_nanoseconds()?))?;
    print("done")
}

/// Writes one line each when it has started, when its daemon holds the lock, and when it has ended, with its execution,
/// attempt, process and label. Prints numbered lines before and after a sleep that its input gives. Its daemon, in a
/// session of its own with an empty environment, continues to hold the lock.
fn log_run_with_lock(args: &[String]) -> Result<u8, Box<dyn Error>> {
    let variable = |name| env::var(name).unwrap_or_default();
    let (execution, attempt) = (variable("ALGONIUS_EXECUTION_ID"), variable("ALGONIUS_ATTEMPT"));
    let identity = format!("{execution} {attempt} {} {}", std::process::id(), process_label()?);
    let (file, lock) = (argument(args, 0), argument(args, 1));
    append_to_file(file, &format!("start {identity}\n"))?;
    let mut daemon_stdin = Stdio::null();
    if lock != "-" {
        let lock = OpenOptions::new().create(true).append(true).open(lock)?;
        if lock.try_lock().is_err() {
            append_to_file(file, &format!("overlap {identity}\n"))?;
        }
        daemon_stdin = Stdio::from(lock);
    }
    start_detached(Command::new(env::current_exe()?).env_clear().stdin(daemon_stdin))?;
    let mut input = String::new();
    io::stdin().read_to_string(&mut input)?;
    let numbers = |range: std::ops::Range<u32>| range.map(|n| format!("{n}\n")).collect::<String>();
    print(&numbers(0..1000))?;
    pause(Duration::try_from_secs_f64(input.trim().parse()?)?);
    print(&numbers(1000..2000))?;
    append_to_file(file, &format!("end {identity}\n"))?;
    Ok(0)
}

/// Returns the soft limit of file locks, which is the label of the service's processes.
fn process_label() -> Result<String, Box<dyn Error>> {
    let limits = std::fs::read_to_string("/proc/self/limits")?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max file locks"));
    Ok(line.and_then(|line| line.split_whitespace().next()).ok_or("no such limit")?.to_owned())
}

fn leave_stdin_unread(_: &[String]) -> Result<u8, Box<dyn Error>> {
    print("not read")
}

fn try_open_terminal(_: &[String]) -> Result<u8, Box<dyn Error>> {
    match OpenOptions::new().read(true).write(true).open("/dev/tty") {
        Ok(_) => print("a terminal"),
        Err(error) => print(&format!("no terminal: {error}")),
    }
}

fn argument(args: &[String], index: usize) -> &str {
    args.get(index).map_or("", String::as_str)
}

fn print(text: &str) -> Result<u8, Box<dyn Error>> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()?;
    Ok(0)
}

/// Appends with one write, so that lines of several agents do not mix.
fn append_to_file(file: &str, text: &str) -> io::Result<()> {
    OpenOptions::new().create(true).append(true).open(file)?.write_all(text.as_bytes())
}

#[expect(clippy::disallowed_methods, reason = "an agent that takes its time is the very part")]
fn pause(duration: Duration) {
    std::thread::sleep(duration);
}

#[expect(clippy::disallowed_methods, reason = "compared between processes, which share no clock")]
fn unix_nanoseconds() -> Result<u128, Box<dyn Error>> {
    Ok(SystemTime::now().duration_since(UNIX_EPOCH)?.as_nanos())
}
