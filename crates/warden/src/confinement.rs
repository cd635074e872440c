//! Confinement of programs: Landlock domains, networks, namespaces of bubblewrap, control groups and capabilities.

pub mod bubblewrap;
pub mod cgroup;
pub mod landlock;
pub mod network_access;
pub mod path_access;
pub(crate) mod root_capabilities;
pub mod service_folders;
pub mod socket_search;
pub mod sockets;
