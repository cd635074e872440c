//! Commands on what agents have used, and on the quotas of their accounts.

pub(super) mod quota;
pub(super) mod usage;
