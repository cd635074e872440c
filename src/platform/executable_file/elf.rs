//! Header of a binary in the format ELF: its processor and its dynamic loader.

use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use nix::sys::utsname::uname;

const MAGIC: &[u8] = b"\x7fELF";

/// Value of the class for 64 bits.
const CLASS_64: u8 = 2;

/// Value of the byte order for the least significant byte first.
const LITTLE_ENDIAN: u8 = 1;

/// Type of the program header that names the dynamic loader.
const LOADER_HEADER_TYPE: u32 = 3;

/// Greatest number of program headers that are read, and greatest length of a loader's path.
const MAX_HEADERS: u16 = 128;
const MAX_LOADER_BYTES: u64 = 4096;

/// Processors that are named in messages.
const PROCESSORS: [(u16, &str); 8] = [
    (3, "32-bit x86"),
    (8, "MIPS"),
    (21, "64-bit PowerPC"),
    (22, "S/390"),
    (40, "32-bit ARM"),
    (62, "64-bit x86"),
    (183, "64-bit ARM"),
    (243, "RISC-V"),
];

/// Processors that a kernel may execute, by its name. Other kernels are not judged.
const PROCESSOR_FAMILIES: [(&str, &[u16]); 3] =
    [("x86_64", &[62, 3]), ("aarch64", &[183, 40]), ("riscv64", &[243])];

/// Parts of the header that decide whether the machine can execute the binary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ElfHeader {
    machine: u16,
    /// Dynamic loader, if the binary needs one.
    pub(super) loader: Option<PathBuf>,
}

/// Size and order of the fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ElfLayout {
    is_64_bit: bool,
    is_little_endian: bool,
}

impl ElfHeader {
    /// Reads the header of a file with this beginning; `None` if it is no complete header.
    pub(super) fn read(file: &File, beginning: &[u8]) -> Option<Self> {
        let [class, order, ..] = *beginning.strip_prefix(MAGIC)? else { return None };
        let layout =
            ElfLayout { is_64_bit: class == CLASS_64, is_little_endian: order == LITTLE_ENDIAN };
        let machine = layout.read_u16(beginning, 18)?;
        Some(Self { machine, loader: read_loader(file, beginning, layout) })
    }

    /// Returns the name of the binary's processor if this machine cannot execute it. A 64-bit machine may execute
    /// 32-bit binaries of its family.
    pub(super) fn foreign_processor(&self) -> Option<&'static str> {
        let system_name = uname().ok()?;
        let machine_name = system_name.machine().to_str()?;
        let (_, own_family) = PROCESSOR_FAMILIES.iter().find(|(name, _)| *name == machine_name)?;
        if own_family.contains(&self.machine) {
            return None;
        }
        let known = PROCESSORS.iter().find(|(machine, _)| *machine == self.machine);
        Some(known.map_or("another processor", |(_, name)| name))
    }
}

fn read_loader(file: &File, beginning: &[u8], layout: ElfLayout) -> Option<PathBuf> {
    let (table_offset, header_size_offset) = match layout.is_64_bit {
        true => (layout.read_u64(beginning, 32)?, 54),
        false => (layout.read_u32(beginning, 28)?.into(), 42),
    };
    let header_size = layout.read_u16(beginning, header_size_offset)?;
    let count = layout.read_u16(beginning, header_size_offset + 2)?.min(MAX_HEADERS);
    for index in 0..count {
        let mut header = vec![0; header_size.into()];
        let at = table_offset.checked_add(u64::from(index) * u64::from(header_size))?;
        file.read_exact_at(&mut header, at).ok()?;
        if layout.read_u32(&header, 0)? != LOADER_HEADER_TYPE {
            continue;
        }
        let (start, length) = match layout.is_64_bit {
            true => (layout.read_u64(&header, 8)?, layout.read_u64(&header, 32)?),
            false => (layout.read_u32(&header, 4)?.into(), layout.read_u32(&header, 16)?.into()),
        };
        let mut path = vec![0; usize::try_from(length.min(MAX_LOADER_BYTES)).ok()?];
        file.read_exact_at(&mut path, start).ok()?;
        let path = path.split(|byte| *byte == 0).next().filter(|path| !path.is_empty())?;
        return Some(Path::new(OsStr::from_bytes(path)).to_owned());
    }
    None
}

impl ElfLayout {
    fn read_u16(self, bytes: &[u8], at: usize) -> Option<u16> {
        let field = read_field(bytes, at)?;
        Some(if self.is_little_endian {
            u16::from_le_bytes(field)
        } else {
            u16::from_be_bytes(field)
        })
    }

    fn read_u32(self, bytes: &[u8], at: usize) -> Option<u32> {
        let field = read_field(bytes, at)?;
        Some(if self.is_little_endian {
            u32::from_le_bytes(field)
        } else {
            u32::from_be_bytes(field)
        })
    }

    fn read_u64(self, bytes: &[u8], at: usize) -> Option<u64> {
        let field = read_field(bytes, at)?;
        Some(if self.is_little_endian {
            u64::from_le_bytes(field)
        } else {
            u64::from_be_bytes(field)
        })
    }
}

fn read_field<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}
