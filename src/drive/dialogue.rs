//! What is said to a program over an open standard input, and what its bytes mean: no process, no
//! pipe and no ledger stand here.

mod fill;
mod framing;
mod rpc;
mod turns;

use algonius_actors::model::dialogue;
use algonius_actors::model::failure::Failure;

use self::rpc::Rpc;
use self::turns::Turns;
use super::events::Event;
use crate::template::Values;

/// What follows from what a program wrote.
pub(super) enum Step {
    /// This is to be written to it.
    Write(Vec<u8>),
    /// It says this.
    Tell(Event),
    /// These bytes of it are read as its output pattern has it.
    Hear(Vec<u8>),
    /// It did something odd, which changes nothing.
    Warn(String),
    /// Its turn is over, with a failure of the talk itself where there was one.
    End(Option<Failure>),
}

/// One turn of a talk with a program.
pub(super) enum Dialogue {
    /// A call.
    Rpc(Rpc),
    /// A message and its answer.
    Turns(Turns),
}

impl Dialogue {
    /// A turn that says what `values` hold. `number` counts the calls of a program; before the first
    /// one it has to be made ready.
    ///
    /// # Errors
    /// `input-rejected`, when that cannot be said to this program.
    pub(super) fn of(
        spec: &dialogue::Dialogue,
        values: &Values,
        number: u64,
    ) -> Result<Self, Failure> {
        match spec {
            dialogue::Dialogue::Rpc(spec) => Rpc::of(spec, values, number).map(Self::Rpc),
            dialogue::Dialogue::Turns(spec) => Turns::of(spec, values).map(Self::Turns),
        }
    }

    /// What is written first.
    pub(super) fn open(&mut self) -> Vec<u8> {
        match self {
            Self::Rpc(rpc) => rpc.open(),
            Self::Turns(turns) => turns.open(),
        }
    }

    /// Takes the next bytes of standard output. After the end of the turn nothing follows any more.
    pub(super) fn hear(&mut self, bytes: &[u8]) -> Vec<Step> {
        match self {
            Self::Rpc(rpc) => rpc.hear(bytes),
            Self::Turns(turns) => turns.hear(bytes),
        }
    }

    /// What lets the program break the turn off, where something does.
    pub(super) fn interrupt(&self) -> Option<Vec<u8>> {
        match self {
            Self::Rpc(rpc) => rpc.interrupt(),
            Self::Turns(turns) => turns.interrupt(),
        }
    }
}
