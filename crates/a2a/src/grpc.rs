//! A2A over gRPC: the generated shapes of both versions, and their conversion from and to the core shapes. The
//! conversions are written by hand and cover every case.

pub mod proto;
pub mod v0_3;
pub mod v1;
pub mod value;

#[cfg(test)]
mod tests;
