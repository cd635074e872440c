//! Composition root: reads the settings, creates the resources, starts the tree, and applies later changes.
//!
//! Only this module and the crate root connect ports with their implementations.

pub(crate) mod agent_factory;
pub(crate) mod confinement;
pub(crate) mod credentials;
pub(crate) mod file_trust;
pub(crate) mod host_check;
pub(crate) mod http_state;
pub(crate) mod input_sealer;
pub(crate) mod observability_setup;
pub(crate) mod program_versions;
pub(crate) mod push_setup;
pub(crate) mod reload;
pub(crate) mod resources;
pub(crate) mod schedule_template;
pub(crate) mod start_error;
pub(crate) mod startup;
