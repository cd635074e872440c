//! Conversion between the core shapes and the messages of A2A 0.3.

pub mod read;
pub mod write;

#[cfg(test)]
mod tests;
