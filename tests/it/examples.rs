//! The examples of the pages are run as they are printed, against a service on its shipped
//! configuration: every `sh` block after `<!-- run -->`, in the order of the page.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use crate::harness::{Setup, within_deadline};

/// The pages whose examples are run.
const PAGES: [&str; 2] = ["README.md", "docs/quick-start.md"];
const MARK: &str = "<!-- run -->";

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// The blocks of a page that are marked, and the lines that `# prints:` says they print.
fn marked_blocks(page: &str) -> Vec<String> {
    let text = fs::read_to_string(root().join(page)).unwrap();
    let marked = text.split(MARK).skip(1).map(|rest| {
        let block = rest.trim_start().strip_prefix("```sh\n");
        let block = block.unwrap_or_else(|| panic!("{page}: no sh block after a mark"));
        block.split("```").next().unwrap_or_default().to_owned()
    });
    marked.collect()
}

/// What the comments of a block promise.
fn expected_output(block: &str) -> Vec<&str> {
    block.lines().filter_map(|line| Some(line.split_once("# prints: ")?.1.trim())).collect()
}

#[tokio::test]
async fn the_examples_of_the_documentation_run_as_printed() {
    for page in PAGES {
        let blocks = marked_blocks(page);
        assert!(!blocks.is_empty(), "{page} has no example");
        let setup = Setup::from_config_file(&root().join("config/supervisor.toml"));
        let service = setup.start().await;
        let url = format!("http://{}", service.address);
        for block in blocks {
            let output =
                within_deadline("an example", run_block(&service.setup, &url, &block)).await;
            let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
            assert!(output.status.success(), "{page}:\n{block}\n{output:?}");
            for expected in expected_output(&block) {
                assert!(stdout.contains(expected), "{page} promises {expected:?}: {stdout}");
            }
        }
    }
}

/// In a folder of its own, with the program on the path, as a person at a terminal.
async fn run_block(setup: &Setup, url: &str, block: &str) -> Output {
    let program = Path::new(env!("CARGO_BIN_EXE_algonius"));
    let path = format!("{}:/usr/local/bin:/usr/bin:/bin", program.parent().unwrap().display());
    let folder = setup.test_folder().join("home");
    let mut shell = tokio::process::Command::new("sh");
    shell.args(["-e", "-c", block]).env_clear().envs(setup.env_variables()).current_dir(folder);
    shell.env("PATH", path).env("ALGONIUS_URL", url).kill_on_drop(true);
    shell.stdin(std::process::Stdio::null()).output().await.unwrap()
}

#[test]
fn example_blocks_and_their_expectations_are_found() {
    assert_eq!(expected_output("a  # prints: b c\nd # e\n"), ["b c"]);
}
