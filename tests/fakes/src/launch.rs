//! A parent that leaves its own state to the program it starts: `launch SETTINGS -- PROGRAM ARGUMENTS`.
//!
//! | Setting | State |
//! |---|---|
//! | `block=NUMBER` | the signal is blocked |
//! | `umask=OCTAL` | the umask |
//! | `descriptors=N` | so many open files, which the program inherits |

use std::error::Error;
use std::ffi::CString;
use std::fs::File;
use std::os::fd::AsFd;

use nix::sys::signal::{SigSet, Signal};
use nix::sys::stat::{Mode, umask};
use nix::unistd::{dup, execv};

pub(crate) fn run(args: &[String]) -> Result<u8, Box<dyn Error>> {
    let mut words = args.iter();
    let mut descriptors = Vec::new();
    for setting in words.by_ref().take_while(|word| *word != "--") {
        let (name, value) = setting.split_once('=').ok_or("a setting is NAME=VALUE")?;
        match name {
            "block" => block_signal(value.parse()?)?,
            "umask" => _ = umask(Mode::from_bits_truncate(u32::from_str_radix(value, 8)?)),
            "descriptors" => {
                let file = File::open("/dev/null")?;
                for _ in 0..value.parse()? {
                    descriptors.push(dup(file.as_fd())?); // A duplicate stays open in the program.
                }
            }
            _ => return Err(format!("there is no setting `{name}`").into()),
        }
    }
    let argv = words.map(|word| CString::new(word.as_str())).collect::<Result<Vec<_>, _>>()?;
    let program = argv.first().ok_or("a program is needed after `--`")?;
    // Not by the standard library, which gives every program an empty signal mask.
    match execv(program, &argv)? {}
}

fn block_signal(number: i32) -> Result<(), Box<dyn Error>> {
    let mut mask = SigSet::empty();
    mask.add(Signal::try_from(number)?);
    Ok(mask.thread_block()?)
}
