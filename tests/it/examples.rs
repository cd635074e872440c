//! Examples of the pages, run against the shipped configuration in the order of the page. Programs, folders and models
//! that a test does not have are replaced.
//!
//! A mark before a block states its use: `<!-- run -->` for commands, `<!-- run at a terminal, answer: WORD -->` for a
//! command with a question, and `<!-- config -->` for a part of the configuration, which the test adds to the shipped
//! one.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::json;

use crate::harness::mock_model::{MockModel, final_answer_turn, turn_with_calls};
use crate::harness::{ServiceProcess, Setup, within_deadline};
use crate::terminal::Terminal;

const CONFIG_MARK: &str = "config";
const RUN_MARK: &str = "run";
const TERMINAL_MARK: &str = "run at a terminal, answer: ";

/// Folder in the examples that every reader replaces by an own one.
const EXAMPLE_FOLDER: &str = "/srv/checkouts/shop";
/// Provider of models in the examples.
const EXAMPLE_PROVIDER: &str = "http://127.0.0.1:11434/v1";
/// Message of the examples for which an interactive agent calls a tool, and the instruction to the simulated agent.
const EXAMPLE_PROMPT: (&str, &str) =
    ("Run the tests.", "Run the tests. [[tool Bash kind=execute command=make]] [[say done]]");
/// Simulated interactive agent, which the examples call by the name of a real one.
const INTERACTIVE_AGENT: &str =
    "#!/bin/sh\nexport FAKE_ACP_MODES=default FAKE_ACP_ASK_MODES=default\nexec AGENT acp\n";

/// Block of a page, with its mark.
#[derive(Debug, PartialEq)]
struct Example {
    mark: String,
    text: String,
}

fn repository_root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Returns the marked blocks of a page.
fn parse_examples(page: &str, text: &str) -> Vec<Example> {
    let marked = text.split("\n<!-- ").skip(1).map(|rest| {
        let (mark, rest) = rest.split_once(" -->\n").unwrap_or_else(|| panic!("{page}: {rest}"));
        let block = rest.strip_prefix("```").and_then(|block| block.split_once('\n'));
        let (_, block) = block.unwrap_or_else(|| panic!("{page}: no block after `{mark}`"));
        let text = block.split("```").next().unwrap_or_default().to_owned();
        Example { mark: mark.to_owned(), text }
    });
    marked.collect()
}

/// Returns the outputs that the comments of a block promise.
fn expected_output(block: &str) -> Vec<&str> {
    block.lines().filter_map(|line| Some(line.split_once("# prints: ")?.1.trim())).collect()
}

/// Service of a page, with simulations of the programs and of the model that its examples use.
struct ExampleService {
    service: ServiceProcess,
    url: String,
    _model: MockModel,
}

impl ExampleService {
    async fn start(examples: &[Example]) -> Self {
        let model = MockModel::start(&[]);
        model
            .set_script(&[turn_with_calls(&[("now", json!({}))]), final_answer_turn("Saturday")])
            .await;
        let mut config =
            fs::read_to_string(repository_root().join("config/supervisor.toml")).unwrap();
        let config_examples = examples.iter().filter(|example| example.mark == CONFIG_MARK);
        config_examples.for_each(|part| config.push_str(&part.text));
        let config = config
            .replace(EXAMPLE_FOLDER, "HERE/shop")
            .replace(EXAMPLE_PROVIDER, &model.base_url());
        let fake_agent = algonius_fakes::fake_agent_path(&std::env::current_exe().unwrap());
        let agent = INTERACTIVE_AGENT.replace("AGENT", fake_agent.to_str().unwrap());
        let setup = Setup::from_config_text(&config).with_executable("gemini", &agent);
        fs::create_dir(setup.test_folder().join("shop")).unwrap();
        let path = format!("{}:/usr/local/bin:/usr/bin:/bin", setup.test_folder().display());
        let service = setup.env("PATH", &path).start().await;
        let url = format!("http://{}", service.address);
        Self { service, url, _model: model }
    }

    async fn run(&self, example: &Example) {
        let Example { mark, text } = example;
        if mark == RUN_MARK {
            let output = within_deadline("an example", self.run_block(text)).await;
            let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
            assert!(output.status.success(), "{text}\n{output:?}");
            for expected in expected_output(text) {
                assert!(stdout.contains(expected), "{text}\n{expected:?} is promised: {stdout}");
            }
        } else if let Some(answer) = mark.strip_prefix(TERMINAL_MARK) {
            self.answer_at_terminal(text, answer).await;
        } else {
            assert_eq!(mark, CONFIG_MARK, "the use of a block is unknown");
        }
    }

    /// Runs the block in a folder of its own, with the program on the path, like a person does.
    async fn run_block(&self, block: &str) -> Output {
        let setup = &self.service.setup;
        let program = Path::new(env!("CARGO_BIN_EXE_algonius"));
        let path = format!("{}:/usr/local/bin:/usr/bin:/bin", program.parent().unwrap().display());
        let mut shell = tokio::process::Command::new("sh");
        shell.args(["-e", "-c", block]).env_clear().envs(setup.env_variables());
        shell.current_dir(setup.test_folder().join("home"));
        shell.env("PATH", path).env("ALGONIUS_URL", &self.url).kill_on_drop(true);
        shell.stdin(std::process::Stdio::null()).output().await.unwrap()
    }

    /// Runs the command of the block at a terminal, and answers its question.
    async fn answer_at_terminal(&self, block: &str, answer: &str) {
        let (prompt, instruction) = EXAMPLE_PROMPT;
        assert_eq!(block.lines().count(), 1, "a terminal runs one command: {block}");
        let command = block.split(" #").next().unwrap();
        let words = command.strip_prefix("algonius ").unwrap().replace(prompt, instruction);
        let mut terminal = Terminal::start(&self.service, words.trim_end());
        for question in expected_output(block) {
            terminal.wait_for_text(question).await;
        }
        terminal.send_keys(&format!("{answer}\n")).await;
        let (code, screen) = terminal.wait_for_exit().await;
        assert_eq!((code, screen.last().unwrap().as_str()), (Some(0), "done"), "{screen:#?}");
    }
}

async fn run_examples(page: &str, marks: &[&str]) {
    let text = fs::read_to_string(repository_root().join(page)).unwrap();
    let examples = parse_examples(page, &text);
    for mark in marks {
        assert!(examples.iter().any(|example| example.mark.starts_with(mark)), "{page}: {mark}");
    }
    let service = ExampleService::start(&examples).await;
    for example in &examples {
        service.run(example).await;
    }
}

#[tokio::test]
async fn the_examples_of_the_readme_run_as_printed() {
    run_examples("README.md", &[CONFIG_MARK, RUN_MARK, TERMINAL_MARK]).await;
}

#[tokio::test]
async fn the_examples_of_the_quick_start_run_as_printed() {
    run_examples("docs/quick-start.md", &[RUN_MARK]).await;
}

#[test]
fn example_blocks_and_their_expectations_are_found() {
    let page =
        "text\n<!-- run -->\n```sh\na  # prints: b c\n```\n\n<!-- config -->\n```toml\n[d]\n```\n";
    let example = |mark: &str, text: &str| Example { mark: mark.to_owned(), text: text.to_owned() };
    let expected = [example("run", "a  # prints: b c\n"), example("config", "[d]\n")];
    assert_eq!(parse_examples("page", page), expected);
    assert_eq!(expected_output("a  # prints: b c\nd # e\n"), ["b c"]);
}
