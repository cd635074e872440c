//! Test of a journal whose writer is killed again and again.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use nix::sys::socket::{SockType, getsockopt, sockopt};
use nix::unistd::{Whence, lseek};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::time::{sleep, timeout};

use crate::output::memory_account::MemoryAccount;
use crate::output::program_streams::create_journaled_stdin;
use crate::output::stdin_journal::{StdinFds, StdinState};
use crate::process::signal::reset_signal_handlers;
use crate::protocol::packet::{Packet, receive_packet, register_fd, send_packet, socket_pair};
use crate::testing::WAIT_TIMEOUT;
use crate::{OutputMemory, StdinJournal, StdinJournalError};

const KILL_COUNT: u32 = 400;

/// Returns the journal as the next writer gets it.
pub(super) fn attach_journal(
    stdin_fds: &StdinFds,
    account: &MemoryAccount,
) -> Result<StdinJournal, StdinJournalError> {
    let state = StdinState::new_shared(stdin_fds.clone(), account).try_lock_owned().unwrap();
    Ok(StdinJournal::attach(state, Box::new(|| {}))?.unwrap())
}

/// Process that writes to a journal: this test program.
pub(super) struct WriterProcess {
    pub(super) child: Child,
    /// Receives the numbers of the lines that precede an emptied journal.
    report_socket: AsyncFd<Arc<OwnedFd>>,
}

impl WriterProcess {
    /// Writes lines until it is killed.
    const WRITE_FOREVER: u8 = 0;
    /// Writes one line.
    const WRITE_ONE_LINE: u8 = 1;
    /// Writes to a program that does not read, with the default action of every signal.
    pub(super) const WRITE_WITHOUT_READER: u8 = 2;

    /// Starts a writer, whose next line has at least this number.
    pub(super) fn start(stdin_fds: &StdinFds, mode: u8, min_line_number: u64) -> Self {
        let (test_end, child_end) = socket_pair().unwrap();
        let frame = [&[mode][..], &min_line_number.to_le_bytes()].concat();
        send_packet(
            &test_end,
            &frame,
            &[stdin_fds.pipe.as_raw_fd(), stdin_fds.journal.as_raw_fd()],
        )
        .unwrap();
        let mut command = Command::new("/proc/self/exe");
        command.args(["tests::killed_writers::writer", "--exact", "--nocapture"]);
        command.stdin(Stdio::from(child_end)).stdout(Stdio::null());
        let report_socket = register_fd(Arc::new(test_end), Interest::READABLE).unwrap();
        Self { child: command.spawn().unwrap(), report_socket }
    }

    /// Returns its next report; `None` if it has ended.
    async fn next_report(&self) -> Option<u64> {
        let report = self.report_socket.async_io(Interest::READABLE, receive_packet);
        let packet = timeout(WAIT_TIMEOUT, report).await.unwrap().unwrap()?;
        Some(u64::from_le_bytes(packet.frame.try_into().unwrap()))
    }

    /// Kills it, and returns its last report.
    async fn kill_and_drain_reports(mut self, mut last_report: u64) -> u64 {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        while let Some(report) = self.next_report().await {
            last_report = report;
        }
        last_report
    }
}

/// Entry point of a writer, not a test.
#[test]
fn writer() {
    if !matches!(getsockopt(&io::stdin(), sockopt::SockType), Ok(SockType::SeqPacket)) {
        return;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(run_writer());
}

async fn run_writer() {
    let socket = io::stdin().as_fd().try_clone_to_owned().unwrap();
    let Packet { frame, fds } = receive_packet(&socket).unwrap().unwrap();
    let (mode, number_bytes) = frame.split_first().unwrap();
    let [pipe, journal] = <[OwnedFd; 2]>::try_from(fds).unwrap().map(Arc::new);
    let account = OutputMemory::with_limit(1 << 30).new_account();
    if *mode == WriterProcess::WRITE_WITHOUT_READER {
        reset_signal_handlers();
    }
    let mut journal = attach_journal(&StdinFds { pipe, journal }, &account).unwrap();
    if *mode == WriterProcess::WRITE_WITHOUT_READER {
        assert!(matches!(journal.write_message(b"a\n"), Err(StdinJournalError::InputClosed)));
        assert!(matches!(journal.deliver().await, Err(StdinJournalError::InputClosed)));
        return;
    }
    let min_line_number = u64::from_le_bytes(number_bytes.try_into().unwrap());
    let mut number = next_number(&journal.read_messages().unwrap()).unwrap_or(min_line_number);
    send_packet(&socket, &number.to_le_bytes(), &[]).unwrap();
    loop {
        journal.write_message(&build_line(number)).unwrap();
        number += 1;
        // Sometimes several lines wait for the pipe.
        if number.is_multiple_of(8) || *mode == WriterProcess::WRITE_ONE_LINE {
            journal.deliver().await.unwrap();
        }
        if *mode == WriterProcess::WRITE_ONE_LINE {
            return send_packet(&socket, &number.to_le_bytes(), &[]).unwrap();
        }
        // An empty journal does not tell the number of the next line.
        if number.is_multiple_of(32) && send_packet(&socket, &number.to_le_bytes(), &[]).is_ok() {
            clear_journal(&mut journal).await;
        }
    }
}

/// Empties the journal if the program reads everything soon.
async fn clear_journal(journal: &mut StdinJournal) {
    for _ in 0..1000 {
        if journal.clear_if_read().unwrap() {
            return;
        }
        journal.deliver().await.unwrap();
        tokio::task::yield_now().await;
    }
}

/// Returns the number of the line after the last one.
fn next_number(messages: &[u8]) -> Option<u64> {
    let last = messages.strip_suffix(b"\n")?.rsplit(|byte| *byte == b'\n').next()?;
    let number = std::str::from_utf8(&last[..8]).unwrap();
    Some(number.parse::<u64>().unwrap() + 1)
}

/// Returns a line of 20 bytes to 200 KB.
fn build_line(number: u64) -> Vec<u8> {
    let length = match number % 10 {
        0 => 200_000,
        1 => 70_000 + number % 997,
        2..5 => 3_000 + number * 31 % 2_503,
        _ => 20 + number % 100,
    };
    let mut line = format!("{number:08} {length:06} ").into_bytes();
    let letter = b'a' + u8::try_from(number % 23).unwrap();
    line.resize(usize::try_from(length).unwrap() - 1, letter);
    line.push(b'\n');
    line
}

/// Compares all lines with the expected ones; returns their number, or the first wrong line.
fn spawn_verifier(output: ChildStdout) -> JoinHandle<Result<u64, String>> {
    std::thread::spawn(move || {
        let mut lines = BufReader::with_capacity(1 << 20, output);
        for number in 0.. {
            let mut line = Vec::new();
            lines.read_until(b'\n', &mut line).unwrap();
            if line.is_empty() {
                return Ok(number);
            }
            if line != build_line(number) {
                let (start, length) = (&line[..line.len().min(40)], line.len());
                let start = String::from_utf8_lossy(start);
                return Err(format!("line {number} has {length} bytes and starts with {start:?}"));
            }
        }
        unreachable!("numbers do not end");
    })
}

/// Returns true if the killed writer left an incomplete message.
fn has_torn_message(file: &File) -> bool {
    let (size, delivered) = (file.metadata().unwrap().len(), lseek(file, 0, Whence::SeekCur));
    let delivered = delivered.unwrap().unsigned_abs();
    let mut rest = vec![0; usize::try_from(size.saturating_sub(delivered)).unwrap()];
    file.read_exact_at(&mut rest, delivered).unwrap();
    rest.contains(&0)
}

#[tokio::test]
async fn no_line_is_lost_or_doubled_by_kills_of_its_writer() {
    let (program_end, stdin_fds) = create_journaled_stdin().unwrap();
    let mut reader = Command::new("cat");
    reader.stdin(Stdio::from(program_end)).stdout(Stdio::piped());
    let mut program = reader.spawn().unwrap();
    drop(reader); // It has the read end too.
    let verifier = spawn_verifier(program.stdout.take().unwrap());
    let journal = File::from(stdin_fds.journal.try_clone().unwrap());
    let (mut number, mut torn_count, mut random) = (0, 0, 1_u32);
    for kill in 0..KILL_COUNT {
        let writer = WriterProcess::start(&stdin_fds, WriterProcess::WRITE_FOREVER, number);
        // Every eighth writer is killed before it reports, most of them while they start.
        if kill % 8 > 0 {
            number = writer.next_report().await.unwrap();
        }
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        // The moment of the kill is the input of this test.
        sleep(Duration::from_micros(u64::from(random >> 18))).await;
        number = writer.kill_and_drain_reports(number).await;
        torn_count += u32::from(has_torn_message(&journal));
        if verifier.is_finished() {
            break; // A line was wrong.
        }
    }
    if !verifier.is_finished() {
        let mut writer = WriterProcess::start(&stdin_fds, WriterProcess::WRITE_ONE_LINE, number);
        while let Some(report) = writer.next_report().await {
            number = report;
        }
        assert!(writer.child.wait().unwrap().success());
    }
    drop(stdin_fds);
    assert_eq!(verifier.join().unwrap(), Ok(number));
    assert!(program.wait().unwrap().success());
    assert!(torn_count > 0, "no kill of {KILL_COUNT} came during a write of {number} lines");
    println!("{number} lines, {torn_count} torn of {KILL_COUNT}");
}
