//! Callers against each other: none is locked out by another one, and none starves the rest.

mod bodies;
mod connections;
mod framing;
mod full_disk;
mod lengths;
mod lockout;
mod signals;
mod unread_responses;
