//! Frames between supervisor and process holder: one frame in each packet of their socket.
//!
//! The running process holder may be older than the supervisor: frames are only ever added, and each side sends its
//! version first.

#[cfg(test)]
mod tests;

use std::fmt;

use super::codec::{FrameReader, FrameWriter};
use super::launch_frame::{HoldTerms, LaunchFlags, LaunchSpec};

/// Version of these frames. Version 2 adds [`HolderOrder::StoreSecret`] and [`HolderEvent::StoredSecret`]. From version
/// 3 on both sides prove a key before anything else at a named socket: [`HolderOrder::Challenge`],
/// [`HolderEvent::ChallengeResponse`], [`HolderOrder::Authenticate`]. Version 4 adds journaled standard input:
/// [`LaunchFlags::has_stdin_journal`], its two descriptors, and [`HolderOrder::CloseStdin`]. Version 5 adds
/// [`LaunchFlags::network`]. Version 6 permits a second [`HolderOrder::Hello`] with another folder.
pub(crate) const FRAME_VERSION: u64 = 6;

/// First version whose supervisors know [`HolderEvent::StoredSecret`].
pub(crate) const MIN_SECRET_VERSION: u64 = 2;

/// First version whose process holders hold a journaled standard input, and whose supervisors continue it.
pub(crate) const MIN_STDIN_JOURNAL_VERSION: u64 = 4;

/// First version whose process holders restrict the network of a program.
pub(crate) const MIN_NETWORK_FILTER_VERSION: u64 = 5;

/// First version whose process holders open another socket in another folder.
pub(crate) const MIN_SOCKET_RENEWAL_VERSION: u64 = 6;

/// Greatest length of a frame in bytes; a longer spec travels in a memory file.
pub(crate) const MAX_FRAME_BYTES: usize = 64 * 1024;

/// Bytes that are in memory only.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct SecretValue(pub(crate) Vec<u8>);

impl fmt::Debug for SecretValue {
    /// Hides the bytes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// Order from the supervisor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum HolderOrder {
    /// First order. It has the milliseconds for which the process holder waits for the next supervisor, the name of the
    /// socket for that, and the key that the next supervisor proves there; name and key are empty in the `Hello` of a
    /// later supervisor. The packet contains the folder of that socket. A supervisor repeats the order when it has
    /// created that folder again.
    Hello { version: u64, reattach_grace_ms: u64, socket_name: Vec<u8>, key: SecretValue },
    /// Starts a program. The packet contains its three streams, the supervisor's two pipe ends, two memory files, and,
    /// if present, the ruleset, the entry file of the control group, the write end of standard input with its journal,
    /// and the file of the spec.
    Launch { hold_terms: HoldTerms, spec: Option<LaunchSpec>, flags: LaunchFlags },
    /// Sends SIGTERM to all processes of the program.
    Terminate { program_number: u64 },
    /// Kills all processes of the program; the answer follows when none is left.
    Kill { program_number: u64 },
    /// Forgets the program.
    Release { program_number: u64 },
    /// Closes the program's standard input. Its journal stays for the next supervisor.
    CloseStdin { program_number: u64 },
    /// Lists the held programs; from then on the supervisor reads their output.
    List,
    /// Kills everything and ends.
    Shutdown,
    /// Holds these bytes for the next supervisor, in memory only.
    StoreSecret { secret: SecretValue },
    /// First order at a named socket.
    Challenge { supervisor_nonce: Vec<u8> },
    /// Answer to [`HolderEvent::ChallengeResponse`].
    Authenticate { proof: Vec<u8> },
}

/// Event from the process holder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum HolderEvent {
    /// First event.
    Hello { version: u64, pid: u64 },
    /// The program is running.
    Launched { program_number: u64, pid: u64 },
    /// The program could not be started; with the system's error number.
    LaunchFailed { program_number: u64, errno: u64 },
    /// The program has ended, with the result of `wait`.
    Ended { program_number: u64, end: ProgramEnd },
    /// No process is pending: numbers of the killed processes and of those that do not die.
    KillFinished { program_number: u64, killed_count: u64, survivor_count: u64 },
    /// Held program. The packet contains its two pipe ends and its two memory files, and, for a journaled input, the
    /// write end of its standard input and the journal of that.
    ProgramListed {
        hold_terms: HoldTerms,
        pid: u64,
        end: Option<ProgramEnd>,
        has_stdin_journal: bool,
    },
    /// The list is complete.
    ListFinished,
    /// Bytes that an earlier supervisor had stored. Sent before [`HolderEvent::ListFinished`].
    StoredSecret { secret: SecretValue },
    /// Answer to [`HolderOrder::Challenge`].
    ChallengeResponse { holder_nonce: Vec<u8>, proof: Vec<u8> },
}

/// End of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ProgramEnd {
    /// Status from `wait`.
    pub(crate) status: u64,
    /// True if a process that it started is alive.
    pub(crate) has_survivors: bool,
    /// Microseconds of processor time of the program and its waited-for children.
    pub(crate) cpu_micros: u64,
    /// Peak memory of one process in KiB; 0 if this and the time are unknown.
    pub(crate) peak_memory_kib: u64,
}

impl ProgramEnd {
    fn write(self, writer: FrameWriter) -> FrameWriter {
        let writer = writer.write_number(self.status).write_number(self.has_survivors.into());
        writer.write_number(self.cpu_micros).write_number(self.peak_memory_kib)
    }

    fn read(reader: &mut FrameReader<'_>) -> Option<Self> {
        let (status, has_survivors) = (reader.read_number()?, reader.read_number()? != 0);
        Some(Self {
            status,
            has_survivors,
            cpu_micros: reader.read_number()?,
            peak_memory_kib: reader.read_number()?,
        })
    }
}

impl HolderOrder {
    pub(crate) fn encode(&self) -> Vec<u8> {
        match self {
            Self::Hello { version, reattach_grace_ms, socket_name: name, key } => {
                let writer =
                    FrameWriter::new(1).write_number(*version).write_number(*reattach_grace_ms);
                writer.write_bytes(name).write_bytes(&key.0)
            }
            Self::Launch { hold_terms, spec, flags } => {
                let writer = hold_terms.write(FrameWriter::new(2)).write_number(flags.to_bits());
                let writer = writer.write_number(spec.is_some().into());
                spec.iter().fold(writer, |writer, spec| spec.write(writer))
            }
            Self::Terminate { program_number } => FrameWriter::new(3).write_number(*program_number),
            Self::Kill { program_number } => FrameWriter::new(4).write_number(*program_number),
            Self::Release { program_number } => FrameWriter::new(5).write_number(*program_number),
            Self::List => FrameWriter::new(6),
            Self::Shutdown => FrameWriter::new(7),
            Self::StoreSecret { secret } => FrameWriter::new(8).write_bytes(&secret.0),
            Self::Challenge { supervisor_nonce: nonce } => FrameWriter::new(9).write_bytes(nonce),
            Self::Authenticate { proof } => FrameWriter::new(10).write_bytes(proof),
            Self::CloseStdin { program_number } => {
                FrameWriter::new(11).write_number(*program_number)
            }
        }
        .finish()
    }

    pub(crate) fn decode(frame: &[u8]) -> Option<Self> {
        let (kind, mut reader) = FrameReader::new(frame)?;
        Some(match kind {
            1 => Self::Hello {
                version: reader.read_number()?,
                reattach_grace_ms: reader.read_number()?,
                socket_name: reader.read_bytes()?,
                key: SecretValue(reader.read_bytes()?),
            },
            2 => {
                let hold_terms = HoldTerms::read(&mut reader)?;
                let (flags, has_spec) =
                    (LaunchFlags::from_bits(reader.read_number()?), reader.read_number()? != 0);
                let spec = if has_spec { Some(LaunchSpec::read(&mut reader)?) } else { None };
                Self::Launch { hold_terms, spec, flags }
            }
            3 => Self::Terminate { program_number: reader.read_number()? },
            4 => Self::Kill { program_number: reader.read_number()? },
            5 => Self::Release { program_number: reader.read_number()? },
            6 => Self::List,
            7 => Self::Shutdown,
            8 => Self::StoreSecret { secret: SecretValue(reader.read_bytes()?) },
            9 => Self::Challenge { supervisor_nonce: reader.read_bytes()? },
            10 => Self::Authenticate { proof: reader.read_bytes()? },
            11 => Self::CloseStdin { program_number: reader.read_number()? },
            _ => return None,
        })
    }
}

impl HolderEvent {
    pub(crate) fn encode(&self) -> Vec<u8> {
        match self {
            Self::Hello { version, pid } => {
                FrameWriter::new(1).write_number(*version).write_number(*pid)
            }
            Self::Launched { program_number, pid } => {
                FrameWriter::new(2).write_number(*program_number).write_number(*pid)
            }
            Self::LaunchFailed { program_number, errno } => {
                FrameWriter::new(3).write_number(*program_number).write_number(*errno)
            }
            Self::Ended { program_number, end } => {
                end.write(FrameWriter::new(4).write_number(*program_number))
            }
            Self::KillFinished {
                program_number,
                killed_count: killed,
                survivor_count: survivors,
            } => FrameWriter::new(5)
                .write_number(*program_number)
                .write_number(*killed)
                .write_number(*survivors),
            Self::ProgramListed { hold_terms, pid, end, has_stdin_journal } => {
                let writer = hold_terms
                    .write(FrameWriter::new(6))
                    .write_number(*pid)
                    .write_number(end.is_some().into());
                let writer = end.iter().fold(writer, |writer, end| end.write(writer));
                writer.write_number(
                    LaunchFlags { has_stdin_journal: *has_stdin_journal, ..LaunchFlags::default() }
                        .to_bits(),
                )
            }
            Self::ListFinished => FrameWriter::new(7),
            Self::StoredSecret { secret } => FrameWriter::new(8).write_bytes(&secret.0),
            Self::ChallengeResponse { holder_nonce: nonce, proof } => {
                FrameWriter::new(9).write_bytes(nonce).write_bytes(proof)
            }
        }
        .finish()
    }

    pub(crate) fn decode(frame: &[u8]) -> Option<Self> {
        let (kind, mut reader) = FrameReader::new(frame)?;
        Some(match kind {
            1 => Self::Hello { version: reader.read_number()?, pid: reader.read_number()? },
            2 => {
                Self::Launched { program_number: reader.read_number()?, pid: reader.read_number()? }
            }
            3 => Self::LaunchFailed {
                program_number: reader.read_number()?,
                errno: reader.read_number()?,
            },
            4 => Self::Ended {
                program_number: reader.read_number()?,
                end: ProgramEnd::read(&mut reader)?,
            },
            5 => Self::KillFinished {
                program_number: reader.read_number()?,
                killed_count: reader.read_number()?,
                survivor_count: reader.read_number()?,
            },
            6 => {
                let (hold_terms, pid) = (HoldTerms::read(&mut reader)?, reader.read_number()?);
                let has_ended = reader.read_number()? != 0;
                let end = if has_ended { Some(ProgramEnd::read(&mut reader)?) } else { None };
                // A process holder of an earlier version sends no flags.
                let has_stdin_journal = reader
                    .read_number()
                    .is_some_and(|flags| LaunchFlags::from_bits(flags).has_stdin_journal);
                Self::ProgramListed { hold_terms, pid, end, has_stdin_journal }
            }
            7 => Self::ListFinished,
            8 => Self::StoredSecret { secret: SecretValue(reader.read_bytes()?) },
            9 => Self::ChallengeResponse {
                holder_nonce: reader.read_bytes()?,
                proof: reader.read_bytes()?,
            },
            _ => return None,
        })
    }
}
