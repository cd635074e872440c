//! L: the number of programs per second that this machine starts, feeds, reads and reaps, by spawners that do nothing
//! else.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::report::report_folder;
use crate::role;
use crate::run::OperationTimes;

/// Spawners of one program, each a process of its own with one thread.
pub struct SpawnRateBaseline {
    /// Absolute path of the program, and its arguments.
    arguments: Vec<String>,
    input_bytes: usize,
}

impl SpawnRateBaseline {
    /// Returns the limit of `cat` with this many bytes of input.
    #[must_use]
    pub fn for_cat(bytes: usize) -> Self {
        Self { arguments: vec![find_program("cat").display().to_string()], input_bytes: bytes }
    }

    /// Returns the limit of `sleep` without input.
    #[must_use]
    pub fn for_sleep(time: Duration) -> Self {
        let arguments =
            vec![find_program("sleep").display().to_string(), time.as_secs_f64().to_string()];
        Self { arguments, input_bytes: 0 }
    }

    /// Measures this many spawners for this time, with `posix_spawn` from Rust.
    #[must_use]
    pub fn run(&self, spawner_count: usize, duration: Duration) -> OperationTimes {
        run_parallel(spawner_count, || {
            let mut command = role::role_command("spawner");
            self.add_arguments(&mut command, duration);
            command
        })
    }

    /// Measures the same from C; `None` if there is no compiler.
    #[must_use]
    pub fn run_in_c(&self, spawner_count: usize, duration: Duration) -> Option<OperationTimes> {
        let program = compile_spawner()?;
        Some(run_parallel(spawner_count, || {
            let mut command = Command::new(&program);
            self.add_arguments(&mut command, duration);
            command
        }))
    }

    fn add_arguments(&self, command: &mut Command, duration: Duration) {
        command
            .arg(duration.as_millis().to_string())
            .arg(self.input_bytes.to_string())
            .args(&self.arguments);
    }
}

/// Returns the number of spawners that can work at once.
#[must_use]
pub fn core_count() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

fn run_parallel(spawner_count: usize, build_command: impl Fn() -> Command) -> OperationTimes {
    let start_spawner = |_| build_command().stdout(Stdio::piped()).spawn().expect("a spawner");
    let children: Vec<_> = (0..spawner_count).map(start_spawner).collect();
    let runs: Vec<_> = children.into_iter().map(read_run).collect();
    let longest = runs.iter().map(|run| run.lasted).max().unwrap_or_default();
    OperationTimes::merge(&runs, longest)
}

fn read_run(spawner: Child) -> OperationTimes {
    let output = spawner.wait_with_output().expect("the end of a spawner");
    assert!(output.status.success(), "a spawner ended with {}", output.status);
    serde_json::from_slice(&output.stdout).expect("what a spawner measured")
}

/// Returns the absolute path of a program of the system.
///
/// # Panics
/// Panics if there is none.
#[must_use]
pub fn find_program(name: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut files = std::env::split_paths(&path).map(|folder| folder.join(name));
    files.find(|file| file.is_absolute() && file.is_file()).expect("a program on the PATH")
}

fn compile_spawner() -> Option<PathBuf> {
    std::fs::create_dir_all(report_folder()).ok()?;
    let program = report_folder().join("limit");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("limit.c");
    let mut compiler = Command::new("cc");
    let status = compiler.arg("-O2").arg("-o").arg(&program).arg(source).status();
    status.is_ok_and(|status| status.success()).then_some(program)
}
