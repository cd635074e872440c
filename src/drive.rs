//! Drivers: what does an agent's work, whatever its kind.

mod answer;
mod arguments;
mod attempt;
mod environment;
mod events;
mod folder;
mod handed;
mod limits;
mod live;
pub mod process;
mod prompts;
mod pump;
mod reach;
mod sandbox;
mod thread;
mod workplace;

#[cfg(test)]
mod tests;
