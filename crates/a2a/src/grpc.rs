//! A2A over gRPC: the generated shapes of both versions, and their conversion from and to the core shapes. The
//! conversions are written by hand and cover every case.

pub mod conversions;
pub mod proto;
pub mod v0_3;
pub mod v1;

#[cfg(test)]
mod tests;
