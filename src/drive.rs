//! Drivers: what does an agent's work, whatever its kind.

mod answer;
mod arguments;
mod attempt;
mod dialogue;
mod environment;
mod events;
mod folder;
mod furniture;
mod handed;
mod kept;
mod limits;
mod live;
mod pool;
pub mod process;
mod prompts;
mod proof;
mod pump;
mod reach;
mod sandbox;
mod talk;
mod thread;
pub mod version;
mod workplace;

#[cfg(test)]
mod tests;
