//! Minimum of every spawner: `posix_spawn` of an absolute path, three pipes, write, read, wait.

use std::ffi::{CStr, CString};
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::time::Duration;

use nix::fcntl::OFlag;
use nix::spawn::{PosixSpawnAttr, PosixSpawnFileActions, posix_spawn};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::pipe2;
use tokio::time::Instant;

use crate::run::{OperationTimes, nanoseconds};

/// Program with its arguments and its input.
pub struct SpawnTarget {
    arguments: Vec<CString>,
    input: Vec<u8>,
}

impl SpawnTarget {
    /// Returns the program with this absolute path, which reads this many bytes and writes as many.
    ///
    /// # Panics
    /// Panics if an argument contains a zero byte.
    #[must_use]
    pub fn new(arguments: &[String], bytes: usize) -> Self {
        let arguments =
            arguments.iter().map(|argument| CString::new(argument.as_str()).expect("a word"));
        Self { arguments: arguments.collect(), input: plain_text(bytes).into_bytes() }
    }

    /// Runs the program once.
    ///
    /// # Panics
    /// Panics if the program cannot be started, does not echo its input, or fails.
    pub fn run_once(&self) {
        let pipe = || pipe2(OFlag::O_CLOEXEC).expect("a pipe");
        let (input, output, errors) = (pipe(), pipe(), pipe());
        let child = self.spawn([&input.0, &output.1, &errors.1]);
        drop((input.0, output.1, errors.1));
        File::from(input.1).write_all(&self.input).expect("a reader");
        let mut echoed = Vec::with_capacity(self.input.len() + 1);
        File::from(output.0).read_to_end(&mut echoed).expect("an answer");
        assert_eq!(waitpid(child, None), Ok(WaitStatus::Exited(child, 0)));
        assert_eq!(echoed.len(), self.input.len());
    }

    fn spawn(&self, pipe_ends: [&OwnedFd; 3]) -> nix::unistd::Pid {
        let mut file_actions = PosixSpawnFileActions::init().expect("a list");
        for (pipe_end, descriptor) in pipe_ends.into_iter().zip(0..) {
            file_actions.add_dup2(pipe_end.as_raw_fd(), descriptor).expect("a place");
        }
        let attributes = PosixSpawnAttr::init().expect("attributes");
        let path = self.arguments.first().expect("a program").as_c_str();
        let env: [&CStr; 1] = [c"PATH=/usr/bin:/bin"];
        posix_spawn(path, &file_actions, &attributes, &self.arguments, &env).expect("a child")
    }

    /// Runs the program repeatedly for this time.
    #[must_use]
    pub fn run_repeatedly(&self, duration: Duration) -> OperationTimes {
        let (run_started_at, mut times) = (Instant::now(), Vec::new());
        while run_started_at.elapsed() < duration {
            let program_started_at = Instant::now();
            self.run_once();
            times.push(nanoseconds(program_started_at.elapsed()));
        }
        OperationTimes::new(times, run_started_at.elapsed())
    }
}

/// Returns plain words of this many bytes, of which nothing is redacted.
#[must_use]
pub fn plain_text(bytes: usize) -> String {
    let line = "a line of plain words and no more than that, thirteen and a few.\n";
    line.chars().cycle().take(bytes).collect()
}
