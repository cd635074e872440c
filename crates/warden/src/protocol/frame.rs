//! Frames between supervisor and process holder: one frame in each packet of their socket.
//!
//! The running process holder may be older than the supervisor: frames are only ever added, and each side sends its
//! version first.

use std::fmt;

use super::codec::{FrameReader, FrameWriter};
use crate::confinement::root_capabilities::RootCapabilities;

/// Version of these frames. Version 2 adds [`Order::Keep`] and [`HolderEvent::Kept`]. From version 3 on both sides
/// prove a key before anything else at a named socket: [`Order::Meet`], [`HolderEvent::Met`], [`Order::Prove`].
/// Version 4 adds fed standard input: [`Guard::is_fed`], its two descriptors, and [`HolderOrder::Close`].
pub(crate) const VERSION: u64 = 4;

/// First version whose supervisors know [`HolderEvent::Kept`].
pub(crate) const KEEPS: u64 = 2;

/// First version whose process holders hold a fed standard input, and whose supervisors continue it.
pub(crate) const FEEDS: u64 = 4;

/// Greatest length of a frame in bytes; a longer spec travels in a memory file.
pub(crate) const LONGEST: usize = 64 * 1024;

/// Specification of a program to start.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Spec {
    /// Absolute path of the program.
    pub(crate) program: Vec<u8>,
    /// Arguments, with the program's name first.
    pub(crate) args: Vec<Vec<u8>>,
    /// Environment entries of the form `NAME=value`.
    pub(crate) env: Vec<Vec<u8>>,
    /// Working directory at the start.
    pub(crate) working_dir: Vec<u8>,
    /// Limit of each resource, soft and hard alike.
    pub(crate) limits: Vec<(u64, u64)>,
    /// Capabilities that a program of root keeps.
    pub(crate) rights: RootCapabilities,
    /// User id and group id of the program.
    pub(crate) user: Option<(u32, u32)>,
}

impl Spec {
    fn write(&self, writer: FrameWriter) -> FrameWriter {
        let writer = writer.bytes(&self.program).list(&self.args).list(&self.env);
        let writer = writer.bytes(&self.working_dir).number(self.limits.len() as u64);
        let limits = self.limits.iter();
        let writer = limits
            .fold(writer, |writer, (resource, limit)| writer.number(*resource).number(*limit));
        let writer = writer.number(self.rights.number()).number(self.user.is_some().into());
        let user = self.user.iter();
        user.fold(writer, |writer, (uid, gid)| writer.number((*uid).into()).number((*gid).into()))
    }

    fn read(reader: &mut FrameReader<'_>) -> Option<Self> {
        let (program, args, env) = (reader.bytes()?, reader.list()?, reader.list()?);
        let (working_dir, count) = (reader.bytes()?, reader.number()?);
        let limits = (0..count).map(|_| Some((reader.number()?, reader.number()?)));
        let limits = limits.collect::<Option<_>>()?;
        let (rights, has_user) = (RootCapabilities::of(reader.number()?), reader.number()? != 0);
        let mut id = || u32::try_from(reader.number()?).ok();
        let user = if has_user { Some((id()?, id()?)) } else { None };
        Some(Self { program, args, env, working_dir, limits, rights, user })
    }

    /// Encodes the spec for a memory file.
    pub(crate) fn encode(&self) -> Vec<u8> {
        self.write(FrameWriter::new(0)).finish()
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        Self::read(&mut FrameReader::new(bytes)?.1)
    }
}

/// Terms under which a program is held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LaunchTerms {
    /// Number by which both sides identify the program.
    pub(crate) slot: u64,
    /// Label of the program's processes.
    pub(crate) label: u64,
    /// Metadata that the next supervisor reads back.
    pub(crate) meta: Vec<u8>,
    /// Bytes of each stream that are held.
    pub(crate) cap: u64,
    /// True if the program ends when the supervisor does.
    pub(crate) dies_alone: bool,
}

impl LaunchTerms {
    fn write(&self, writer: FrameWriter) -> FrameWriter {
        let writer = writer.number(self.slot).number(self.label).bytes(&self.meta);
        writer.number(self.cap).number(self.dies_alone.into())
    }

    fn read(reader: &mut FrameReader<'_>) -> Option<Self> {
        let (slot, label, meta) = (reader.number()?, reader.number()?, reader.bytes()?);
        let (cap, dies_alone) = (reader.number()?, reader.number()? != 0);
        Some(Self { slot, label, meta, cap, dies_alone })
    }
}

/// Confinement of a program, and the optional descriptors of its packet.
#[expect(clippy::struct_excessive_bools, reason = "independent bits of one number")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Guard {
    /// True if the packet contains a ruleset.
    pub(crate) is_confined: bool,
    /// True if the first process only waits for the others, which end with it.
    pub(crate) is_wrapped: bool,
    /// True if the packet contains the entry file of the control group.
    pub(crate) is_grouped: bool,
    /// True if the packet contains the write end of standard input and its journal.
    pub(crate) is_fed: bool,
}

impl Guard {
    const CONFINED: u64 = 1;
    const WRAPPED: u64 = 1 << 1;
    const GROUPED: u64 = 1 << 2;
    const FED: u64 = 1 << 3;

    fn number(self) -> u64 {
        let bit = |is_set: bool, bit: u64| if is_set { bit } else { 0 };
        bit(self.is_confined, Self::CONFINED)
            | bit(self.is_wrapped, Self::WRAPPED)
            | bit(self.is_grouped, Self::GROUPED)
            | bit(self.is_fed, Self::FED)
    }

    fn of(number: u64) -> Self {
        let has = |bit| number & bit != 0;
        let (is_confined, is_wrapped) = (has(Self::CONFINED), has(Self::WRAPPED));
        let (is_grouped, is_fed) = (has(Self::GROUPED), has(Self::FED));
        Self { is_confined, is_wrapped, is_grouped, is_fed }
    }
}

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
    /// later supervisor. The packet contains the folder of that socket.
    Hello { version: u64, patience: u64, name: Vec<u8>, key: SecretValue },
    /// Starts a program. The packet contains its three streams, the supervisor's two pipe ends, two memory files, and,
    /// if present, the ruleset, the entry file of the control group, the write end of standard input with its journal,
    /// and the file of the spec.
    Launch { terms: LaunchTerms, spec: Option<Spec>, guard: Guard },
    /// Sends SIGTERM to all processes of the program.
    Terminate { slot: u64 },
    /// Kills all processes of the program; the answer follows when none is left.
    Kill { slot: u64 },
    /// Forgets the program.
    Release { slot: u64 },
    /// Closes the program's standard input. Its journal stays for the next supervisor.
    Close { slot: u64 },
    /// Lists the held programs; from then on the supervisor reads their output.
    List,
    /// Kills everything and ends.
    Bye,
    /// Holds these bytes for the next supervisor, in memory only.
    Keep { secret: SecretValue },
    /// First order at a named socket.
    Meet { nonce: Vec<u8> },
    /// Answer to [`HolderEvent::Met`].
    Prove { proof: Vec<u8> },
}

/// Event from the process holder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum HolderEvent {
    /// First event.
    Hello { version: u64, pid: u64 },
    /// The program is running.
    Launched { slot: u64, pid: u64 },
    /// The program could not be started; with the system's error number.
    Refused { slot: u64, errno: u64 },
    /// The program has ended, with the result of `wait`.
    Ended { slot: u64, end: ProgramEnd },
    /// No process is pending: numbers of the killed processes and of those that do not die.
    Cleared { slot: u64, killed: u64, left: u64 },
    /// Held program. The packet contains its two pipe ends and its two memory files, and, if it is fed, the write end
    /// of its standard input and the journal of that.
    Held { terms: LaunchTerms, pid: u64, end: Option<ProgramEnd>, is_fed: bool },
    /// The list is complete.
    Listed,
    /// Bytes that an earlier supervisor had stored. Sent before [`HolderEvent::Listed`].
    Kept { secret: SecretValue },
    /// Answer to [`Order::Meet`].
    Met { nonce: Vec<u8>, proof: Vec<u8> },
}

/// End of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ProgramEnd {
    /// Status from `wait`.
    pub(crate) status: u64,
    /// True if a process that it started is alive.
    pub(crate) has_survivors: bool,
    /// Microseconds of processor time of the program and its waited-for children.
    pub(crate) cpu: u64,
    /// Peak memory of one process in KiB; 0 if this and the time are unknown.
    pub(crate) peak: u64,
}

impl ProgramEnd {
    fn write(self, writer: FrameWriter) -> FrameWriter {
        let writer = writer.number(self.status).number(self.has_survivors.into());
        writer.number(self.cpu).number(self.peak)
    }

    fn read(reader: &mut FrameReader<'_>) -> Option<Self> {
        let (status, has_survivors) = (reader.number()?, reader.number()? != 0);
        Some(Self { status, has_survivors, cpu: reader.number()?, peak: reader.number()? })
    }
}

impl HolderOrder {
    pub(crate) fn encode(&self) -> Vec<u8> {
        match self {
            Self::Hello { version, patience, name, key } => {
                let writer = FrameWriter::new(1).number(*version).number(*patience);
                writer.bytes(name).bytes(&key.0)
            }
            Self::Launch { terms, spec, guard } => {
                let writer = terms.write(FrameWriter::new(2)).number(guard.number());
                let writer = writer.number(spec.is_some().into());
                spec.iter().fold(writer, |writer, spec| spec.write(writer))
            }
            Self::Terminate { slot } => FrameWriter::new(3).number(*slot),
            Self::Kill { slot } => FrameWriter::new(4).number(*slot),
            Self::Release { slot } => FrameWriter::new(5).number(*slot),
            Self::List => FrameWriter::new(6),
            Self::Bye => FrameWriter::new(7),
            Self::Keep { secret } => FrameWriter::new(8).bytes(&secret.0),
            Self::Meet { nonce } => FrameWriter::new(9).bytes(nonce),
            Self::Prove { proof } => FrameWriter::new(10).bytes(proof),
            Self::Close { slot } => FrameWriter::new(11).number(*slot),
        }
        .finish()
    }

    pub(crate) fn decode(frame: &[u8]) -> Option<Self> {
        let (kind, mut reader) = FrameReader::new(frame)?;
        Some(match kind {
            1 => Self::Hello {
                version: reader.number()?,
                patience: reader.number()?,
                name: reader.bytes()?,
                key: SecretValue(reader.bytes()?),
            },
            2 => {
                let terms = LaunchTerms::read(&mut reader)?;
                let (guard, is_here) = (Guard::of(reader.number()?), reader.number()? != 0);
                let spec = if is_here { Some(Spec::read(&mut reader)?) } else { None };
                Self::Launch { terms, spec, guard }
            }
            3 => Self::Terminate { slot: reader.number()? },
            4 => Self::Kill { slot: reader.number()? },
            5 => Self::Release { slot: reader.number()? },
            6 => Self::List,
            7 => Self::Bye,
            8 => Self::Keep { secret: SecretValue(reader.bytes()?) },
            9 => Self::Meet { nonce: reader.bytes()? },
            10 => Self::Prove { proof: reader.bytes()? },
            11 => Self::Close { slot: reader.number()? },
            _ => return None,
        })
    }
}

impl HolderEvent {
    pub(crate) fn encode(&self) -> Vec<u8> {
        match self {
            Self::Hello { version, pid } => FrameWriter::new(1).number(*version).number(*pid),
            Self::Launched { slot, pid } => FrameWriter::new(2).number(*slot).number(*pid),
            Self::Refused { slot, errno } => FrameWriter::new(3).number(*slot).number(*errno),
            Self::Ended { slot, end } => end.write(FrameWriter::new(4).number(*slot)),
            Self::Cleared { slot, killed, left } => {
                FrameWriter::new(5).number(*slot).number(*killed).number(*left)
            }
            Self::Held { terms, pid, end, is_fed } => {
                let writer =
                    terms.write(FrameWriter::new(6)).number(*pid).number(end.is_some().into());
                let writer = end.iter().fold(writer, |writer, end| end.write(writer));
                writer.number(Guard { is_fed: *is_fed, ..Guard::default() }.number())
            }
            Self::Listed => FrameWriter::new(7),
            Self::Kept { secret } => FrameWriter::new(8).bytes(&secret.0),
            Self::Met { nonce, proof } => FrameWriter::new(9).bytes(nonce).bytes(proof),
        }
        .finish()
    }

    pub(crate) fn decode(frame: &[u8]) -> Option<Self> {
        let (kind, mut reader) = FrameReader::new(frame)?;
        Some(match kind {
            1 => Self::Hello { version: reader.number()?, pid: reader.number()? },
            2 => Self::Launched { slot: reader.number()?, pid: reader.number()? },
            3 => Self::Refused { slot: reader.number()?, errno: reader.number()? },
            4 => Self::Ended { slot: reader.number()?, end: ProgramEnd::read(&mut reader)? },
            5 => Self::Cleared {
                slot: reader.number()?,
                killed: reader.number()?,
                left: reader.number()?,
            },
            6 => {
                let (terms, pid) = (LaunchTerms::read(&mut reader)?, reader.number()?);
                let has_ended = reader.number()? != 0;
                let end = if has_ended { Some(ProgramEnd::read(&mut reader)?) } else { None };
                // A process holder of an earlier version sends no guard.
                let is_fed = reader.number().is_some_and(|guard| Guard::of(guard).is_fed);
                Self::Held { terms, pid, end, is_fed }
            }
            7 => Self::Listed,
            8 => Self::Kept { secret: SecretValue(reader.bytes()?) },
            9 => Self::Met { nonce: reader.bytes()?, proof: reader.bytes()? },
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{
        Guard, HolderEvent, HolderOrder, LaunchTerms, ProgramEnd, RootCapabilities, SecretValue,
        Spec,
    };

    fn terms() -> LaunchTerms {
        LaunchTerms { slot: 3, label: 1 << 61, meta: vec![0, 255], cap: 9, dies_alone: true }
    }

    fn launch([is_confined, is_wrapped, is_grouped, is_fed]: [bool; 4]) -> HolderOrder {
        let guard = Guard { is_confined, is_wrapped, is_grouped, is_fed };
        HolderOrder::Launch { terms: terms(), spec: None, guard }
    }

    #[test]
    fn every_order_survives_a_round_trip() {
        let spec = Spec {
            program: b"/bin/cat".to_vec(),
            args: vec![b"cat".to_vec(), vec![0xfe]],
            env: vec![b"A=1".to_vec()],
            working_dir: b"/".to_vec(),
            limits: vec![(7, 1024), (4, 0)],
            rights: RootCapabilities::Reading,
            user: Some((1000, 1001)),
        };
        assert_eq!(Spec::decode(&spec.encode()).as_ref(), Some(&spec));
        let orders = [
            HolderOrder::Hello {
                version: 1,
                patience: 60_000,
                name: b"x.sock".to_vec(),
                key: SecretValue(vec![7; 32]),
            },
            HolderOrder::Launch { terms: terms(), spec: Some(spec), guard: Guard::default() },
            launch([true, false, false, false]),
            launch([false, true, false, false]),
            launch([false, false, true, false]),
            launch([false, false, false, true]),
            launch([true, true, true, true]),
            HolderOrder::Terminate { slot: 1 },
            HolderOrder::Kill { slot: 2 },
            HolderOrder::Release { slot: 3 },
            HolderOrder::Close { slot: 4 },
            HolderOrder::List,
            HolderOrder::Bye,
            HolderOrder::Keep { secret: SecretValue(vec![0, 255]) },
            HolderOrder::Meet { nonce: vec![1; 32] },
            HolderOrder::Prove { proof: vec![2; 32] },
        ];
        for order in orders {
            assert_eq!(HolderOrder::decode(&order.encode()), Some(order));
        }
        assert_eq!(HolderOrder::decode(&[99]), None);
    }

    #[test]
    fn a_secret_is_not_shown() {
        let order = HolderOrder::Keep { secret: SecretValue(vec![104, 117, 115, 104]) };
        assert_eq!(format!("{order:?}"), "Keep { secret: Secret }");
    }

    #[test]
    fn every_event_survives_a_round_trip() {
        let end = ProgramEnd { status: 256, has_survivors: true, cpu: 5, peak: 6 };
        let words = [
            HolderEvent::Hello { version: 1, pid: 4 },
            HolderEvent::Launched { slot: 1, pid: 4 },
            HolderEvent::Refused { slot: 1, errno: 2 },
            HolderEvent::Ended { slot: 1, end },
            HolderEvent::Cleared { slot: 1, killed: 3, left: 1 },
            HolderEvent::Held { terms: terms(), pid: 4, end: Some(end), is_fed: false },
            HolderEvent::Held { terms: terms(), pid: 4, end: Some(end), is_fed: true },
            HolderEvent::Held { terms: terms(), pid: 4, end: None, is_fed: true },
            HolderEvent::Listed,
            HolderEvent::Kept { secret: SecretValue(vec![1, 2]) },
            HolderEvent::Met { nonce: vec![1; 32], proof: vec![2; 32] },
        ];
        for word in words {
            assert_eq!(HolderEvent::decode(&word.encode()), Some(word));
        }
        assert_eq!(HolderEvent::decode(&[]), None);
    }

    #[test]
    fn a_program_of_an_earlier_holder_is_not_fed() {
        let held = HolderEvent::Held { terms: terms(), pid: 4, end: None, is_fed: false };
        let frame = held.encode();
        let (earlier, _guard) = frame.split_at(frame.len() - 8);
        assert_eq!(HolderEvent::decode(earlier), Some(held));
    }
}
