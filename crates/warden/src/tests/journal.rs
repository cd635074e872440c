//! Tests of a journal without a process holder: its repair, its bounds, and a program that does not read.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::time::Duration;

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use tokio::time::timeout;

use super::killed_writers::{WriterProcess, attach_journal};
use crate::output::program_streams::create_journaled_stdin;
use crate::output::stdin_journal::StdinFds;
use crate::testing::WAIT_TIMEOUT;
use crate::{OutputMemory, StdinJournal, StdinJournalError};

fn memory() -> OutputMemory {
    OutputMemory::with_limit(1 << 30)
}

/// Returns a journal as the next writer gets it.
fn attach_as_next_writer(stdin_fds: &StdinFds) -> StdinJournal {
    attach_journal(stdin_fds, &memory().new_account()).unwrap()
}

fn journal_file(stdin_fds: &StdinFds) -> File {
    File::from(stdin_fds.journal.try_clone().unwrap())
}

/// Reads what the program would read without waiting.
fn read_available_bytes(pipe: &OwnedFd) -> Vec<u8> {
    fcntl(pipe, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).unwrap();
    let mut bytes = Vec::new();
    let end = File::from(pipe.try_clone().unwrap()).read_to_end(&mut bytes).unwrap_err();
    assert_eq!(end.kind(), io::ErrorKind::WouldBlock);
    bytes
}

#[tokio::test]
async fn a_torn_message_is_cut_and_delivery_continues() {
    for (torn_bytes, framing) in [(10, "\n"), (5_000, "\n"), (200_000, "")] {
        let (program_end, stdin_fds) = create_journaled_stdin().unwrap();
        let mut journal = attach_as_next_writer(&stdin_fds);
        let first = format!("Content-Length: 3{framing}");
        journal.write_message(first.as_bytes()).unwrap();
        drop(journal);
        // Complete but for its first byte, as a kill leaves it at the latest.
        journal_file(&stdin_fds)
            .write_all_at(&vec![b'\n'; torn_bytes], first.len() as u64 + 1)
            .unwrap();
        let mut journal = attach_as_next_writer(&stdin_fds);
        assert_eq!(journal_file(&stdin_fds).metadata().unwrap().len(), first.len() as u64);
        assert_eq!(journal.read_messages().unwrap(), first.as_bytes());
        journal.write_message(b"two\n").unwrap();
        let both = format!("{first}two\n").into_bytes();
        assert_eq!(
            (read_available_bytes(&program_end), journal.read_messages().unwrap()),
            (both.clone(), both)
        );
    }
}

#[tokio::test]
async fn an_undelivered_message_is_delivered_by_the_next_writer() {
    let (program_end, stdin_fds) = create_journaled_stdin().unwrap();
    let mut journal = attach_as_next_writer(&stdin_fds);
    let message: Vec<u8> = (0..300_000).map(|n| b'a' + u8::try_from(n % 26).unwrap()).collect();
    journal.write_message(&message).unwrap();
    assert!(!journal.is_drained());
    let delivered_bytes = journal.delivered_bytes();
    assert!(delivered_bytes > 0 && delivered_bytes < 300_000, "{delivered_bytes}");
    drop(journal);
    let mut journal = attach_as_next_writer(&stdin_fds);
    assert_eq!(journal.delivered_bytes(), delivered_bytes);
    let reading = tokio::task::spawn_blocking(move || {
        let mut bytes = vec![0; 300_000];
        File::from(program_end).read_exact(&mut bytes).map(|()| bytes)
    });
    // A future that is dropped in between loses nothing.
    while timeout(Duration::ZERO, journal.deliver()).await.is_err() {}
    timeout(WAIT_TIMEOUT, journal.deliver()).await.unwrap().unwrap();
    assert!(journal.is_drained());
    assert!(reading.await.unwrap().unwrap() == message);
    assert!(journal.read_messages().unwrap() == message);
}

#[tokio::test]
async fn an_interrupted_shrink_is_repaired() {
    let (program_end, stdin_fds) = create_journaled_stdin().unwrap();
    let mut journal = attach_as_next_writer(&stdin_fds);
    journal.write_message(b"a turn\n").unwrap();
    assert_eq!(read_available_bytes(&program_end), b"a turn\n");
    drop(journal);
    journal_file(&stdin_fds).set_len(0).unwrap(); // The first half of a shrink.
    let mut journal = attach_as_next_writer(&stdin_fds);
    assert_eq!((journal.delivered_bytes(), journal.read_messages().unwrap()), (0, Vec::new()));
    journal.write_message(b"next\n").unwrap();
    assert_eq!(
        (read_available_bytes(&program_end), journal.read_messages().unwrap()),
        (b"next\n".to_vec(), b"next\n".into())
    );
}

#[tokio::test]
async fn an_offset_beyond_the_end_is_corrupt() {
    let (program_end, stdin_fds) = create_journaled_stdin().unwrap();
    attach_as_next_writer(&stdin_fds).write_message(b"a turn\n").unwrap();
    journal_file(&stdin_fds).set_len(3).unwrap();
    let error = attach_journal(&stdin_fds, &memory().new_account()).unwrap_err();
    assert!(
        matches!(error, StdinJournalError::JournalCorrupt { size: 3, delivered: 7 }),
        "{error}"
    );
    assert_eq!(io::Error::from(error).kind(), io::ErrorKind::InvalidData);
    drop(program_end);
}

#[tokio::test]
async fn a_journal_shrinks_only_after_everything_is_read() {
    let ((program_end, stdin_fds), memory) = (create_journaled_stdin().unwrap(), memory());
    let mut journal = attach_journal(&stdin_fds, &memory.new_account()).unwrap();
    journal.write_message(b"first\n").unwrap();
    assert!(!journal.clear_if_read().unwrap(), "the program has not read it");
    assert_eq!(memory.usage().used_bytes, 6);
    assert_eq!(read_available_bytes(&program_end), b"first\n");
    assert!(journal.clear_if_read().unwrap());
    assert_eq!(memory.usage().used_bytes, 0);
    assert_eq!((journal.delivered_bytes(), journal.read_messages().unwrap()), (0, Vec::new()));
    journal.write_message(&vec![b'x'; 300_000]).unwrap();
    read_available_bytes(&program_end);
    assert!(!journal.clear_if_read().unwrap(), "it is not delivered");
    drop(journal);
    assert_eq!(attach_as_next_writer(&stdin_fds).read_messages().unwrap().len(), 300_000);
}

#[tokio::test]
async fn a_full_journal_refuses_a_message_and_continues() {
    let (program_end, stdin_fds) = create_journaled_stdin().unwrap();
    let mut journal = attach_as_next_writer(&stdin_fds).with_max_bytes(10);
    journal.write_message(b"12345\n").unwrap();
    let full_error = journal.write_message(b"6789\n").unwrap_err();
    assert!(matches!(full_error, StdinJournalError::JournalFull { limit: 10 }), "{full_error}");
    for invalid in [&b""[..], b"a\0b\n", b"\0"] {
        let refused = journal.write_message(invalid).unwrap_err();
        assert!(matches!(refused, StdinJournalError::InvalidMessage), "{refused}");
    }
    journal.write_message(b"678\n").unwrap();
    assert_eq!(read_available_bytes(&program_end), b"12345\n678\n");
    assert!(journal.clear_if_read().unwrap());
    journal.write_message(b"again\n").unwrap();
}

#[tokio::test]
async fn a_closed_input_is_an_error_for_every_writer() {
    let (program_end, stdin_fds) = create_journaled_stdin().unwrap();
    let mut journal = attach_as_next_writer(&stdin_fds);
    journal.write_message(&vec![b'x'; 300_000]).unwrap();
    drop(program_end);
    assert!(matches!(journal.deliver().await, Err(StdinJournalError::InputClosed)));
    assert!(matches!(journal.write_message(b"more\n"), Err(StdinJournalError::InputClosed)));
    drop(journal);
    let mut journal = attach_as_next_writer(&stdin_fds);
    let closed_error = journal.write_message(b"more\n").unwrap_err();
    assert_eq!(io::Error::from(closed_error).kind(), io::ErrorKind::BrokenPipe);
}

/// Test in a process of its own, because the disposition of a signal is that of the whole process.
#[tokio::test]
async fn a_closed_input_sends_no_signal() {
    let (program_end, stdin_fds) = create_journaled_stdin().unwrap();
    drop(program_end);
    let mut writer = WriterProcess::start(&stdin_fds, WriterProcess::WRITE_WITHOUT_READER, 0);
    assert!(writer.child.wait().unwrap().success());
}
