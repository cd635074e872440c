//! Operation of the service: health, status, metrics, administration, and pages about errors.

pub mod admin;
pub mod error_pages;
pub mod single_flight;
pub mod status;
pub mod storage_stats_cache;
