//! Confinement of programs: Landlock domains, namespaces of bubblewrap, control groups and capabilities.

pub mod bubblewrap;
pub mod group;
pub mod landlock;
pub(crate) mod root_capabilities;
pub mod sockets;
