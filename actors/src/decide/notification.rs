//! Notifications: alerts for operators, and push notifications for callers.

pub mod alert;
pub mod push;
