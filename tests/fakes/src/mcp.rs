//! Scripted MCP server on standard input and output.
//!
//! | Option | Effect |
//! |---|---|
//! | `--old` | speaks only the generation with a handshake |
//! | `--noise` | prints lines that are no messages before each answer |
//! | `--silent` | never answers |
//! | `--start FILE` | appends a line to a file when it starts |
//! | `--stubborn` | ignores SIGTERM and the end of its input |
//! | `--end FILE` | writes to a file when its input ends |
//! | `--fail` | writes its environment to standard error and exits with 3 |
//!
//! | Tool | Answer |
//! |---|---|
//! | `echo {text}` | the text |
//! | `count` | process id, and the number of calls of this process |
//! | `cancelled` | number of cancelled calls |
//! | `env {name}` | value of a variable |
//! | `write {path, text}` | writes a file; the error if it cannot |
//! | `append {path, text}` | appends a line to a file |
//! | `structured` | structured content with a text |
//! | `refuse {text}` | a result that is an error |
//! | `reject` | an error of JSON-RPC |
//! | `hang` | none |
//! | `mark {path}` | none: appends a line to a file |
//! | `grow` | none: takes 300 MB |
//! | `crash` | none: writes to standard error and exits with 7 |
//! | `long` | 2 MiB of text |
//! | `many` | 200,000 values |
//! | `flood` | an endless text in one message |

use std::error::Error;
use std::io::{self, BufRead as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::{env, fs, process};

use serde_json::{Value, json};

/// Version without a handshake.
const VERSION_WITHOUT_HANDSHAKE: &str = "2026-07-28";

/// Version with a handshake.
const VERSION_WITH_HANDSHAKE: &str = "2025-11-25";

/// Names of the tools, with the names of their arguments.
const TOOLS: [(&str, &[&str]); 16] = [
    ("echo", &["text"]),
    ("count", &[]),
    ("cancelled", &[]),
    ("env", &["name"]),
    ("write", &["path", "text"]),
    ("append", &["path", "text"]),
    ("structured", &[]),
    ("refuse", &["text"]),
    ("reject", &[]),
    ("hang", &[]),
    ("mark", &["path"]),
    ("grow", &[]),
    ("crash", &[]),
    ("flood", &[]),
    ("long", &[]),
    ("many", &[]),
];

/// Role `mcp`.
pub(crate) fn serve(args: &[String]) -> Result<u8, Box<dyn Error>> {
    let has_option = |option: &str| args.iter().any(|argument| argument == option);
    if has_option("--fail") {
        let variables: Vec<_> =
            env::vars().map(|(name, value)| format!("{name}={value}")).collect();
        write_stderr_line(&format!("cannot start: {}", variables.join(" ")))?;
        return Ok(3);
    }
    let option_value = |option: &str| {
        let index = args.iter().position(|argument| argument == option)?;
        args.get(index + 1)
    };
    if let Some(file) = option_value("--start") {
        append_line(file, "started")?;
    }
    let mut server = FakeMcpServer {
        requires_handshake: has_option("--old"),
        is_noisy: has_option("--noise"),
        call_count: 0,
        cancelled_call_count: 0,
        held_memory: Vec::new(),
    };
    for line in io::stdin().lock().lines() {
        let message: Value = serde_json::from_str(&line?)?;
        if has_option("--silent") {
            continue;
        }
        if let Some(code) = server.handle_message(&message)? {
            return Ok(code);
        }
    }
    if let Some(file) = option_value("--end") {
        fs::write(file, "ended\n")?;
    }
    if has_option("--stubborn") {
        // A shell can ignore a signal without unsafe code.
        return Err(process::Command::new("sh")
            .args(["-c", "trap '' TERM; sleep 600"])
            .exec()
            .into());
    }
    Ok(0)
}

fn append_line(file: &str, line: &str) -> io::Result<()> {
    let mut file = fs::OpenOptions::new().create(true).append(true).open(file)?;
    writeln!(file, "{line}")
}

fn write_stderr_line(text: &str) -> io::Result<()> {
    writeln!(io::stderr(), "{text}")
}

/// State of the server.
struct FakeMcpServer {
    requires_handshake: bool,
    is_noisy: bool,
    call_count: u32,
    cancelled_call_count: u32,
    /// Memory that no call uses.
    held_memory: Vec<u8>,
}

impl FakeMcpServer {
    /// Handles a message; returns an exit code if the server ends.
    fn handle_message(&mut self, message: &Value) -> Result<Option<u8>, Box<dyn Error>> {
        let params = &message["params"];
        let answer = match message["method"].as_str().unwrap_or_default() {
            "server/discover" if !self.requires_handshake => Ok(json!({
                "resultType": "complete", "supportedVersions": [VERSION_WITHOUT_HANDSHAKE],
                "capabilities": {"tools": {}}, "ttlMs": 0, "cacheScope": "private",
            })),
            "initialize" if self.requires_handshake => Ok(json!({
                "protocolVersion": VERSION_WITH_HANDSHAKE, "capabilities": {"tools": {}},
                "serverInfo": {"name": "fake", "version": "1"},
            })),
            "tools/list" => Ok(tool_list()),
            "tools/call" => {
                self.call_count += 1;
                match params["name"].as_str().unwrap_or_default() {
                    "hang" => return Ok(None),
                    "mark" => {
                        let path = params.pointer("/arguments/path").and_then(Value::as_str);
                        append_line(path.unwrap_or_default(), "called")?;
                        return Ok(None);
                    }
                    "grow" => {
                        self.held_memory = vec![1; 300_000_000];
                        return Ok(None);
                    }
                    "crash" => {
                        write_stderr_line("the store is damaged")?;
                        return Ok(Some(7));
                    }
                    "flood" => write_endless_answer(message)?,
                    "reject" => Err((-32_602, "not possible here".to_owned())),
                    name => Ok(self.run_tool(name, &params["arguments"])),
                }
            }
            "notifications/cancelled" => {
                self.cancelled_call_count += 1;
                return Ok(None);
            }
            method if method.starts_with("notifications/") => return Ok(None),
            method => Err((-32_601, format!("unknown method {method}"))),
        };
        let id = &message["id"];
        let answer = match answer {
            Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
            Err((code, text)) => {
                json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": text}})
            }
        };
        if self.is_noisy {
            print_line("Server is ready.\n{\"jsonrpc\":\n[]")?;
        }
        print_line(&answer.to_string())?;
        Ok(None)
    }

    fn run_tool(&self, name: &str, arguments: &Value) -> Value {
        let argument = |name: &str| arguments[name].as_str().unwrap_or_default();
        let (text, is_error) = match name {
            "echo" => (argument("text").to_owned(), false),
            "count" => (format!("{} {}", process::id(), self.call_count), false),
            "cancelled" => (self.cancelled_call_count.to_string(), false),
            "env" => (env::var(argument("name")).unwrap_or_default(), false),
            "write" => match fs::write(argument("path"), argument("text")) {
                Ok(()) => ("written".to_owned(), false),
                Err(error) => (error.to_string(), true),
            },
            "many" => {
                return json!({"resultType": "complete", "structuredContent": vec![0; 200_000]});
            }
            "append" => match append_line(argument("path"), argument("text")) {
                Ok(()) => ("appended".to_owned(), false),
                Err(error) => (error.to_string(), true),
            },
            "structured" => {
                let content = json!([{"type": "text", "text": "ignored"}]);
                return json!({
                    "resultType": "complete", "content": content, "structuredContent": {"n": [1, 2]},
                });
            }
            "refuse" => (argument("text").to_owned(), true),
            "long" => ("x".repeat(2 << 20), false),
            name => (format!("no tool {name}"), true),
        };
        let content = json!([{"type": "text", "text": text}]);
        json!({"resultType": "complete", "content": content, "isError": is_error})
    }
}

/// Returns the list of the tools.
fn tool_list() -> Value {
    let tool = |(name, arguments): &(&str, &[&str])| {
        let properties: serde_json::Map<_, _> = arguments
            .iter()
            .map(|argument| ((*argument).to_owned(), json!({"type": "string"})))
            .collect();
        // A reader does not see the last character.
        json!({
            "name": name, "description": format!("Tool {name}.\u{e0041}{}", env::var("TOOL_KEY").unwrap_or_default()),
            "inputSchema": {"type": "object", "properties": properties, "required": arguments},
        })
    };
    let tools: Vec<_> = TOOLS.iter().map(tool).collect();
    json!({"resultType": "complete", "tools": tools, "ttlMs": 0, "cacheScope": "private"})
}

fn print_line(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "{text}")?;
    stdout.flush()
}

/// Writes an answer that never ends. Returns the error of the closed pipe.
fn write_endless_answer(message: &Value) -> Result<Result<Value, (i32, String)>, Box<dyn Error>> {
    let mut stdout = io::stdout().lock();
    write!(stdout, "{{\"jsonrpc\":\"2.0\",\"id\":{},\"result\":{{\"content\":\"", message["id"])?;
    let block = [b'x'; 64 << 10];
    loop {
        stdout.write_all(&block)?;
    }
}
