//! Protocol between supervisor and process holder: frames, packets and mutual authentication.

pub(crate) mod codec;
pub(crate) mod frame;
pub(crate) mod launch_frame;
pub(crate) mod packet;
pub(crate) mod peer_auth;
