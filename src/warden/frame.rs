//! What a supervisor and a warden tell each other: one frame in each packet of their socket.
//!
//! The warden that runs may be older than the supervisor: frames are only ever added, and each
//! side tells its version first.

use super::codec::{Reader, Writer};

/// The version of these frames.
pub(super) const VERSION: u64 = 1;

/// The longest frame; what is longer travels in a memory file.
pub(super) const LONGEST: usize = 64 * 1024;

/// What a program is started with.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Spec {
    /// Absolute path.
    pub(super) program: Vec<u8>,
    /// Its arguments, with its name.
    pub(super) args: Vec<Vec<u8>>,
    /// `NAME=value`.
    pub(super) env: Vec<Vec<u8>>,
    /// Where it starts.
    pub(super) working_dir: Vec<u8>,
    /// Each limit of a resource, soft and hard alike.
    pub(super) limits: Vec<(u64, u64)>,
}

impl Spec {
    fn write(&self, writer: Writer) -> Writer {
        let writer = writer.bytes(&self.program).list(&self.args).list(&self.env);
        let writer = writer.bytes(&self.working_dir).number(self.limits.len() as u64);
        let limits = self.limits.iter();
        limits.fold(writer, |writer, (resource, limit)| writer.number(*resource).number(*limit))
    }

    fn read(reader: &mut Reader<'_>) -> Option<Self> {
        let (program, args, env) = (reader.bytes()?, reader.list()?, reader.list()?);
        let (working_dir, count) = (reader.bytes()?, reader.number()?);
        let limits = (0..count).map(|_| Some((reader.number()?, reader.number()?)));
        Some(Self { program, args, env, working_dir, limits: limits.collect::<Option<_>>()? })
    }

    /// As bytes of a memory file.
    pub(super) fn encode(&self) -> Vec<u8> {
        self.write(Writer::new(0)).finish()
    }

    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        Self::read(&mut Reader::new(bytes)?.1)
    }
}

/// Who a program works for, and how it is held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Terms {
    /// The number under which both sides know it.
    pub(super) slot: u64,
    /// What its processes carry.
    pub(super) label: u64,
    /// What the supervisor wants to read again when it comes back.
    pub(super) meta: Vec<u8>,
    /// Bytes of each stream that are held.
    pub(super) cap: u64,
    /// Whether it ends when the supervisor does.
    pub(super) dies_alone: bool,
}

impl Terms {
    fn write(&self, writer: Writer) -> Writer {
        let writer = writer.number(self.slot).number(self.label).bytes(&self.meta);
        writer.number(self.cap).number(self.dies_alone.into())
    }

    fn read(reader: &mut Reader<'_>) -> Option<Self> {
        let (slot, label, meta) = (reader.number()?, reader.number()?, reader.bytes()?);
        let (cap, dies_alone) = (reader.number()?, reader.number()? != 0);
        Some(Self { slot, label, meta, cap, dies_alone })
    }
}

/// How a program is kept from what it may not do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Guard {
    /// Whether a ruleset comes with it.
    pub(super) is_confined: bool,
    /// Whether its first process only waits for the others, which end with it.
    pub(super) is_wrapped: bool,
    /// Whether the entrance of its group comes with it.
    pub(super) is_grouped: bool,
}

impl Guard {
    const CONFINED: u64 = 1;
    const WRAPPED: u64 = 1 << 1;
    const GROUPED: u64 = 1 << 2;

    fn number(self) -> u64 {
        let bit = |is_set: bool, bit: u64| if is_set { bit } else { 0 };
        bit(self.is_confined, Self::CONFINED)
            | bit(self.is_wrapped, Self::WRAPPED)
            | bit(self.is_grouped, Self::GROUPED)
    }

    fn of(number: u64) -> Self {
        let has = |bit| number & bit != 0;
        let (is_confined, is_wrapped) = (has(Self::CONFINED), has(Self::WRAPPED));
        Self { is_confined, is_wrapped, is_grouped: has(Self::GROUPED) }
    }
}

/// From the supervisor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Order {
    /// The first word. Milliseconds for which the warden waits for the next supervisor; the name
    /// of the socket at which it does. Comes with the folder of that socket.
    Hello { version: u64, patience: u64, name: Vec<u8> },
    /// Start a program. Comes with its three streams, our two ends, two memory files, and the
    /// ruleset, the entrance of its group and the file of the spec where there are such.
    Launch { terms: Terms, spec: Option<Spec>, guard: Guard },
    /// Ask everything of it to end.
    Terminate { slot: u64 },
    /// Kill everything of it, and tell when nothing is left.
    Kill { slot: u64 },
    /// Forget it.
    Release { slot: u64 },
    /// Tell what is held; from here on the supervisor reads.
    List,
    /// Kill everything and end.
    Bye,
}

/// From the warden.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Word {
    /// The first word.
    Hello { version: u64, pid: u64 },
    /// It lives.
    Launched { slot: u64, pid: u64 },
    /// It could not be started, with the system's error number.
    Refused { slot: u64, errno: u64 },
    /// It has ended, with what `wait` told.
    Ended { slot: u64, end: End },
    /// It is done with: so many were killed, and so many do not die.
    Cleared { slot: u64, killed: u64, left: u64 },
    /// It is held. Comes with our two ends and the two memory files.
    Held { terms: Terms, pid: u64, end: Option<End> },
    /// All that is held was told.
    Listed,
}

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct End {
    /// What `wait` told.
    pub(super) status: u64,
    /// Whether something that it started lives on.
    pub(super) has_survivors: bool,
    /// Microseconds of processor time, its own and of what it waited for.
    pub(super) cpu: u64,
    /// The most memory of one process, in KiB; 0 where that and the time are not known.
    pub(super) peak: u64,
}

impl End {
    fn write(self, writer: Writer) -> Writer {
        let writer = writer.number(self.status).number(self.has_survivors.into());
        writer.number(self.cpu).number(self.peak)
    }

    fn read(reader: &mut Reader<'_>) -> Option<Self> {
        let (status, has_survivors) = (reader.number()?, reader.number()? != 0);
        Some(Self { status, has_survivors, cpu: reader.number()?, peak: reader.number()? })
    }
}

impl Order {
    pub(super) fn encode(&self) -> Vec<u8> {
        match self {
            Self::Hello { version, patience, name } => {
                Writer::new(1).number(*version).number(*patience).bytes(name)
            }
            Self::Launch { terms, spec, guard } => {
                let writer = terms.write(Writer::new(2)).number(guard.number());
                let writer = writer.number(spec.is_some().into());
                spec.iter().fold(writer, |writer, spec| spec.write(writer))
            }
            Self::Terminate { slot } => Writer::new(3).number(*slot),
            Self::Kill { slot } => Writer::new(4).number(*slot),
            Self::Release { slot } => Writer::new(5).number(*slot),
            Self::List => Writer::new(6),
            Self::Bye => Writer::new(7),
        }
        .finish()
    }

    pub(super) fn decode(frame: &[u8]) -> Option<Self> {
        let (kind, mut reader) = Reader::new(frame)?;
        Some(match kind {
            1 => Self::Hello {
                version: reader.number()?,
                patience: reader.number()?,
                name: reader.bytes()?,
            },
            2 => {
                let terms = Terms::read(&mut reader)?;
                let (guard, is_here) = (Guard::of(reader.number()?), reader.number()? != 0);
                let spec = if is_here { Some(Spec::read(&mut reader)?) } else { None };
                Self::Launch { terms, spec, guard }
            }
            3 => Self::Terminate { slot: reader.number()? },
            4 => Self::Kill { slot: reader.number()? },
            5 => Self::Release { slot: reader.number()? },
            6 => Self::List,
            7 => Self::Bye,
            _ => return None,
        })
    }
}

impl Word {
    pub(super) fn encode(&self) -> Vec<u8> {
        match self {
            Self::Hello { version, pid } => Writer::new(1).number(*version).number(*pid),
            Self::Launched { slot, pid } => Writer::new(2).number(*slot).number(*pid),
            Self::Refused { slot, errno } => Writer::new(3).number(*slot).number(*errno),
            Self::Ended { slot, end } => end.write(Writer::new(4).number(*slot)),
            Self::Cleared { slot, killed, left } => {
                Writer::new(5).number(*slot).number(*killed).number(*left)
            }
            Self::Held { terms, pid, end } => {
                let writer = terms.write(Writer::new(6)).number(*pid).number(end.is_some().into());
                end.iter().fold(writer, |writer, end| end.write(writer))
            }
            Self::Listed => Writer::new(7),
        }
        .finish()
    }

    pub(super) fn decode(frame: &[u8]) -> Option<Self> {
        let (kind, mut reader) = Reader::new(frame)?;
        Some(match kind {
            1 => Self::Hello { version: reader.number()?, pid: reader.number()? },
            2 => Self::Launched { slot: reader.number()?, pid: reader.number()? },
            3 => Self::Refused { slot: reader.number()?, errno: reader.number()? },
            4 => Self::Ended { slot: reader.number()?, end: End::read(&mut reader)? },
            5 => Self::Cleared {
                slot: reader.number()?,
                killed: reader.number()?,
                left: reader.number()?,
            },
            6 => {
                let (terms, pid) = (Terms::read(&mut reader)?, reader.number()?);
                let has_ended = reader.number()? != 0;
                let end = if has_ended { Some(End::read(&mut reader)?) } else { None };
                Self::Held { terms, pid, end }
            }
            7 => Self::Listed,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{End, Guard, Order, Spec, Terms, Word};

    fn terms() -> Terms {
        Terms { slot: 3, label: 1 << 61, meta: vec![0, 255], cap: 9, dies_alone: true }
    }

    fn launch([is_confined, is_wrapped, is_grouped]: [bool; 3]) -> Order {
        let guard = Guard { is_confined, is_wrapped, is_grouped };
        Order::Launch { terms: terms(), spec: None, guard }
    }

    #[test]
    fn every_order_is_read_as_it_was_written() {
        let spec = Spec {
            program: b"/bin/cat".to_vec(),
            args: vec![b"cat".to_vec(), vec![0xfe]],
            env: vec![b"A=1".to_vec()],
            working_dir: b"/".to_vec(),
            limits: vec![(7, 1024), (4, 0)],
        };
        assert_eq!(Spec::decode(&spec.encode()).as_ref(), Some(&spec));
        let orders = [
            Order::Hello { version: 1, patience: 60_000, name: b"x.sock".to_vec() },
            Order::Launch { terms: terms(), spec: Some(spec), guard: Guard::default() },
            launch([true, false, false]),
            launch([false, true, false]),
            launch([false, false, true]),
            launch([true, true, true]),
            Order::Terminate { slot: 1 },
            Order::Kill { slot: 2 },
            Order::Release { slot: 3 },
            Order::List,
            Order::Bye,
        ];
        for order in orders {
            assert_eq!(Order::decode(&order.encode()), Some(order));
        }
        assert_eq!(Order::decode(&[99]), None);
    }

    #[test]
    fn every_word_is_read_as_it_was_written() {
        let end = End { status: 256, has_survivors: true, cpu: 5, peak: 6 };
        let words = [
            Word::Hello { version: 1, pid: 4 },
            Word::Launched { slot: 1, pid: 4 },
            Word::Refused { slot: 1, errno: 2 },
            Word::Ended { slot: 1, end },
            Word::Cleared { slot: 1, killed: 3, left: 1 },
            Word::Held { terms: terms(), pid: 4, end: Some(end) },
            Word::Held { terms: terms(), pid: 4, end: None },
            Word::Listed,
        ];
        for word in words {
            assert_eq!(Word::decode(&word.encode()), Some(word));
        }
        assert_eq!(Word::decode(&[]), None);
    }
}
