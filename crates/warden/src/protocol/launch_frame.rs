//! Parts of the frame that starts a program: its specification, its terms and its flags.

use super::codec::{FrameReader, FrameWriter};
use crate::confinement::network_access::NetworkAccess;
use crate::confinement::root_capabilities::RootCapabilities;

/// Specification of a program to start.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct LaunchSpec {
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
    pub(crate) root_capabilities: RootCapabilities,
    /// User id and group id of the program.
    pub(crate) user: Option<(u32, u32)>,
}

impl LaunchSpec {
    pub(super) fn write(&self, writer: FrameWriter) -> FrameWriter {
        let writer = writer.write_bytes(&self.program).write_list(&self.args).write_list(&self.env);
        let writer = writer.write_bytes(&self.working_dir).write_number(self.limits.len() as u64);
        let limits = self.limits.iter();
        let writer = limits.fold(writer, |writer, (resource, limit)| {
            writer.write_number(*resource).write_number(*limit)
        });
        let writer = writer
            .write_number(self.root_capabilities.frame_code())
            .write_number(self.user.is_some().into());
        let user = self.user.iter();
        user.fold(writer, |writer, (uid, gid)| {
            writer.write_number((*uid).into()).write_number((*gid).into())
        })
    }

    pub(super) fn read(reader: &mut FrameReader<'_>) -> Option<Self> {
        let (program, args, env) = (reader.read_bytes()?, reader.read_list()?, reader.read_list()?);
        let (working_dir, count) = (reader.read_bytes()?, reader.read_number()?);
        let limits = (0..count).map(|_| Some((reader.read_number()?, reader.read_number()?)));
        let limits = limits.collect::<Option<_>>()?;
        let (root_capabilities, has_user) =
            (RootCapabilities::from_frame_code(reader.read_number()?), reader.read_number()? != 0);
        let mut id = || u32::try_from(reader.read_number()?).ok();
        let user = if has_user { Some((id()?, id()?)) } else { None };
        Some(Self { program, args, env, working_dir, limits, root_capabilities, user })
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
pub(crate) struct HoldTerms {
    /// Number by which both sides identify the program.
    pub(crate) program_number: u64,
    /// Label of the program's processes.
    pub(crate) process_label: u64,
    /// Metadata that the next supervisor reads back.
    pub(crate) metadata: Vec<u8>,
    /// Bytes of each stream that are held.
    pub(crate) max_recorded_bytes: u64,
    /// True if the program ends when the supervisor does.
    pub(crate) ends_with_supervisor: bool,
}

impl HoldTerms {
    pub(super) fn write(&self, writer: FrameWriter) -> FrameWriter {
        let writer = writer
            .write_number(self.program_number)
            .write_number(self.process_label)
            .write_bytes(&self.metadata);
        writer.write_number(self.max_recorded_bytes).write_number(self.ends_with_supervisor.into())
    }

    pub(super) fn read(reader: &mut FrameReader<'_>) -> Option<Self> {
        let (program_number, process_label, metadata) =
            (reader.read_number()?, reader.read_number()?, reader.read_bytes()?);
        let (max_recorded_bytes, ends_with_supervisor) =
            (reader.read_number()?, reader.read_number()? != 0);
        Some(Self {
            program_number,
            process_label,
            metadata,
            max_recorded_bytes,
            ends_with_supervisor,
        })
    }
}

/// Confinement of a program, and the optional descriptors of its packet.
#[expect(clippy::struct_excessive_bools, reason = "independent bits of one number")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct LaunchFlags {
    /// True if the packet contains a ruleset.
    pub(crate) is_confined: bool,
    /// True if the first process only waits for the others, which end with it.
    pub(crate) has_wrapper_process: bool,
    /// True if the packet contains the entry file of the control group.
    pub(crate) has_control_group: bool,
    /// True if the packet contains the write end of standard input and its journal.
    pub(crate) has_stdin_journal: bool,
    /// Network that the program may use; limited only if it is confined.
    pub(crate) network: NetworkAccess,
}

impl LaunchFlags {
    const CONFINED: u64 = 1;
    const WRAPPER_PROCESS: u64 = 1 << 1;
    const CONTROL_GROUP: u64 = 1 << 2;
    const STDIN_JOURNAL: u64 = 1 << 3;
    /// First of the two bits of the network's number.
    const NETWORK_SHIFT: u32 = 4;
    const NETWORK_MASK: u64 = 0b11;

    pub(super) fn to_bits(self) -> u64 {
        let bit = |is_set: bool, bit: u64| if is_set { bit } else { 0 };
        bit(self.is_confined, Self::CONFINED)
            | bit(self.has_wrapper_process, Self::WRAPPER_PROCESS)
            | bit(self.has_control_group, Self::CONTROL_GROUP)
            | bit(self.has_stdin_journal, Self::STDIN_JOURNAL)
            | self.network.frame_code() << Self::NETWORK_SHIFT
    }

    pub(super) fn from_bits(number: u64) -> Self {
        let has = |bit| number & bit != 0;
        Self {
            is_confined: has(Self::CONFINED),
            has_wrapper_process: has(Self::WRAPPER_PROCESS),
            has_control_group: has(Self::CONTROL_GROUP),
            has_stdin_journal: has(Self::STDIN_JOURNAL),
            network: NetworkAccess::from_frame_code(
                number >> Self::NETWORK_SHIFT & Self::NETWORK_MASK,
            ),
        }
    }
}
