//! Programs of nothing but machine code, which make one system call by an interface that no interpreter offers.

/// Address of the program, with its code and data at these offsets.
const LOAD_ADDRESS: u32 = 0x40_0000;
const CODE_OFFSET: u32 = 64 + 56;
const DATA_OFFSET: u32 = 256;

/// Address of the data, for arguments that point to it.
pub(super) const DATA_ADDRESS: u32 = LOAD_ADDRESS + DATA_OFFSET;

/// First number of the x32 interface.
const X32_SYSCALL_BIT: u32 = 0x4000_0000;

/// Registers that an instruction loads.
const EAX: u8 = 0xb8;
const ECX: u8 = 0xb9;
const EDX: u8 = 0xba;
const EBX: u8 = 0xbb;
const ESI: u8 = 0xbe;
const EDI: u8 = 0xbf;

fn load_instruction(register: u8, value: u32) -> Vec<u8> {
    [&[register][..], &value.to_le_bytes()].concat()
}

/// Returns a program that calls `number` by the interface for 32-bit programs, and ends with the error number, or with
/// 0 after a success. The fourth argument is 0.
pub(super) fn i386_call_program(number: u32, args: [u32; 3], data: &[u8]) -> Vec<u8> {
    let [first, second, third] = args;
    let loads = [
        load_instruction(EAX, number),
        load_instruction(EBX, first),
        load_instruction(ECX, second),
        load_instruction(EDX, third),
    ];
    // xor esi, esi; int 0x80
    elf_executable(&[loads.concat(), vec![0x31, 0xf6, 0xcd, 0x80]].concat(), data)
}

/// Returns the same program for the x32 interface.
pub(super) fn x32_call_program(number: u32, args: [u32; 3], data: &[u8]) -> Vec<u8> {
    let [first, second, third] = args;
    let loads = [
        load_instruction(EAX, X32_SYSCALL_BIT + number),
        load_instruction(EDI, first),
        load_instruction(ESI, second),
        load_instruction(EDX, third),
    ];
    // xor r10d, r10d; syscall
    elf_executable(&[loads.concat(), vec![0x45, 0x31, 0xd2, 0x0f, 0x05]].concat(), data)
}

/// Returns an executable file that runs this code, and ends with the error number in `eax`.
fn elf_executable(code: &[u8], data: &[u8]) -> Vec<u8> {
    // xor edi, edi; test eax, eax; cmovs edi, eax; neg edi; mov eax, exit; syscall
    let result = [0x31, 0xff, 0x85, 0xc0, 0x0f, 0x48, 0xf8, 0xf7, 0xdf];
    let exit = [&result[..], &load_instruction(EAX, 60), &[0x0f, 0x05]].concat();
    let mut file = b"\x7fELF\x02\x01\x01".to_vec();
    file.resize(16, 0);
    file.extend([2, 0, 62, 0, 1, 0, 0, 0]); // An executable for x86-64.
    for offset in [u64::from(LOAD_ADDRESS + CODE_OFFSET), 64, 0] {
        file.extend(offset.to_le_bytes());
    }
    file.extend([0, 0, 0, 0, 64, 0, 56, 0, 1, 0, 64, 0, 0, 0, 0, 0]);
    file.extend([1, 0, 0, 0, 5, 0, 0, 0]); // One segment, to be loaded and executed.
    for field in [0, u64::from(LOAD_ADDRESS), u64::from(LOAD_ADDRESS), 0x1000, 0x1000, 0x1000] {
        file.extend(u64::to_le_bytes(field));
    }
    file.extend(code);
    file.extend(exit);
    file.resize(DATA_OFFSET as usize, 0);
    file.extend(data);
    file.resize(0x1000, 0);
    file
}
