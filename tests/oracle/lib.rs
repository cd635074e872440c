//! A2A 1.0 as `prost` and `pbjson` read and write it: a second opinion for property tests of our
//! JSON. Nothing of it is written by hand, and none of it is in the program.
#![expect(clippy::all, reason = "generated")]

include!(concat!(env!("OUT_DIR"), "/lf.a2a.v1.rs"));
include!(concat!(env!("OUT_DIR"), "/lf.a2a.v1.serde.rs"));
