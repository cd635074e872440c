//! Wire formats of the product's own API: conversion between bytes and types with serde only, without sockets and
//! actors. The formats of A2A and of errors are in the crate `algonius_a2a`.

pub mod admin;
pub mod api;
pub mod envelope;
mod integer;

/// Pattern of text that has no control characters and is not blank.
const NON_BLANK_PATTERN: &str =
    r"^[^\x00-\x1f\x7f-\x9f]*[^\s\x00-\x1f\x7f-\x9f][^\x00-\x1f\x7f-\x9f]*$";
